import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import type { Body } from '../../lib/http/body.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { assertNoLeftovers, multipart, readAll, rejectsWith, serveBody } from './body-support.ts'

const urlencoded = 'application/x-www-form-urlencoded'
const multipartType = 'multipart/form-data; boundary=b'
const field = 'Content-Disposition: form-data; name="f"'

const post = (body: string | Uint8Array | FormData | URLSearchParams, type?: string): RequestInit => ({
  method: 'POST',
  body: body as string, // fetch accepts the others too, but the types of this Node version lack them
  headers: type === undefined ? {} : { 'Content-Type': type },
})

const rawPost = (body: Buffer, length = body.length): Buffer =>
  Buffer.concat([
    Buffer.from(`POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${multipartType}\r\nContent-Length: ${length}\r\n\r\n`),
    body,
  ])

/** A form in a shape that JSON can hold. */
async function show(body: Body): Promise<unknown> {
  const form = await body.form()
  const files = form.files.map((file) => ({ ...file, bytes: file.bytes?.toString(), path: file.path !== undefined }))
  return { fields: [...form.entries()], files }
}

test('reads a urlencoded form', async (t) => {
  const server = await serveBody(t, {}, async (body) => {
    assert.equal(await body.form(), await body.form())
    assert.equal(await body.text(), (await body.bytes()).toString())
    return show(body)
  })
  const written = new URLSearchParams({ 'a b': 'é+&=' })
  for (const init of [post(written), post('a+b=%C3%A9%2b%26%3D', urlencoded.toUpperCase())]) {
    const answer = await fetch(server.url, init)
    assert.deepEqual(await answer.json(), { fields: [['a b', 'é+&=']], files: [] })
  }
})

test('refuses invalid forms', async (t) => {
  const server = await serveBody(t, {}, (body) => body.form())
  const rows: Array<[string, string, number, string]> = [
    ['a=1', 'text/plain', 415, 'unsupported_media_type'],
    ['{}', 'application/json', 415, 'unsupported_media_type'],
    ['a=1', 'nonsense', 415, 'unsupported_media_type'],
    ['a=1', `${urlencoded}; charset=utf-16`, 415, 'unsupported_media_type'],
    ['a=1', `${urlencoded}; charset=utf-7`, 415, 'unsupported_media_type'],
    ['a=%ff', urlencoded, 400, 'bad_form'],
    ['--b--', 'multipart/form-data', 400, 'bad_form'],
    ['--b--', 'multipart/form-data; boundary=""', 400, 'bad_form'],
    ['--b--', 'multipart/form-data; boundary=b; boundary=c', 415, 'unsupported_media_type'],
    ['--b--', 'multipart/mixed; boundary=b', 415, 'unsupported_media_type'],
    ['--c--', multipartType, 400, 'bad_form'],
    [`--b\r\n${field}\r\n\r\n`, multipartType, 400, 'bad_form'],
  ]
  for (const [text, type, status, code] of rows) {
    const answer = await fetch(server.url, post(text, type))
    assert.deepEqual([answer.status, await answer.json()], [status, { error: code }], `${type} ${text}`)
  }
  const latin = multipart('b', [[field, Buffer.from([0xe9])]])
  assert.deepEqual((await (await fetch(server.url, post(latin, multipartType))).json()), { error: 'bad_form' })
})

test('reports a malformed Content-Type', async (t) => {
  const server = await serveBody(t, {}, (body) => body.form().catch((error: Error) => ({ message: error.message })))
  for (const type of ['multipart/form-data; a==z; boundary=b', 'multipart/form-data; boundary=b; boundary=c', 'a b']) {
    const { message } = (await (await fetch(server.url, post('--b--', type))).json()) as { message: string }
    assert.equal(message, `Cannot read the body: its Content-Type is malformed: it is ${JSON.stringify(type)}`)
  }
})

test('reads a multipart form with fields and small files', async (t) => {
  const folder = temporaryFolder()
  const server = await serveBody(t, { temporaryFolder: folder }, async (body) => {
    const shown = await show(body)
    assert.deepEqual(readdirSync(folder), [])
    assert.equal(body.consumed, true)
    return shown
  })
  const form = new FormData()
  form.append('text', 'é\r\n"')
  form.append('text', '')
  form.append('na"me', 'x')
  form.append('__proto__', 'y')
  form.append('file', new Blob(['content'], { type: 'Text/Plain' }), 'C:\\dir\\say "hi".txt')
  form.append('file', new Blob([]), 'empty.txt')
  assert.deepEqual(await (await fetch(server.url, post(form))).json(), {
    fields: [['text', 'é\r\n"'], ['text', ''], ['na"me', 'x'], ['__proto__', 'y']],
    files: [
      { name: 'file', filename: 'say "hi".txt', type: 'text/plain', size: 7, bytes: 'content', path: false },
      { name: 'file', filename: 'empty.txt', type: 'application/octet-stream', size: 0, bytes: '', path: false },
    ],
  })

  const inputs = multipart('b', [
    [`${field}; filename=""\r\nContent-Type: application/octet-stream`, ''],
    [`${field}; filename=""`, 'x'],
    [`${field}\r\nContent-Type: text/plain; charset=iso-8859-1`, Buffer.from([0xe9])],
  ])
  assert.deepEqual(await (await fetch(server.url, post(inputs, multipartType))).json(), {
    fields: [['f', 'é']],
    files: [{ name: 'f', filename: '', type: 'application/octet-stream', size: 1, bytes: 'x', path: false }],
  })
  assert.deepEqual(await (await fetch(server.url, post('--b--\r\n', multipartType))).json(), { fields: [], files: [] })
})

test('keeps a file up to 64 KiB in memory and a larger one on disk, until the request has ended', async (t) => {
  const folder = temporaryFolder()
  const content = (length: number): Buffer => Buffer.alloc(length, 'some content\r\n--')
  const sizes = [65_536, 65_537, 0, 300_000]
  const body = multipart('b', sizes.map((size, index) => [`${field}; filename="../${index}"`, content(size)]))
  for (const bytesFirst of [false, true]) {
    const server = await serveBody(t, { temporaryFolder: folder }, async (reader) => {
      if (bytesFirst) assert.equal((await reader.bytes()).length, body.length)
      const { files } = await reader.form()
      assert.deepEqual(files.map((file) => file.size), sizes)
      assert.deepEqual(files.map((file) => file.filename), ['0', '1', '2', '3'])
      for (const file of files) {
        assert.deepEqual([file.path === undefined, file.bytes === undefined], [file.size <= 65_536, file.size > 65_536])
        if (file.path === undefined) {
          assert.ok(file.bytes?.equals(content(file.size)))
        } else {
          assert.ok(readFileSync(file.path).equals(content(file.size)))
          assert.equal(statSync(file.path).mode & 0o777, 0o600)
          assert.equal(statSync(join(file.path, '..')).mode & 0o777, 0o700)
        }
      }
      if (bytesFirst) renameSync(files[1]?.path ?? '', join(folder, 'kept'))
      return readdirSync(folder).length
    })
    assert.equal(await (await fetch(server.url, post(body, multipartType))).json(), bytesFirst ? 2 : 1)
    assert.equal((await server.next()).error, undefined)
    assert.deepEqual(readdirSync(folder), bytesFirst ? ['kept'] : [])
  }
})

test('has no bytes of a multipart form that was streamed', async (t) => {
  const server = await serveBody(t, {}, async (body) => {
    const form = body.form()
    await rejectsWith(body.bytes(), 415, 'unsupported_media_type')
    assert.equal((await form).get('f'), 'x')
    await rejectsWith(body.json(), 415, 'unsupported_media_type')
    return (await rejectsWith(body.text(), 415, 'unsupported_media_type')).message
  })
  const answer = await fetch(server.url, post(multipart('b', [[field, 'x']]), multipartType))
  assert.match(String(await answer.json()), /read the bytes before the form/)
})

test('removes the files when the action throws', async (t) => {
  const folder = temporaryFolder()
  const server = await serveBody(t, { temporaryFolder: folder }, async (body) => {
    const { files } = await body.form()
    assert.ok(statSync(files[0]?.path ?? '').isFile())
    throw new Error('the action fails')
  })
  const body = multipart('b', [[`${field}; filename="a"`, Buffer.alloc(100_000)]])
  assert.equal((await fetch(server.url, post(body, multipartType))).status, 500)
  assert.match(String((await server.next()).error), /the action fails/)
  assertNoLeftovers(folder)
})

test('removes the files when the client disconnects in the middle of a file', async (t) => {
  const folder = temporaryFolder()
  const server = await serveBody(t, { temporaryFolder: folder }, (body) => body.form())
  const body = multipart('b', [
    [`${field}; filename="a"`, Buffer.alloc(100_000)],
    [`${field}; filename="b"`, Buffer.alloc(400_000)],
  ])
  const socket = connect(server.port, '127.0.0.1')
  socket.write(rawPost(body).subarray(0, 350_000))
  await fileAppears(folder)
  socket.destroy()
  const { error } = await server.next()
  assert.equal(error instanceof HttpError && error.code, 'client_closed')
  assertNoLeftovers(folder)
})

test('removes the files when the limit is exceeded, or the framing is invalid, in the middle of a file', async (t) => {
  const folder = temporaryFolder()
  const options = { temporaryFolder: folder, maxBytes: 300_000 }
  const server = await serveBody(t, options, (body) => body.form())
  const start = Buffer.from(`--b\r\n${field}; filename="a"\r\n\r\n`)
  const chunk = (bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${multipartType}\r\nTransfer-Encoding: chunked\r\n\r\n`
  for (const [last, status, code] of [
    [Buffer.alloc(200_000), 413, 'body_too_large'],
    [Buffer.from('\r\n--b?'), 400, 'bad_form'],
  ] as const) {
    const socket = await server.connect()
    socket.on('error', () => {}) // the server closes while bytes are still arriving
    const closed = once(socket.resume(), 'close')
    socket.write(Buffer.concat([Buffer.from(head), chunk(start), chunk(Buffer.alloc(200_000))]))
    await fileAppears(folder)
    socket.write(chunk(last))
    const { error } = await server.next()
    assert.deepEqual(error instanceof HttpError && [error.status, error.code], [status, code])
    assertNoLeftovers(folder)
    await closed
  }
})

test('aborts a running upload when it is disposed of', async (t) => {
  const folder = temporaryFolder()
  const server = await serveBody(t, { temporaryFolder: folder }, async (body, request) => {
    const form = body.form()
    await new Promise((resolve) => request.once('data', resolve))
    await body.dispose()
    assertNoLeftovers(folder)
    await rejectsWith(form, 400, 'client_closed')
    assert.equal(body.consumed, false)
    return 'ended'
  })
  const socket = await server.connect()
  const body = multipart('b', [[`${field}; filename="a"`, Buffer.alloc(900_000)]])
  socket.write(rawPost(body).subarray(0, 150_000))
  assert.match(await readAll(socket), /"ended"/)
})

test('writes no file for a form that is read after the request', async (t) => {
  const folder = temporaryFolder()
  const server = await serveBody(t, { temporaryFolder: folder }, async (body) => {
    await body.bytes()
    void body.dispose()
    return body.form()
  })
  const body = multipart('b', [[`${field}; filename="a"`, Buffer.alloc(100_000)]])
  assert.equal((await fetch(server.url, post(body, multipartType))).status, 400)
  assertNoLeftovers(folder)
})

test('reports that uploads cannot be stored, and leaves no file', async (t) => {
  const folder = temporaryFolder()
  const body = multipart('b', [[`${field}; filename="a"`, Buffer.alloc(400_000)], [field, 'after']])
  const refuse = async (temporary: string, reason: RegExp): Promise<void> => {
    const server = await serveBody(t, { temporaryFolder: temporary }, (reader) => reader.form())
    const socket = await server.connect()
    socket.on('error', () => {}) // the server closes while bytes are still arriving
    const closed = once(socket.resume(), 'close')
    socket.write(rawPost(body, 1_000_000)) // the rest never arrives: it is not waited for
    const { error } = await server.next()
    assert.ok(error instanceof HttpError)
    assert.deepEqual([error.status, error.code], [500, 'internal_error'])
    assert.match(error.message, reason)
    assert.ok(error.cause instanceof Error)
    await closed
  }
  const file = join(temporaryFolder(), 'file')
  writeFileSync(file, '')
  await refuse(join(file, 'folder'), /Cannot store an uploaded file in .*folder: ENOTDIR/)
  await fullDisk(t, folder)
  await refuse(folder, /Cannot store an uploaded file in .*: ENOSPC: no space left on device/)
  assertNoLeftovers(folder)
})

test('holds no more of an upload in memory than a small window', async (t) => {
  const folder = temporaryFolder()
  const size = 16 * 1024 * 1024
  let received = 0
  let most = 0
  const server = await serveBody(t, { temporaryFolder: folder, maxBytes: 2 * size }, async (body, request) => {
    request.on('data', (chunk: Buffer) => {
      most = Math.max(most, received - bytesIn(folder))
      received += chunk.length
    })
    const { files } = await body.form()
    return files.map((file) => statSync(file.path ?? '').size)
  })
  const socket = await server.connect()
  const parts = multipart('b', [[`${field}; filename="a"`, '']])
  const at = parts.lastIndexOf('\r\n--b--')
  const head = rawPost(parts.subarray(0, at), parts.length + size)
  socket.write(head)
  const piece = Buffer.alloc(65_536, 'x')
  for (let sent = 0; sent < size; sent += piece.length) {
    if (!socket.write(piece)) await once(socket, 'drain')
  }
  socket.write(parts.subarray(at))
  assert.deepEqual((await server.next()).value, [size])
  assert.ok(received > size && most > 0 && most < 70_000, `${most} bytes were neither on the disk nor waited for`)
  assertNoLeftovers(folder)
})

/** Resolves when a non-empty file exists somewhere in the folder. */
async function fileAppears(folder: string): Promise<void> {
  while (bytesIn(folder) === 0) await new Promise((resolve) => setImmediate(resolve))
}

/** Returns the bytes of all files in the folder, recursively. */
function bytesIn(folder: string): number {
  return readdirSync(folder, { recursive: true })
    .map((entry) => statSync(join(folder, String(entry)), { throwIfNoEntry: false }))
    .reduce((sum, found) => sum + (found?.isFile() === true ? found.size : 0), 0)
}

/** From the second write on, files of this process accept no more bytes. */
async function fullDisk(t: TestContext, folder: string): Promise<void> {
  const handle = await open(folder)
  const prototype = Object.getPrototypeOf(handle) as typeof handle // the prototype of every open file
  await handle.close()
  const append = prototype.appendFile
  let writes = 0
  t.mock.method(prototype, 'appendFile', function (this: typeof handle, bytes: Buffer): Promise<void> {
    writes += 1
    if (writes === 1) return append.call(this, bytes)
    return Promise.reject(Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }))
  })
}
