import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as tlsRequest } from 'node:https'
import { describe, it } from 'node:test'
import { connect as tlsConnect } from 'node:tls'
import { makeCertificate } from '../support/certificate.ts'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { actions } from './connections-support.ts'

describe('requests that cannot be served', () => {
  it('get their status, and the connection is closed', async (t) => {
    const { url, port, lines } = await serve(t, actions, { 'app.env': 'dev' })
    const long = 'x'.repeat(102_400)
    const rows: [string, string, number][] = [
      ['not HTTP', 'hello\r\n\r\n', 400],
      ['an unknown method', requestText('FROB /ok'), 400],
      ['a lower-case method', requestText('get /ok'), 400],
      ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
      ['HTTP/3 in the line', 'GET /ok HTTP/3.0\r\nHost: h\r\n\r\n', 400],
      ['a NUL in the request line', 'GET /o\0k HTTP/1.1\r\nHost: h\r\n\r\n', 400],
      ['a control byte in the request line', 'GET /o\x01k HTTP/1.1\r\nHost: h\r\n\r\n', 400],
      ['a space in the target', 'GET /o k HTTP/1.1\r\nHost: h\r\n\r\n', 400],
      ['a NUL in a field', requestText('GET /ok', ['A: b\0c']), 400],
      ['a control byte in a field', requestText('GET /ok', ['A: b\x01c']), 400],
      ['a space before the colon', requestText('GET /ok', ['A : b']), 400],
      ['a field without a name', requestText('GET /ok', [': b']), 400],
      ['a folded field', requestText('GET /ok', [' A: b']), 400],
      ['a missing Host', 'GET /ok HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
      ['a doubled Host', requestText('GET /ok', ['host: h', 'Connection: close']), 400],
      ['length and chunks', requestText('POST /read', ['Content-Length: 3', 'Transfer-Encoding: chunked'], '0\r\n\r\n'), 400],
      ['chunks and length', requestText('POST /read', ['Transfer-Encoding: chunked', 'Content-Length: 3'], '0\r\n\r\n'), 400],
      ['two lengths', requestText('POST /read', ['Content-Length: 3', 'Content-Length: 4'], 'abc'), 400],
      ['the same length twice', requestText('POST /read', ['Content-Length: 3', 'Content-Length: 3'], 'abc'), 400],
      ['a negative length', requestText('POST /read', ['Content-Length: -3'], 'abc'), 400],
      ['a length list', requestText('POST /read', ['Content-Length: 3, 3'], 'abc'), 400],
      ['an unknown coding last', requestText('POST /read', ['Transfer-Encoding: chunked, gzip'], 'abc'), 400],
      ['a coding in disguise', requestText('POST /read', ['Transfer-Encoding: xchunked'], 'abc'), 400],
      ['a bad chunk size', requestText('POST /read', ['Transfer-Encoding: chunked'], 'x\r\n'), 400],
      ['a chunk longer than announced', requestText('POST /read', ['Transfer-Encoding: chunked'], '1\r\nabc\r\n0\r\n\r\n'), 400],
      ['100 KiB of header section', requestText('GET /ok', [`A: ${long}`]), 431],
      ['many fields', requestText('GET /ok', Array.from({ length: 2000 }, (_, at) => `A-${at}: some value`)), 431],
      ['a URL of 100 KiB', requestText(`GET /${long}`), 431],
      ['a URL of 15 KiB', requestText(`GET /${long.slice(0, 15_000)}`, ['Connection: close']), 404],
      ['chunk extensions without end', requestText('POST /read', ['Transfer-Encoding: chunked'], `1;${long}`), 413],
    ]
    for (const [what, bytes, status] of rows) {
      const text = await exchange(port, bytes)
      assert.equal(parseAnswer(text).status, status, what)
      assert.equal(text.match(/^HTTP\/1\.1 /gm)?.length, 1, what)
      assert.match(text, /\r\nConnection: close\r\n/, what)
      assert.match(text, /\r\nDate: /, what)
    }
    assert.equal((await request(`${url}/ok`)).text, 'ok')
    const lineOf = (line: string): string => line.slice(-3)
    assert.deepEqual(lines('access.log').map(lineOf), [...rows.map(([, , status]) => String(status)), '200'], 'each has a log line')
    assert.match(lines('access.log')[0] ?? '', /^127\.0\.0\.1 - - \[.*\] "- - HTTP\/1\.1" 400$/)
    const { requests } = (await request(`${url}/svc-status`)).json() as { requests: { total: number; errors: number } }
    assert.deepEqual([requests.total, requests.errors], [rows.length + 1, rows.length])
    assert.ok(lines().some((line) => /\[INFO \] \[socket\] 400 for 127\.0\.0\.1: HPE_/.test(line)))
    assert.ok(!lines().some((line) => line.includes('[ERROR]')))
  })

  it('get JSON if their header section has arrived and prefers it', async (t) => {
    const { port } = await serve(t, actions)
    for (const [body, status, error] of [['x\r\n', 400, 'bad_request'], [`1;${'x'.repeat(100_000)}`, 413, 'body_too_large']] as const) {
      const answer = parseAnswer(await exchange(port, requestText('POST /read', ['Transfer-Encoding: chunked', 'Accept: application/json'], body)))
      assert.deepEqual([answer.status, answer.headers['content-type'], answer.body], [status, 'application/json; charset=utf-8', `{"error":"${error}"}`])
    }
  })

  it('of HTTP/1.0 are answered and the connection is closed', async (t) => {
    const { port } = await serve(t, actions)
    const { status, headers, body } = parseAnswer(await exchange(port, 'GET /ok HTTP/1.0\r\n\r\n'))
    assert.deepEqual([status, headers.connection, body], [200, 'close', 'ok'])
  })

  it('are answered even while the client keeps sending', async (t) => {
    const { port } = await serve(t, actions)
    const piece = 'x'.repeat(262_144)
    for (const start of ['\0', 'GET /ok HTTP/1.1\r\nA: ']) {
      const client = new Connection(t, port)
      const sending = (async () => {
        await client.send(start)
        for (let sent = 0; sent < 40; sent++) await client.send(piece)
      })()
      await client.answers(1)
      await Promise.race([sending, client.closed()])
      assert.match(client.received, start === '\0' ? /^HTTP\/1\.1 400 / : /^HTTP\/1\.1 431 /)
    }
  })

  it('are refused after the responses to earlier requests', async (t) => {
    const { port } = await serve(t, actions)
    const client = new Connection(t, port)
    await client.send(requestText('GET /wait') + requestText('GET /ok') + 'BAD\r\n\r\n')
    await client.send('more invalid input')
    const answers = splitAnswers(await client.closed())
    assert.deepEqual(answers.map(({ status, body }) => [status, body.slice(0, 6)]), [[200, 'waited'], [200, 'ok'], [400, '<!doct']])
  })

  it('get the refusal instead of their own response if their body is broken', async (t) => {
    const { port, lines } = await serve(t, actions)
    const client = new Connection(t, port)
    await client.send(requestText('GET /wait') + requestText('POST /read', ['Transfer-Encoding: chunked'], '1\r\nx\r\n'))
    await until(() => lines().some((line) => line.endsWith('waits')))
    await client.send('zz\r\n')
    const answers = splitAnswers(await client.closed())
    assert.deepEqual(answers.map(({ status }) => status), [200, 400])
    await until(() => lines('access.log').some((line) => line.endsWith('"POST /read HTTP/1.1" 400')))
  })

  it('are cut if their response has begun', async (t) => {
    const { port, url } = await serve(t, {
      ...actions,
      '/stream': `(ctx) => new Promise((resolve) => {
        ctx.signal.addEventListener('abort', resolve)
        ctx.response.writeHead(200, ['Content-Length', '9'])
        ctx.response.write('begun')
      })`,
    })
    const client = new Connection(t, port)
    await client.send(requestText('POST /stream', ['Transfer-Encoding: chunked'], '1\r\nx\r\n'))
    await until(() => client.received.endsWith('begun'))
    await client.send('zz\r\n')
    assert.ok((await client.closed()).endsWith('begun'))
    assert.equal((await request(`${url}/ok`)).text, 'ok')
  })

  it('are ignored if their client has disconnected', async (t) => {
    const { port, url, lines } = await serve(t, actions)
    const starts = ['', 'G', 'GET /ok HTTP/1.1\r\nHo', requestText('POST /read', ['Content-Length: 9'], 'abc')]
    for (const start of starts) {
      for (const how of ['end', 'destroy', 'reset'] as const) {
        const client = new Connection(t, port)
        await once(client.socket, 'connect')
        if (start !== '') await client.send(start)
        if (how === 'end') client.socket.end()
        else if (how === 'destroy') client.socket.destroy()
        else await client.reset()
        await client.closed()
      }
    }
    assert.equal((await request(`${url}/ok`)).text, 'ok')
    assert.ok(!lines().some((line) => /ERROR|FATAL/.test(line)))
  })
})

describe('header fields', () => {
  it('are all accepted, however many fit into a header section', async (t) => {
    const { port } = await serve(t, { '/': "async (ctx) => [ctx.headers['x-last'], ctx.headers.a?.length, await ctx.readText()].join()" })
    const many = Array.from({ length: 2000 }, () => 'a:')
    const answers = await exchange(port, requestText('POST /', [...many, 'X-Last: b', 'Connection: close', 'Content-Length: 3'], 'abc'))
    assert.match(answers, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nb,3998,abc$/)
  })
})

describe('CONNECT and Upgrade', () => {
  it('CONNECT is 405, after the responses to earlier requests', async (t) => {
    const { port, lines } = await serve(t, actions)
    const connect = requestText('CONNECT example.org:443')
    assert.equal(parseAnswer(await exchange(port, connect)).status, 405)
    const answers = splitAnswers(await exchange(port, requestText('GET /wait') + connect + 'tunnelled bytes'))
    assert.deepEqual(answers.map(({ status }) => status), [200, 405])
    assert.ok(lines().some((line) => /\[socket\] 405 for 127\.0\.0\.1: CONNECT/.test(line)))
  })

  it('survives a CONNECT whose client resets the connection', async (t) => {
    const { port, url } = await serve(t, actions)
    for (let round = 0; round < 20; round++) {
      const client = new Connection(t, port)
      await once(client.socket, 'connect')
      client.socket.write(requestText('CONNECT example.org:443') + 'x'.repeat(1000))
      await client.reset()
    }
    assert.equal((await request(`${url}/ok`)).text, 'ok')
  })

  it('serves an unsupported Upgrade as a plain request, and keeps the connection', async (t) => {
    const { port } = await serve(t, actions)
    const rows: [string, readonly string[], string, string][] = [
      ['GET /ok', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'], '', 'ok'],
      ['POST /read', ['Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 3'], 'abc', '3'],
      ['GET /ok', ['Connection: Upgrade', 'Upgrade: nothing/1'], '', 'ok'],
    ]
    const client = new Connection(t, port)
    for (const [at, [line, fields, body, text]] of rows.entries()) {
      await client.send(requestText(line, fields, body))
      assert.equal((await client.answers(2 * at + 1)).at(-1)?.body, text)
      await client.send(requestText('GET /ok'))
      assert.equal((await client.answers(2 * at + 2)).at(-1)?.body, 'ok')
    }
    client.socket.destroy()
  })
})

describe('server.max_connections_per_ip', () => {
  it('refuses excess connections, and counts only open ones', async (t) => {
    const { port, lines } = await serve(t, actions, { 'server.max_connections_per_ip': 2 })
    const [first, second, third] = [new Connection(t, port), new Connection(t, port), new Connection(t, port)]
    for (const client of [first, second]) {
      await client.send(requestText('GET /ok'))
      await client.answers(1)
    }
    assert.equal(await third.closed(), '')
    assert.ok(lines().some((line) => line.includes('[socket] refused a connection from 127.0.0.1: it already has 2 open')))
    const elsewhere = new Connection(t, port, { localAddress: '127.0.0.2' })
    await elsewhere.send(requestText('GET /ok'))
    await elsewhere.answers(1)
    first.socket.end()
    await first.closed()
    await until(async () => (await exchange(port, requestText('GET /ok', ['Connection: close']))) !== '')
    second.socket.end()
    await second.closed()
    await until(async () => (await exchange(port, requestText('GET /ok', ['Connection: close']))) !== '')
    elsewhere.socket.destroy()
  })

  it('does not count trusted proxies', async (t) => {
    const config = { 'server.max_connections_per_ip': 1, 'server.trusted_proxies': ['127.0.0.1'] }
    const { port } = await serve(t, actions, config)
    const clients = [new Connection(t, port), new Connection(t, port)]
    for (const client of clients) {
      await client.send(requestText('GET /ok'))
      await client.answers(1)
    }
    for (const client of clients) client.socket.destroy()
  })
})

describe('a body over the limit', () => {
  const config = { 'server.body_limit_kb': 64 }

  it('is answered with 413, which even a client that keeps sending receives', async (t) => {
    const { port } = await serve(t, actions, config)
    const megabyte = 'x'.repeat(1_048_576)
    for (const chunked of [false, true]) {
      const client = new Connection(t, port)
      client.socket.pause() // It sends everything before it reads the response.
      const fields = chunked ? ['Transfer-Encoding: chunked'] : ['Content-Length: 33554432']
      await client.send(requestText('POST /read', fields))
      for (let sent = 0; sent < 32; sent++) await client.send(chunked ? `100000\r\n${megabyte}\r\n` : megabyte)
      client.socket.resume()
      const [answer, ...more] = splitAnswers(await client.closed())
      assert.deepEqual([answer?.status, answer?.headers.connection, more], [413, 'close', []])
    }
  })
})

describe('Expect: 100-continue', () => {
  const expect = (fields: readonly string[]): string[] => ['Expect: 100-continue', ...fields]

  it('is answered when the body is read, and not before', async (t) => {
    const { port } = await serve(t, actions, { 'server.body_limit_kb': 1 })
    const client = new Connection(t, port)
    await client.send(requestText('POST /read', expect(['Content-Length: 3'])))
    await until(() => client.received === 'HTTP/1.1 100 Continue\r\n\r\n')
    await client.send('abc')
    assert.deepEqual((await client.answers(2)).map(({ status, body }) => [status, body]), [[100, ''], [200, '3']])
    await client.send(requestText('GET /ok'))
    assert.equal((await client.answers(3))[2]?.body, 'ok')
    client.socket.destroy()
  })

  it('is not answered for 413, 417 or an unread body; the connection is closed', async (t) => {
    const { port } = await serve(t, actions, { 'server.body_limit_kb': 1 })
    const rows: [string, number][] = [
      [requestText('POST /read', expect(['Content-Length: 1025'])), 413],
      [requestText('POST /ok', expect(['Content-Length: 3'])), 200],
      [requestText('POST /none', expect(['Content-Length: 3'])), 404],
      [requestText('POST /read', ['Expect: cookies', 'Content-Length: 3', 'Connection: close']), 417],
    ]
    for (const [bytes, status] of rows) {
      const answers = splitAnswers(await exchange(port, bytes))
      assert.deepEqual(answers.map((answer) => [answer.status, answer.headers.connection]), [[status, 'close']])
    }
  })

  it('waits for its turn behind another response', async (t) => {
    const { port } = await serve(t, actions)
    const client = new Connection(t, port)
    await client.send(requestText('GET /wait') + requestText('POST /read', expect(['Content-Length: 3'])))
    await client.answers(2)
    await client.send('abc')
    assert.deepEqual((await client.answers(3)).map(({ status }) => status), [200, 100, 200])
    client.socket.destroy()
  })
})

describe('TLS', () => {
  it('survives plain HTTP and garbage, and knows the address of a disconnected client', async (t) => {
    const { cert, key } = makeCertificate(temporaryFolder(), 'server')
    const config = { 'server.tls.cert': cert, 'server.tls.key': key }
    const leave = "(ctx) => new Promise((resolve) => { ctx.log('waits'); ctx.signal.onabort = resolve })"
    const { url, port, lines } = await serve(t, { ...actions, '/leave': leave, '/secure': '(ctx) => String(ctx.secure)' }, config)
    for (const bytes of [requestText('GET /ok'), 'x'.repeat(100_000)]) {
      const client = new Connection(t, port)
      await client.send(bytes)
      await client.closed()
    }
    const ca = readFileSync(cert)
    const socket = tlsConnect({ port, host: '127.0.0.1', ca })
    await once(socket, 'secureConnect')
    socket.write(requestText('GET /leave'))
    await until(() => lines().some((line) => line.endsWith('waits')))
    socket.destroy()
    await until(() => lines('access.log').length === 1)
    assert.match(lines('access.log')[0] ?? '', /^127\.0\.0\.1 - .*499$/)
    const [response] = await once(tlsRequest(`${url}/secure`, { ca, agent: false }).end(), 'response')
    assert.equal(Buffer.concat(await response.toArray()).toString(), 'true')
  })
})
