import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { replyCodings } from '../../lib/http/compress.ts'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'

const gzip = { headers: { 'accept-encoding': 'gzip' } }

describe('compression', () => {
  it('is applied to compressible replies above 2 KiB on request', async (t) => {
    const { url } = await serve(t, {
      '/small': "() => 'x'.repeat(2048)",
      '/text': "() => 'é'.repeat(1025)",
      '/json': "() => ({ a: 'x'.repeat(3000) })",
      '/large': "() => 'y'.repeat(500000)",
      '/bytes': '() => new Uint8Array(5000)',
      '/svg': "(ctx) => { ctx.setHeader('Content-Type', 'image/svg+xml'); return new Uint8Array(5000).fill(60) }",
    })
    const rows: [string, boolean, number][] = [
      ['/small', false, 2048],
      ['/text', true, 2050],
      ['/json', true, 3008],
      ['/large', true, 500_000],
      ['/bytes', false, 5000],
      ['/svg', true, 5000],
    ]
    for (const [path, packed, length] of rows) {
      const { headers, bytes } = await request(url + path, gzip)
      assert.equal(headers['content-encoding'], packed ? 'gzip' : undefined, path)
      assert.equal(headers.vary, packed ? 'Accept-Encoding' : undefined, path)
      assert.equal(headers['content-length'], String(bytes.length))
      assert.equal((packed ? gunzipSync(bytes) : bytes).length, length)
      const plain = await request(url + path)
      assert.deepEqual([plain.headers['content-encoding'], plain.bytes.length], [undefined, length])
      assert.equal(plain.headers.vary, packed ? 'Accept-Encoding' : undefined, `${path}: a cache must know`)
      const refused = await request(url + path, { headers: { 'accept-encoding': 'deflate, gzip;q=0' } })
      assert.equal(refused.headers['content-encoding'], undefined)
    }
  })

  it('is not applied where the application forbids it', async (t) => {
    const set = (value: string): string => `(ctx) => { ctx.setHeader('Cache-Control', '${value}'); return 'y'.repeat(9000) }`
    const { url } = await serve(t, { '/a': set('no-transform'), '/b': set('private, No-Transform, max-age=1'), '/c': set('x-no-transform') })
    const codings = await Promise.all(['/a', '/b', '/c'].map(async (path) => (await request(url + path, gzip)).headers['content-encoding']))
    assert.deepEqual(codings, [undefined, undefined, 'gzip'])
  })

  it('uses the cheapest coding that the client accepts', async (t) => {
    const { url } = await serve(t, { '/': "() => ({ a: 'x'.repeat(3000) })" })
    const [best] = replyCodings
    for (const [accepted, coding] of [['gzip, deflate, br, zstd', best], ['gzip, br', 'br'], ['deflate', undefined]] as const) {
      const { headers } = await request(url, { headers: { 'accept-encoding': accepted } })
      assert.equal(headers['content-encoding'], coding)
    }
    const { bytes } = await request(url, { headers: { 'accept-encoding': 'br' } })
    assert.equal(brotliDecompressSync(bytes).length, 3008)
  })

  it('sends HEAD the same fields without the body', async (t) => {
    const { url, port } = await serve(t, { '/': "() => 'y'.repeat(100000)" })
    const get = await request(url, gzip)
    const text = await exchange(port, requestText('HEAD /', ['Accept-Encoding: gzip', 'Connection: close']))
    const head = parseAnswer(text)
    assert.deepEqual([head.headers['content-encoding'], head.headers['content-length'], head.body], [
      'gzip',
      get.headers['content-length'],
      '',
    ])
  })

  it('weakens a strong ETag, adds to Vary, and skips encoded or partial replies', async (t) => {
    const body = "return 'x'.repeat(3000) }"
    const { url } = await serve(t, {
      '/strong': `(ctx) => { ctx.setHeader('ETag', '"a"'); ctx.setHeader('Vary', 'Cookie'); ${body}`,
      '/weak': `(ctx) => { ctx.setHeader('etag', 'W/"a"'); ctx.setHeader('vary', 'cookie, accept-encoding'); ${body}`,
      '/star': `(ctx) => { ctx.setHeader('Vary', '*'); ${body}`,
      '/encoded': `(ctx) => { ctx.setHeader('Content-Encoding', 'identity'); ${body}`,
      '/part': `(ctx) => { ctx.status = 206; ctx.setHeader('Content-Range', 'bytes 0-2999/9000'); ${body}`,
    })
    const rows: [string, string | undefined, string | undefined, string | undefined][] = [
      ['/strong', 'gzip', 'W/"a"', 'Cookie, Accept-Encoding'],
      ['/weak', 'gzip', 'W/"a"', 'cookie, accept-encoding'],
      ['/star', 'gzip', undefined, '*'],
      ['/encoded', 'identity', undefined, undefined],
      ['/part', undefined, undefined, undefined],
    ]
    for (const [path, encoding, etag, vary] of rows) {
      const { headers } = await request(url + path, gzip)
      assert.deepEqual([headers['content-encoding'], headers.etag, headers.vary], [encoding, etag, vary], path)
    }
    assert.equal((await request(`${url}/strong`)).headers.etag, '"a"')
  })

  it('drops the compressed bytes if the client has disconnected meanwhile', async (t) => {
    const { url, port, lines } = await serve(t, { '/': "(ctx) => { setImmediate(() => ctx.response.destroy()); return 'y'.repeat(5e6) }", '/ok': "() => 'ok'" })
    const text = await exchange(port, requestText('GET /', ['Accept-Encoding: gzip']))
    assert.equal(text, '')
    assert.equal((await request(`${url}/ok`)).text, 'ok')
    assert.match(lines('access.log')[0] ?? '', /"GET \/ HTTP\/1.1" 499$/)
  })
})

describe('a response', () => {
  it('has no body with 204, 205 and 304', async (t) => {
    const { port } = await serve(t, {
      '/204': "(ctx) => ctx.text('body', 204)",
      '/205': "(ctx) => ctx.text('body', 205)",
      '/304': "(ctx) => { ctx.setHeader('ETag', '\"a\"'); return ctx.json({ a: 1 }, 304) }",
    })
    const client = new Connection(t, port)
    await client.send(requestText('GET /204') + requestText('GET /205') + requestText('GET /304') + requestText('GET /204', ['Connection: close']))
    const answers = splitAnswers(await client.closed())
    assert.deepEqual(
      answers.map(({ status, headers, body }) => [status, headers['content-length'], headers['content-type'], headers.etag, body]),
      [
        [204, undefined, undefined, undefined, ''],
        [205, '0', undefined, undefined, ''],
        [304, undefined, undefined, '"a"', ''],
        [204, undefined, undefined, undefined, ''],
      ],
    )
  })

  it("has each of the server's fields once, even if the application set it", async (t) => {
    const { port } = await serve(t, {
      '/': `(ctx) => {
        ctx.setHeader('X-Request-Id', 'own-of-the-application')
        ctx.setHeader('Connection', 'keep-alive')
        ctx.setHeader('Date', 'Thu, 01 Jan 1970 00:00:00 GMT')
        ctx.lastOnConnection = true
        return 'x'
      }`,
      '/close': "(ctx) => { ctx.setHeader('Connection', 'close'); return 'x' }",
    })
    const text = await exchange(port, requestText('GET /', ['X-Request-Id: of-the-client']))
    const names = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n').slice(1).map((line) => line.split(':')[0]?.toLowerCase())
    assert.deepEqual(names.toSorted(), ['connection', 'content-length', 'content-type', 'date', 'x-request-id'])
    assert.deepEqual([parseAnswer(text).headers.connection, parseAnswer(text).headers['x-request-id']], ['close', 'of-the-client'])
    assert.equal(parseAnswer(await exchange(port, requestText('GET /close'))).headers.connection, 'close')
  })

  it('that fails after it has begun is cut, and logged', async (t) => {
    const { url, lines } = await serve(
      t,
      { '/ok': "() => 'ok'" },
      {},
      {
        'routes/s.json': [{ name: 's', url: '/s', action: 's.mjs' }],
        's.mjs': `import { StreamReply } from ${JSON.stringify(new URL('../../lib/http/reply.ts', import.meta.url).href)}
          export default () => new StreamReply(200, ['X-A', '1'], 9, () => { throw new Error('cannot send') })`,
      },
    )
    await assert.rejects(request(`${url}/s`), /hang up|aborted/)
    assert.ok(lines().some((line) => /\[ERROR\] \[error\] GET \/s \(s\): cannot send \[\S{36}\]$/.test(line)))
    assert.ok(lines().some((line) => /\[ERROR\] \[response\] GET \/s \(s\): the error response could not be sent/.test(line)))
    assert.equal((await request(`${url}/ok`)).text, 'ok')
  })
})

describe('a body that the action did not read', () => {
  const actions = {
    '/ignores': "() => 'ignored'",
    '/begins': "(ctx) => { ctx.readText().catch(() => {}); return 'begun' }",
    '/ok': "() => 'ok'",
    '/read': '(ctx) => ctx.readText()',
  }
  const config = { 'server.body_limit_kb': 256 }

  it('is discarded if it is small, and the connection continues', async (t) => {
    const { port } = await serve(t, actions, config)
    for (const path of ['/ignores', '/begins']) {
      const client = new Connection(t, port)
      await client.send(requestText(`POST ${path}`, ['Content-Length: 200000'], 'x'.repeat(100_000)))
      await client.answers(1)
      await client.send('x'.repeat(100_000) + requestText('GET /ok'))
      const [first, second] = await client.answers(2)
      assert.deepEqual([first?.status, first?.headers.connection, second?.body], [200, 'keep-alive', 'ok'], path)
      client.socket.destroy()
    }
  })

  it('ends the connection if it is large or of unknown length', async (t) => {
    const { port } = await serve(t, actions, config)
    for (const field of ['Content-Length: 262145', 'Transfer-Encoding: chunked']) {
      const client = new Connection(t, port)
      await client.send(requestText('POST /ignores', [field]))
      const [answer, ...more] = splitAnswers(await client.closed())
      assert.deepEqual([answer?.status, answer?.headers.connection, more], [200, 'close', []], field)
    }
  })

  it('does not matter, even of unknown length, once it has fully arrived', async (t) => {
    const { port } = await serve(t, actions, config)
    const client = new Connection(t, port)
    const chunked = ['Transfer-Encoding: chunked']
    await client.send(requestText('POST /read', chunked, '1\r\nx\r\n0\r\n\r\n') + requestText('POST /read', ['Content-Length: 0']))
    assert.deepEqual((await client.answers(2)).map(({ body, headers }) => [body, headers.connection]), [['x', 'keep-alive'], ['', 'keep-alive']])
    client.socket.destroy()
  })
})
