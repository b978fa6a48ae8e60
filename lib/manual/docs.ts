/**
 * The command `docs`: shows the documents of this installation as a site with a search, on 127.0.0.1, until it is
 * stopped. It reads no configuration and starts no application.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { extname } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { exitStatus } from '../process/process.ts'
import { frame, policy, renderHits, renderPage } from './layout.ts'
import { readManual } from './pages.ts'
import { createSearch } from './search.ts'

type Answer = readonly [type: string, body: string | Buffer, status?: number]

const html = 'text/html; charset=utf-8'
const plain = 'text/plain; charset=utf-8'
const types: Readonly<Record<string, string>> = { '.json': 'application/json', '.png': 'image/png' }

/**
 * Runs the command until SIGINT or SIGTERM, and returns the exit status: 0, or 1 when there are no documents or the
 * port cannot be used.
 * @param root the folder of the server
 * @param port 0: any free one
 */
export async function docs(root: string, port: number): Promise<number> {
  try {
    const answer = createSite(root)
    const server = createServer((request, response) => respond(request, response, answer))
    await once(server.listen(port, '127.0.0.1'), 'listening')
    const address = server.address()
    process.stdout.write(`listening on http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}\n`)
    const stop = (): void => {
      server.close()
      server.closeAllConnections()
    }
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop)
    await once(server, 'close')
    return exitStatus.ok
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE' // Node's own errors have a code.
    const advice = isTaken ? ': give another --port, 0 for any free one' : ''
    process.stderr.write(`Cannot show the documents: ${reasonOf(error)}${advice}\n`)
    return exitStatus.failed
  }
}

/**
 * Reads the documents, and returns the function that answers a URL.
 * @throws Error when the installation has none
 */
export function createSite(root: string): (url: URL) => Answer {
  const { pages, files, areas, llms } = readManual(root)
  const search = createSearch(pages)
  return ({ pathname, searchParams }) => {
    if (pathname === '/llms.txt') return [plain, llms]
    const query = searchParams.get('q') ?? ''
    if (pathname === '/search') return [html, renderHits(query, search(query), areas)]
    const page = pages.find(({ path }) => path === pathname)
    if (page !== undefined) return [html, renderPage(page, areas)]
    const file = files.get(pathname)
    if (file !== undefined) return [types[extname(file)] ?? plain, readFileSync(file)]
    const main = '<h1>Not found</h1><p>There is no such page. Search for it, or <a href="/">start here</a>.</p>'
    return [html, frame({ title: 'Not found', areas, main }), 404]
  }
}

function respond({ method, url = '' }: IncomingMessage, response: ServerResponse, answer: (url: URL) => Answer): void {
  const isRead = method === 'GET' || method === 'HEAD'
  const base = 'http://localhost'
  const refused: Answer = isRead ? [plain, 'The path is invalid\n', 400] : [plain, 'Only GET and HEAD\n', 405]
  const [type, body, status = 200] = isRead && URL.canParse(url, base) ? answer(new URL(url, base)) : refused
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    'Content-Security-Policy': policy,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-cache',
  })
  response.end(body)
}
