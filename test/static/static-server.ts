import { mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, request, type IncomingHttpHeaders, type IncomingMessage,
  type OutgoingHttpHeaders } from 'node:http'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { HttpError } from '../../lib/http/errors.ts'
import { StaticFiles, type StaticOptions } from '../../lib/static/static.ts'
import { listen } from '../support/listen.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

export interface StaticServer {
  /** The folder that is served; beside it, in the same parent, is `outside.txt`. */
  folder: string
  port: number
  /** The failures passed to `onFailure`. */
  failures: string[]
  ask(path: string, headers?: OutgoingHttpHeaders, method?: string): Promise<Answer>
  /** Sends a GET and resolves at the header section; the body is not read yet. */
  begin(path: string): Promise<IncomingMessage>
  /** Resolves once no file of the folder is open. */
  allClosed(): Promise<void>
}

/** Serves files with plain `node:http`. The clock is ten seconds ahead, so that new files do not count as fresh. */
export async function serveStatic(
  t: TestContext,
  files: Record<string, string | Uint8Array>,
  options: Partial<StaticOptions> & { beforeSend?: (message: IncomingMessage) => Promise<unknown> } = {},
): Promise<StaticServer> {
  const parent = temporaryFolder()
  const folder = join(parent, 'public')
  mkdirSync(folder)
  writeFileSync(join(parent, 'outside.txt'), 'outside')
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  const failures: string[] = []
  const onFailure = (path: string, error: unknown): void => void failures.push(`${path}: ${String(error)}`)
  const statics = new StaticFiles({ folder, onFailure, now: () => Date.now() + 10_000, ...options })

  const server = createServer(async (message, response) => {
    const [path = '', ...query] = (message.url ?? '').split('?')
    try {
      const reply = await statics.find({
        method: message.method ?? '',
        path,
        prefix: '',
        rawQuery: query.length === 0 ? '' : `?${query.join('?')}`,
        header: (name) => message.headers[name]?.toString(),
        formatOfPrefix: 'auto',
      })
      if (reply === undefined) throw new HttpError(404, 'not_found', 'no such file')
      await options.beforeSend?.(message)
      response.writeHead(reply.status, [...reply.headers, 'X-Length', String(reply.length)])
      reply.send(response)
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      response.writeHead(error.status, { ...error.headers, 'X-Code': error.code })
      response.end(error.message)
    }
  })
  const port = await listen(t, server)

  async function begin(path: string, headers: OutgoingHttpHeaders = {}, method = 'GET'): Promise<IncomingMessage> {
    const sent = request({ port, host: '127.0.0.1', path, headers, method, agent: false }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return answer
  }

  return {
    folder,
    port,
    failures,
    begin,
    async ask(path, headers, method) {
      const answer = await begin(path, headers, method)
      const pieces: Buffer[] = []
      for await (const piece of answer) pieces.push(piece as Buffer)
      return { status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(pieces) }
    },
    async allClosed() {
      while (openFilesBelow(folder) > 0) await delay(5)
    },
  }
}

/** How many descriptors of this process lead below a folder. */
export function openFilesBelow(folder: string): number {
  return readdirSync('/proc/self/fd').filter((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`).startsWith(folder)
    } catch {
      return false // the descriptor of the listing itself is already closed
    }
  }).length
}
