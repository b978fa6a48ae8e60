import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'

import { announcesBody } from '../../lib/http/request-fields.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { readAll, rejectsWith, serveBody } from './body-support.ts'

const post = (body: string | Uint8Array, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  body: body as string, // fetch accepts bytes too, but the types of this Node version lack it
  headers,
})

test('returns the bytes, the text and the JSON of a body, in any order and repeatedly', async (t) => {
  const server = await serveBody(t, {}, async (body) => {
    const [text, json, bytes] = await Promise.all([body.text(), body.json(), body.bytes()])
    assert.equal(await body.text(), text)
    assert.equal(await body.json(), json)
    assert.equal(await body.bytes(), bytes)
    assert.equal(body.consumed, true)
    return [bytes.toString('hex'), text, json]
  })
  const answer = await fetch(server.url, post('{"a":"é"}'))
  assert.deepEqual(await answer.json(), ['7b2261223a22c3a9227d', '{"a":"é"}', { a: 'é' }])
})

test('returns nothing for a request without a body, and does not start to read', async (t) => {
  let started = 0
  const server = await serveBody(t, { onStart: () => void (started += 1) }, async (body, request) => {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    assert.equal(announcesBody(length, encoding), false)
    assert.equal(body.consumed, true)
    const form = await body.form()
    return [(await body.bytes()).length, await body.text(), [...form.entries()], form.files]
  })
  for (const init of [{}, { method: 'POST' }]) {
    assert.deepEqual(await (await fetch(server.url, init)).json(), [0, '', [], []])
  }
  assert.equal(started, 0)
})

test('assembles a body from chunks of one byte', async (t) => {
  const server = await serveBody(t, {}, (body) => body.text())
  const socket = await server.connect()
  const text = 'x'.repeat(2000) + 'é'
  const chunks = [...Buffer.from(text)].map((byte) => Buffer.from([0x31, 13, 10, byte, 13, 10]))
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n')
  socket.write(Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]))
  await readAll(socket)
  assert.equal((await server.next()).value, text)
})

test('decodes text by its charset', async (t) => {
  const server = await serveBody(t, {}, (body) => body.text())
  const rows: Array<[string, number[], number, unknown]> = [
    ['text/plain', [0xc3, 0xa9], 200, 'é'],
    ['text/plain', [0xef, 0xbb, 0xbf, 0x61], 200, 'a'],
    ['text/plain', [0xef, 0xbb], 400, { error: 'bad_request' }],
    ['text/plain; charset=utf-8', [0xff], 400, { error: 'bad_request' }],
    ['text/plain; charset="UTF8"', [0xc3, 0xa9], 200, 'é'],
    ['text/plain; charset=US-ASCII', [0x61], 200, 'a'],
    ['text/plain; charset=ISO-8859-1', [0xe9], 200, 'é'],
    ['text/plain; charset=latin1', [0xef, 0xbb, 0xbf], 200, 'ï»¿'],
    ['text/plain; charset=utf-16', [0x61, 0], 415, { error: 'unsupported_media_type' }],
    ['nonsense;;;', [0x61], 200, 'a'],
  ]
  for (const [type, bytes, status, expected] of rows) {
    const answer = await fetch(server.url, post(Buffer.from(bytes), { 'Content-Type': type }))
    assert.equal(answer.status, status, type)
    assert.deepEqual(await answer.json(), expected, type)
  }
})

test('refuses bad JSON with its position and without its text', async (t) => {
  const server = await serveBody(t, {}, (body) => body.json())
  const rows: Array<[string | Uint8Array, string]> = [
    ['{"password":"hunter2",\n x', 'line 2, column 2: '],
    ['{"a":[1,2', 'line 1, column 10: '],
    [Buffer.from([0x22, 0xff, 0x22]), 'it is not UTF-8'],
  ]
  for (const [text, message] of rows) {
    const answer = await fetch(server.url, post(text))
    assert.deepEqual([answer.status, await answer.json()], [400, { error: 'bad_json' }])
    const { error } = await server.next()
    assert.ok(error instanceof HttpError)
    assert.ok(error.message.startsWith(`Cannot read the body as JSON: ${message}`), error.message)
    assert.doesNotMatch(error.message, /hunter2/)
    assert.equal(error.cause, undefined)
  }
  const empty = await fetch(server.url, { method: 'POST' })
  assert.deepEqual([empty.status, await empty.json()], [400, { error: 'bad_json' }])
  assert.equal(((await server.next()).error as HttpError).message, 'Cannot read the body as JSON: it is empty')
})

test('keeps __proto__ in JSON as an own key', async (t) => {
  const server = await serveBody(t, {}, (body) => body.json())
  await fetch(server.url, post('{"__proto__":{"admin":true},"constructor":1}'))
  const { value } = await server.next()
  assert.deepEqual(Object.keys(value as object), ['__proto__', 'constructor'])
  assert.equal(Object.getPrototypeOf(value), Object.prototype)
  assert.equal(({} as { admin?: unknown }).admin, undefined)
})

test('refuses a Content-Encoding, and names the supported one', async (t) => {
  const server = await serveBody(t, {}, (body) => body.bytes())
  for (const encoding of ['gzip', 'gzip, identity', 'nonsense']) {
    const answer = await fetch(server.url, post('x', { 'Content-Encoding': encoding }))
    assert.deepEqual([answer.status, await answer.json()], [415, { error: 'unsupported_encoding' }])
    const { error } = await server.next()
    assert.deepEqual(error instanceof HttpError && error.headers, { 'Accept-Encoding': 'identity' })
  }
  assert.equal((await fetch(server.url, post('x', { 'Content-Encoding': 'Identity' }))).status, 200)
})

test('accepts a body of exactly the limit', async (t) => {
  const server = await serveBody(t, { maxBytes: 100 }, async (body) => (await body.bytes()).length)
  const socket = await server.connect()
  const chunked = `64\r\n${'x'.repeat(100)}\r\n0\r\n\r\n`
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`)
  assert.match(await readAll(socket), /^HTTP\/1.1 200 .*\r\n100\r\n/s)
  assert.equal(await (await fetch(server.url, post('x'.repeat(100)))).json(), 100)
})

test('refuses a body that announces too large a length before any of it arrives', async (t) => {
  let started = 0
  const server = await serveBody(t, { maxBytes: 100, onStart: () => void (started += 1) }, async (body) => {
    await rejectsWith(body.json(), 413, 'body_too_large')
    await rejectsWith(body.form(), 415, 'unsupported_media_type')
    assert.equal(body.consumed, false)
    return body.bytes()
  })
  const socket = await server.connect()
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n')
  assert.match(await readAll(socket), /^HTTP\/1.1 413 .*Connection: close/s)
  assert.equal(started, 0)
})

test('sends no 100 Continue for a body that is too large', async (t) => {
  let started = 0
  const onWait = (): never => {
    throw new HttpError(503, 'overloaded')
  }
  const server = await serveBody(t, { onWait, onStart: () => void (started += 1) }, (body) => body.bytes())
  const socket = await server.connect()
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\n')
  assert.match(await readAll(socket), /^HTTP\/1.1 503 /)
  assert.equal(started, 0)
})

test('refuses a chunked body as soon as it exceeds the limit, and reads no further', async (t) => {
  const server = await serveBody(t, { maxBytes: 100_000 }, async (body, request) => {
    const error = await rejectsWith(body.bytes(), 413, 'body_too_large')
    assert.equal(body.consumed, false)
    assert.equal(request.isPaused(), true)
    throw error
  })
  const socket = await server.connect()
  socket.on('error', () => {}) // the server closes while bytes are still arriving
  const closed = once(socket.resume(), 'close')
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  for (let count = 0; count < 7; count += 1) socket.write(`4000\r\n${'x'.repeat(16_384)}\r\n`)
  assert.ok((await server.next()).error instanceof HttpError)
  await closed
})

test('begins once, just before reading, and so can send 100 Continue', async (t) => {
  let started = 0
  const server = await serveBody(t, { onStart: () => void (started += 1) }, async (body, request) => {
    request.socket.write('HTTP/1.1 100 Continue\r\n\r\n')
    await body.text()
    return (await body.bytes()).length
  })
  const socket = await server.connect()
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n')
  const [interim] = await once(socket, 'data')
  assert.match(String(interim), /^HTTP\/1.1 100 /)
  socket.write('12345')
  assert.match(await readAll(socket), /\r\n5\r\n/)
  assert.equal(started, 1)
})

test('rejects when the client disconnects midway, even if nobody awaits it', async (t) => {
  for (const chunked of [false, true]) {
    const began = deferred()
    const server = await serveBody(t, {}, async (body, request) => {
      void body.json()
      void body.form()
      request.once('data', () => began.resolve())
      await new Promise((resolve) => request.on('close', resolve))
      assert.equal(body.consumed, false)
      await rejectsWith(body.text(), 400, 'client_closed')
      return body.bytes()
    })
    const socket = connect(server.port, '127.0.0.1')
    const framing = chunked ? 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n' : 'Content-Length: 10\r\n\r\nhello'
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${framing}`)
    await began.promise
    socket.destroy()
    const { error } = await server.next()
    assert.equal(error instanceof HttpError && error.code, 'client_closed')
  }
})

test('rejects if the client disconnected before reading begins', async (t) => {
  const server = await serveBody(t, {}, async (body, request) => {
    await new Promise((resolve) => request.on('close', resolve))
    return body.bytes()
  })
  const socket = connect(server.port, '127.0.0.1')
  socket.end('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello')
  const { error } = await server.next()
  assert.equal(error instanceof HttpError && error.code, 'client_closed')
})

test('aborts a running read when it is disposed of, and starts none afterwards', async (t) => {
  const server = await serveBody(t, {}, async (body) => {
    const reading = body.bytes()
    assert.equal(body.dispose(), undefined)
    assert.equal(body.dispose(), undefined)
    await rejectsWith(reading, 400, 'client_closed')
    await rejectsWith(body.form(), 400, 'client_closed')
    return body.json()
  })
  const socket = await server.connect()
  const type = 'Content-Type: application/x-www-form-urlencoded'
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${type}\r\nContent-Length: 10\r\n\r\nhello`)
  assert.match(await readAll(socket), /^HTTP\/1.1 400 /)
  const late = await serveBody(t, {}, (body) => {
    void body.dispose()
    return body.bytes()
  })
  assert.equal((await fetch(late.url, post('x'))).status, 400)
})

test('ignores everything that arrives after the end of a read', async (t) => {
  let begun = (): void => {}
  const hasBegun = new Promise<void>((resolve) => (begun = resolve))
  const server = await serveBody(t, {}, async (body, request) => {
    const reading = body.bytes()
    await once(request, 'data')
    void body.dispose()
    await rejectsWith(reading, 400, 'client_closed')
    const ended = once(request, 'end')
    request.resume()
    begun()
    await ended
    return body.received
  })
  const socket = await server.connect()
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello')
  await hasBegun
  socket.write('world')
  assert.deepEqual(await server.next(), { value: 5 })
})

test('throws if other code has read the request', async (t) => {
  const server = await serveBody(t, {}, async (body, request) => {
    for await (const chunk of request) assert.ok(chunk)
    return body.bytes()
  })
  assert.equal((await fetch(server.url, post('x'))).status, 500)
  assert.match(String((await server.next()).error), /other code has read from the request/)
})

interface Deferred {
  readonly promise: Promise<void>
  readonly resolve: () => void
}

function deferred(): Deferred {
  let resolve = (): void => {}
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}
