// Pipelined requests of all kinds, sent in pieces of any size, get the same responses as requests one at a time.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { makeCertificate } from '../support/certificate.ts'
import { Connection, requestText } from '../support/connection.ts'
import { Seeded } from '../support/seeded.ts'
import { serve } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const actions = {
  '/now/:id': "({ params }) => 'now ' + params.id",
  '/micro/:id': "async ({ params }) => { await null; return 'micro ' + params.id }",
  '/late/:id': "({ params }) => new Promise((resolve) => setTimeout(resolve, 1, 'late ' + params.id))",
  '/bytes/:id': `({ params }) => { shared.fill(params.id.charCodeAt(0)); return shared }
    const shared = Buffer.alloc(100)`,
  'POST /read/:id': "async (ctx) => ctx.params.id + ' ' + (await ctx.readText())",
  'POST /unread/:id': "({ params }) => 'unread ' + params.id",
  '/stream/:id': "({ params }) => (async function* () { yield 'stream '; await null; yield params.id })()",
  '/hold/:id': "(ctx) => ctx.hold(() => new Promise((resolve) => setTimeout(resolve, 1, 'held ' + ctx.params.id)))",
  '/fail/:id': "() => { throw new Error('as asked') }",
}
const files = { 'public/small.txt': 'small', 'public/large.bin': 'l'.repeat(1_200_000) }
const upgrade = ['Connection: Upgrade', 'Upgrade: h2c']

/** The kinds of requests. All of a test are fewer than 64 KiB: so much behind a wait would end the connection. */
const kinds: readonly ((id: number) => string)[] = [
  (id) => requestText(`GET /now/${id}`),
  (id) => requestText(`GET /micro/${id}`),
  (id) => requestText(`GET /late/${id}`),
  (id) => requestText(`GET /bytes/${id}`),
  (id) => requestText(`HEAD /late/${id}`),
  (id) => requestText(`OPTIONS /read/${id}`),
  (id) => requestText(`POST /read/${id}`, ['Content-Length: 5'], 'body\n'),
  (id) => requestText(`POST /read/${id}`, ['Transfer-Encoding: chunked'], '3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\n'),
  (id) => requestText(`POST /read/${id}`, ['Content-Length: 3000'], 'r'.repeat(3000)),
  (id) => requestText(`POST /read/${id}`, ['Expect: 100-continue', 'Content-Length: 3'], 'abc'),
  (id) => requestText(`POST /unread/${id}`, ['Content-Length: 5'], 'GET /'),
  (id) => requestText(`GET /stream/${id}`),
  (id) => requestText(`GET /hold/${id}`),
  (id) => requestText(`GET /fail/${id}`),
  (id) => requestText(`GET /none/${id}`),
  () => requestText('GET /small.txt'),
  () => requestText('GET /large.bin'),
  (id) => requestText(`GET /now/${id}`, upgrade),
  (id) => requestText(`POST /read/${id}`, [...upgrade, 'Content-Length: 5'], 'h2c?\n'),
]
const last = requestText('GET /now/last', ['Connection: close'])

/** What a server answers, without what differs between two moments: a tag is weak while its file is new. */
function comparable(text: string): string {
  return text.replace(/^Date: .*\r\n/gm, '').replace(/^ETag: W\//gm, 'ETag: ').replace(/^X-Request-Id: .*\r\n/gm, '').replace(/Request <code>[\w-]+/g, '')
}

async function compare(t: TestContext, seed: number, connections: number, requests: number, tls = false): Promise<void> {
  const seeded = new Seeded(seed)
  const folder = temporaryFolder()
  const certificate = tls ? makeCertificate(folder, 'of') : undefined
  const config = certificate && { 'server.tls.cert': certificate.cert, 'server.tls.key': certificate.key }
  const { port } = await serve(t, actions, { 'paths.public': 'public', 'log.level': 'fatal', ...config }, files)
  const alone = async (bytes: string): Promise<string> => {
    const client = new Connection(t, port, { tls })
    await client.send(bytes)
    await until(() => client.received !== '')
    await client.send(last)
    const text = comparable(await client.closed())
    return text.slice(0, text.lastIndexOf('HTTP/1.1 200 OK'))
  }
  const expected = new Map<string, string>()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const sent = Array.from({ length: requests }, () => seeded.pick([...kinds])(seeded.integer(10)))
      const bytes = sent.join('') + last
      const pieces: string[] = []
      for (let at = 0; at < bytes.length; ) {
        const size = 1 + seeded.integer(seeded.pick([3, 100, 2000, 100_000]))
        pieces.push(bytes.slice(at, at + size))
        at += size
      }
      for (const one of new Set(sent)) if (!expected.has(one)) expected.set(one, await alone(one))
      const client = new Connection(t, port, { tls })
      client.socket.setNoDelay()
      for (const piece of pieces) {
        if (client.socket.destroyed) break
        await client.send(piece)
      }
      const text = comparable(await client.closed())
      const end = text.lastIndexOf('HTTP/1.1 200 OK')
      const answers = sent.map((one) => expected.get(one))
      if (text.slice(0, end) !== answers.join('')) {
        const wrong = sent.findIndex((_, at) => !text.startsWith(answers.slice(0, at + 1).join('')))
        assert.fail(`seed ${seed}, request ${wrong} of ${sent.length}: ${JSON.stringify(sent[wrong]?.slice(0, 200))}\n`
          + `behind ${JSON.stringify(sent[wrong - 1]?.slice(0, 200))}\n`
          + text.slice(answers.slice(0, wrong).join('').length).slice(0, 600))
      }
      assert.match(text.slice(end), /now last$/)
    }),
  )
}

describe('pipelined requests of all kinds', () => {
  for (const seed of [1, 2, 3]) {
    it(`get the same responses as one at a time, seed ${seed}`, (t) => compare(t, seed, 8, 60))
  }
  it('get them over TLS, which sends each response a turn later, seed 4', (t) => compare(t, 4, 8, 60, true))
})
