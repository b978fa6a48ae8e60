import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as tlsRequest } from 'node:https'
import { describe, it } from 'node:test'
import { makeCertificate } from '../support/certificate.ts'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { actions } from './connections-support.ts'

/** How long a connection was open, and what it received. */
interface Lifetime {
  readonly seconds: number
  /** Uses a clock that stops while this process, which is also the server's, is not running: machines are busy at times. */
  readonly awakeSeconds: number
  readonly text: string
}

async function lifetimeOf(client: Connection): Promise<Lifetime> {
  const tickMs = 20
  let ticks = 0
  const clock = setInterval(() => (ticks += 1), tickMs)
  const start = performance.now()
  const text = await client.closed()
  clearInterval(clock)
  return { seconds: (performance.now() - start) / 1000, awakeSeconds: (ticks * tickMs) / 1000, text }
}

function isBetween({ seconds, awakeSeconds }: Lifetime, from: number, to: number): void {
  assert.ok(seconds > from - 0.1 && awakeSeconds < to, `open for ${seconds} s, ${awakeSeconds} s of them awake`)
}

describe('time-outs', () => {
  const config = { 'server.header_timeout_s': 1, 'server.request_timeout_s': 2 }
  const isWithinASecond = (lifetime: Lifetime, from: number): void => isBetween(lifetime, from, from + 1.1)

  it('are enforced within a second', async (t) => {
    const { port, url } = await serve(t, actions, { ...config, 'app.env': 'dev', 'server.keep_alive_timeout_s': 9 })
    const { port: shortLived } = await serve(t, actions, { ...config, 'server.keep_alive_timeout_s': 1 })
    const silent = new Connection(t, port)
    const header = new Connection(t, port)
    const body = new Connection(t, port)
    const idle = new Connection(t, shortLived)
    const second = new Connection(t, port)
    await header.send('GET /ok HTTP/1.1\r\nHost: h\r\n')
    await body.send(requestText('POST /read', ['Content-Length: 9', 'Accept: application/json'], 'abc'))
    await idle.send(requestText('GET /ok'))
    await idle.answers(1)
    await second.send(requestText('GET /ok') + 'GET /ok HTTP/1.1\r\n')
    const drip = setInterval(() => header.socket.writable && header.socket.write('A: b\r\n'), 200)
    t.after(() => clearInterval(drip))
    const results = await Promise.all([silent, header, body, idle, second].map(lifetimeOf))
    const rows: [string, number, number[]][] = [
      ['silent', 1, []],
      ['header', 1, [408]],
      ['body', 2, [408]],
      ['idle', 1, [200]],
      ['second', 1, [200, 408]],
    ]
    for (const [at, [what, seconds, statuses]] of rows.entries()) {
      const lifetime = results[at] as Lifetime
      assert.deepEqual(splitAnswers(lifetime.text).map(({ status }) => status), statuses, what)
      isWithinASecond(lifetime, seconds)
    }
    const texts = results.map(({ text }) => text)
    assert.match(texts[1] ?? '', /\r\nContent-Type: text\/html/)
    const detail = 'The request took longer than 2 s to arrive.'
    assert.match(texts[2] ?? '', /\r\nContent-Type: application\/json; charset=utf-8\r\n/)
    assert.ok(texts[2]?.endsWith(JSON.stringify({ error: 'request_timeout', detail })))
    const { requests } = (await request(`${url}/svc-status`)).json() as { requests: { total: number; errors: number } }
    assert.deepEqual([requests.total, requests.errors], [4, 3], 'a connection without input is not a request')
  })

  it('of an idle connection apply although empty lines arrive', async (t) => {
    const { port } = await serve(t, actions, { ...config, 'server.keep_alive_timeout_s': 2 })
    const lines = new Connection(t, port)
    await lines.send(requestText('GET /ok'))
    await lines.answers(1)
    const drip = setInterval(() => lines.socket.writable && lines.socket.write('\r\n'), 200)
    t.after(() => clearInterval(drip))
    const lifetime = await lifetimeOf(lines)
    assert.deepEqual(splitAnswers(lifetime.text).map(({ status }) => status), [200])
    isWithinASecond(lifetime, 2)
  })

  it('of an idle connection do not apply once a request has begun', async (t) => {
    const { port } = await serve(t, actions, { 'server.keep_alive_timeout_s': 1, 'server.header_timeout_s': 60 })
    const [begun, idle] = [new Connection(t, port), new Connection(t, port)]
    for (const client of [begun, idle]) {
      await client.send(requestText('GET /ok'))
      await client.answers(1)
    }
    await begun.send('GET /ok HTTP/1.1\r\nHo')
    await idle.closed()
    await begun.send('st: h\r\nConnection: close\r\n\r\n')
    assert.deepEqual(splitAnswers(await begun.closed()).map(({ status }) => status), [200, 200])
  })

  it('of the whole request apply if they are shorter', async (t) => {
    const { port } = await serve(t, actions, { 'server.request_timeout_s': 1 })
    const header = new Connection(t, port)
    await header.send('GET /ok HTTP/1.1\r\nHost: h\r\n')
    const lifetime = await lifetimeOf(header)
    assert.match(lifetime.text, /^HTTP\/1\.1 408 /)
    isWithinASecond(lifetime, 1)
  })

  it('end a TLS handshake that has only begun', async (t) => {
    const { cert, key } = makeCertificate(temporaryFolder(), 'server')
    const config = { 'server.tls.cert': cert, 'server.tls.key': key, 'server.header_timeout_s': 1 }
    const { url, port } = await serve(t, actions, config)
    const client = new Connection(t, port)
    await client.send('\0\0\0')
    isWithinASecond(await lifetimeOf(client), 1)
    const [response] = await once(tlsRequest(`${url}/ok`, { ca: readFileSync(cert), agent: false }).end(), 'response')
    assert.equal(Buffer.concat(await response.toArray()).toString(), 'ok')
  })
})

describe('a body over the limit', () => {
  it('eventually ends the connection, even if the client keeps sending', async (t) => {
    const { port } = await serve(t, actions, { 'server.body_limit_kb': 64 })
    const client = new Connection(t, port, { allowHalfOpen: true })
    await client.send(requestText('POST /read', ['Transfer-Encoding: chunked'], `20000\r\n${'x'.repeat(0x20000)}\r\n`))
    await client.answers(1)
    const sending = setInterval(() => client.socket.write('1\r\nx\r\n'), 100)
    t.after(() => clearInterval(sending))
    isBetween(await lifetimeOf(client), 3, 7)
  })
})
