import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as tlsRequest } from 'node:https'
import { describe, it } from 'node:test'
import { makeCertificate } from '../support/certificate.ts'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { serve } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { actions } from './connections-support.ts'

describe('time-outs', () => {
  const config = { 'server.header_timeout_s': 1, 'server.request_timeout_s': 2 }
  const timed = async (client: Connection): Promise<[number, string]> => {
    const start = performance.now()
    const text = await client.closed()
    return [(performance.now() - start) / 1000, text]
  }
  const within = (seconds: number, from: number): void =>
    assert.ok(seconds > from - 0.1 && seconds < from + 1.1, `${seconds} s after the start, ${from} s configured`)

  it('are kept within a second', async (t) => {
    const { port } = await serve(t, actions, { ...config, 'server.keep_alive_timeout_s': 9 })
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
    const results = await Promise.all([silent, header, body, idle, second].map(timed))
    const rows: [string, number, number[]][] = [
      ['silent', 1, [408]],
      ['header', 1, [408]],
      ['body', 2, [408]],
      ['idle', 1, [200]],
      ['second', 1, [200, 408]],
    ]
    for (const [at, [what, seconds, statuses]] of rows.entries()) {
      const [took, text] = results[at] as [number, string]
      assert.deepEqual(splitAnswers(text).map(({ status }) => status), statuses, what)
      within(took, seconds)
    }
    const texts = results.map(([, text]) => text)
    assert.match(texts[1] ?? '', /\r\nContent-Type: text\/html/)
    assert.match(texts[2] ?? '', /\r\nContent-Type: application\/json; charset=utf-8\r\n[^]*\{"error":"request_timeout"\}$/)
  })

  it('of an idle connection are kept though empty lines come on it; a request that has begun has its own', async (t) => {
    const { port } = await serve(t, actions, { ...config, 'server.keep_alive_timeout_s': 2 })
    const lines = new Connection(t, port)
    const late = new Connection(t, port)
    for (const client of [lines, late]) {
      await client.send(requestText('GET /ok'))
      await client.answers(1)
    }
    const drip = setInterval(() => lines.socket.writable && lines.socket.write('\r\n'), 200)
    t.after(() => clearInterval(drip))
    const begin = setTimeout(() => late.socket.write('GET /ok HTTP/1.1\r\nHo'), 1800)
    const end = setTimeout(() => late.socket.write('st: h\r\nConnection: close\r\n\r\n'), 2500)
    t.after(() => [begin, end].forEach(clearTimeout))
    const [[took, text], [, lateText]] = await Promise.all([timed(lines), timed(late)])
    assert.deepEqual(splitAnswers(text).map(({ status }) => status), [200])
    within(took, 2)
    assert.deepEqual(splitAnswers(lateText).map(({ status }) => status), [200, 200])
  })

  it('are those of the whole request where these are shorter', async (t) => {
    const { port } = await serve(t, actions, { 'server.request_timeout_s': 1 })
    const header = new Connection(t, port)
    await header.send('GET /ok HTTP/1.1\r\nHost: h\r\n')
    const [took, text] = await timed(header)
    assert.match(text, /^HTTP\/1\.1 408 /)
    within(took, 1)
  })

  it('end a TLS handshake of which a few bytes came', async (t) => {
    const { cert, key } = makeCertificate(temporaryFolder(), 'server')
    const config = { 'server.tls.cert': cert, 'server.tls.key': key, 'server.header_timeout_s': 1 }
    const { url, port } = await serve(t, actions, config)
    const client = new Connection(t, port)
    await client.send('\0\0\0')
    within((await timed(client))[0], 1)
    const [response] = await once(tlsRequest(`${url}/ok`, { ca: readFileSync(cert), agent: false }).end(), 'response')
    assert.equal(Buffer.concat(await response.toArray()).toString(), 'ok')
  })
})

describe('a body over the limit', () => {
  it('ends the connection in the end, also when the client sends on and on', async (t) => {
    const { port } = await serve(t, actions, { 'server.body_limit_kb': 64 })
    const client = new Connection(t, port, { allowHalfOpen: true })
    await client.send(requestText('POST /read', ['Transfer-Encoding: chunked'], `20000\r\n${'x'.repeat(0x20000)}\r\n`))
    await client.answers(1)
    const sending = setInterval(() => client.socket.write('1\r\nx\r\n'), 100)
    t.after(() => clearInterval(sending))
    const start = performance.now()
    await client.closed()
    const seconds = (performance.now() - start) / 1000
    assert.ok(seconds > 3 && seconds < 7, `${seconds} s`)
  })
})
