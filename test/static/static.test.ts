import assert from 'node:assert/strict'
import { renameSync, rmSync, statSync, symlinkSync, truncateSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { StaticFiles } from '../../lib/static/static.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { openFilesBelow, serveStatic } from './static-server.ts'

const page = '<p>Grüße</p>'
const script = 'let value = 1\n'.repeat(500)
const large = new Seeded(7).bytes(300_000)

test('serves a small file with its type, validators and length', async (t) => {
  const server = await serveStatic(t, { 'page.html': page })
  utimesSync(join(server.folder, 'page.html'), 1_700_000_000.9, 1_700_000_000.9)
  const { status, headers, body } = await server.ask('/page.html')
  const { etag, date, connection, ...rest } = headers
  assert.equal(status, 200)
  assert.equal(body.toString(), page)
  assert.match(etag ?? '', /^"[\w-]{22}"$/)
  assert.ok(date !== undefined && connection !== undefined)
  assert.deepEqual(rest, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': String(Buffer.byteLength(page)),
    'accept-ranges': 'bytes',
    'cache-control': 'no-cache',
    'last-modified': 'Tue, 14 Nov 2023 22:13:20 GMT',
    vary: 'Accept-Encoding',
    'x-content-type-options': 'nosniff',
    'x-length': String(Buffer.byteLength(page)),
  })
})

test('answers HEAD as GET, without the body', async (t) => {
  const server = await serveStatic(t, { 'page.html': page, 'large.bin': large }, { smallMaxBytes: 1000 })
  for (const path of ['/page.html', '/large.bin']) {
    const [get, head] = [await server.ask(path), await server.ask(path, { Range: 'bytes=0-1' }, 'HEAD')]
    assert.equal(head.body.length, 0)
    assert.deepEqual(
      [head.status, head.headers['content-length'], head.headers.etag, head.headers['x-length']],
      [200, get.headers['content-length'], get.headers.etag, '0'],
    )
  }
  await server.allClosed()
})

test('names the methods of a file, and refuses others', async (t) => {
  const server = await serveStatic(t, { 'page.html': page, 'index.html': page, '.hidden': '', 'folder/a.txt': '' })
  symlinkSync('../outside.txt', join(server.folder, 'out.txt'))
  for (const path of ['/page.html', '/']) {
    for (const [method, status] of [['POST', 405], ['PUT', 405], ['DELETE', 405], ['OPTIONS', 204]] as const) {
      const { status: found, headers } = await server.ask(path, {}, method)
      assert.deepEqual([found, headers.allow], [status, 'GET, HEAD, OPTIONS'], `${method} ${path}`)
    }
  }
  for (const path of ['/none', '/.hidden', '/folder', '/folder/', '/out.txt', '/a/../page.html']) {
    for (const method of ['POST', 'OPTIONS']) {
      assert.equal((await server.ask(path, {}, method)).status, 404, `${method} ${path}`)
    }
  }
})

test('answers requests for unknown pages with the fallback', async (t) => {
  const server = await serveStatic(t, { 'app/index.html': page, 'a.txt': 'a' }, { fallback: 'app/index.html' })
  const rows: [string, string, Record<string, string>, number][] = [
    ['GET', '/orders/7', { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }, 200],
    ['HEAD', '/orders/7', { Accept: 'text/html' }, 200],
    ['GET', '/.env', { Accept: 'text/html' }, 200],
    ['GET', '/app', { Accept: 'text/html' }, 301],
    ['GET', '/orders/7', { Accept: 'application/json' }, 404],
    ['GET', '/orders/7', { Accept: '*/*' }, 404],
    ['GET', '/orders/7', { Accept: 'text/html;q=0, */*' }, 404],
    ['GET', '/orders/7', { Accept: 'text/html;q=0.8' }, 200],
    ['GET', '/orders/7', {}, 404],
    ['POST', '/orders/7', { Accept: 'text/html' }, 404],
    ['GET', '/svc-nothing', { Accept: 'text/html' }, 404],
    ['GET', '/%', { Accept: 'text/html' }, 400],
  ]
  for (const [method, path, headers, status] of rows) {
    const answer = await server.ask(path, headers, method)
    assert.equal(answer.status, status, `${method} ${path} ${JSON.stringify(headers)}`)
    if (status === 200 && method === 'GET') assert.equal(answer.body.toString(), page)
  }
  const { headers } = await server.ask('/orders/7', { Accept: 'text/html' })
  assert.deepEqual(
    [headers['content-type'], headers['cache-control'], headers.vary],
    ['text/html; charset=utf-8', 'no-cache', 'Accept-Encoding, Accept'],
  )
  rmSync(join(server.folder, 'app/index.html'))
  assert.equal((await server.ask('/orders/7', { Accept: 'text/html' })).status, 404)
})

test('lets clients keep immutable files for a year', async (t) => {
  const files = ['assets/app.1234.js', 'assets/deep/a.css', 'a.1234.js', 'x/y/z.woff2', 'z.woff2', 'app.js']
  const immutable = ['assets/**', '*.????.js', '/**/*.woff2']
  const server = await serveStatic(t, Object.fromEntries(files.map((name) => [name, 'x'])), { immutable })
  for (const name of files) {
    const expected = name === 'app.js' ? 'no-cache' : 'max-age=31536000, immutable'
    assert.equal((await server.ask(`/${name}`)).headers['cache-control'], expected, name)
  }
})

test('sends files with the types of the configuration', async (t) => {
  const types = { '.GLB': 'model/gltf-binary', txt: 'text/x-own' }
  const server = await serveStatic(t, { 'a.glb': 'x', 'a.txt': 'x', 'a.html': 'x' }, { types })
  for (const [name, type] of [['a.glb', 'model/gltf-binary'], ['a.txt', 'text/x-own'], ['a.html', 'text/html; charset=utf-8']]) {
    assert.equal((await server.ask(`/${name}`)).headers['content-type'], type)
  }
})

test('serves a large file in pieces, and closes it', async (t) => {
  const server = await serveStatic(t, { 'large.bin': large }, { smallMaxBytes: 1000 })
  for (let round = 0; round < 5; round += 1) {
    const { status, headers, body } = await server.ask('/large.bin')
    assert.deepEqual([status, headers['content-length'], headers['content-type']], [200, '300000',
      'application/octet-stream'])
    assert.ok(body.equals(large))
  }
  await server.allClosed()
  assert.deepEqual(server.failures, [])
})

test('serves several requests over one connection', async (t) => {
  const server = await serveStatic(t, { 'small.txt': 'small', 'large.bin': large, 'empty.txt': '' },
    { smallMaxBytes: 1000 })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  const ports = new Set<number | undefined>()
  for (const [path, length] of [['/large.bin', 300_000], ['/small.txt', 5], ['/empty.txt', 0], ['/large.bin',
    300_000]] as const) {
    const [answer] = (await once(request({ port: server.port, path, agent }).end(), 'response')) as [IncomingMessage]
    ports.add(answer.socket.localPort)
    let received = 0
    for await (const piece of answer) received += (piece as Buffer).length
    assert.equal(received, length)
  }
  assert.equal(ports.size, 1)
})

test('serves the index of a folder, and redirects to the slash with the query kept', async (t) => {
  const server = await serveStatic(t, { 'index.html': page, 'docs/index.html': 'docs',
    'caf\u00e9/index.html': 'caf\u00e9', 'bare/a.txt': '' })
  assert.equal((await server.ask('/')).body.toString(), page)
  assert.equal((await server.ask('/docs/')).body.toString(), 'docs')
  const { status, headers, body } = await server.ask('/docs?a=b?c')
  assert.deepEqual([status, headers.location, headers['cache-control'], body.length], [301, '/docs/?a=b?c',
    'no-cache', 0])
  assert.equal((await server.ask('/caf%C3%A9')).headers.location, '/caf%C3%A9/')
  for (const path of ['/bare', '/bare/', '/page.html/', '/docs/index.html/']) {
    assert.equal((await server.ask(path)).status, 404, path)
  }
})

test('compresses text on request, with a separate ETag', async (t) => {
  const server = await serveStatic(t, { 'app.js': script, 'short.js': 'let a',
    'random.txt': large.toString('latin1').slice(0, 9000) })
  const plain = await server.ask('/app.js')
  const packed = await server.ask('/app.js', { 'Accept-Encoding': 'gzip' })
  assert.equal(plain.headers.vary, 'Accept-Encoding')
  assert.equal(plain.headers['content-encoding'], undefined)
  assert.equal(packed.headers.vary, 'Accept-Encoding')
  assert.equal(packed.headers['content-encoding'], 'gzip')
  assert.equal(packed.headers['accept-ranges'], undefined)
  assert.equal(packed.headers['content-length'], String(packed.body.length))
  assert.equal(gunzipSync(packed.body).toString(), script)
  assert.notEqual(packed.headers.etag, plain.headers.etag)

  const again = await server.ask('/app.js', { 'Accept-Encoding': 'gzip', 'If-None-Match': packed.headers.etag })
  assert.deepEqual([again.status, again.headers.vary, again.headers.etag], [304, 'Accept-Encoding',
    packed.headers.etag])
  assert.equal((await server.ask('/app.js', { 'If-None-Match': packed.headers.etag })).status, 200)

  const part = await server.ask('/app.js', { 'Accept-Encoding': 'gzip', Range: 'bytes=0-3' })
  assert.deepEqual([part.status, part.body.toString(), part.headers['content-encoding']], [206, 'let ', undefined])
  const short = await server.ask('/short.js', { 'Accept-Encoding': 'gzip' })
  assert.deepEqual([short.headers.vary, short.headers['content-encoding']], ['Accept-Encoding', undefined])
  const smaller = await server.ask('/app.js', { 'Accept-Encoding': 'gzip, deflate, br, zstd' })
  assert.equal(smaller.headers['content-encoding'], 'br')
  assert.equal(brotliDecompressSync(smaller.body).toString(), script)
  assert.equal(new Set([plain, packed, smaller].map(({ headers }) => headers.etag)).size, 3)
})

test('sends the compressed copy beside a file that the client accepts, the smallest first', async (t) => {
  const files = { 'app.js': script, 'app.js.br': 'brotli', 'app.js.zst': 'zstandard', 'app.js.gz': 'gzip', 'a.png': 'png', 'a.png.gz': 'gz' }
  const server = await serveStatic(t, files)
  const rows: [string | undefined, string | undefined, string][] = [
    ['gzip, deflate, br, zstd', 'br', 'brotli'],
    ['gzip, zstd', 'zstd', 'zstandard'],
    ['gzip', 'gzip', 'gzip'],
    ['br;q=0.5, gzip', 'gzip', 'gzip'],
    ['deflate', undefined, script],
    [undefined, undefined, script],
  ]
  for (const [accepted, coding, text] of rows) {
    const fields = accepted === undefined ? {} : { 'Accept-Encoding': accepted }
    const { headers, body } = await server.ask('/app.js', fields)
    assert.deepEqual(
      [headers['content-encoding'], headers['content-type'], headers.vary, headers['accept-ranges'], body.toString()],
      [coding, 'text/javascript; charset=utf-8', 'Accept-Encoding', coding === undefined ? 'bytes' : undefined, text],
      accepted,
    )
    const again = await server.ask('/app.js', { ...fields, 'If-None-Match': headers.etag })
    assert.deepEqual([again.status, again.headers.etag, again.body.length], [304, headers.etag, 0])
  }
  const part = await server.ask('/app.js', { 'Accept-Encoding': 'br', Range: 'bytes=0-3' })
  assert.deepEqual([part.status, part.body.toString(), part.headers['content-encoding']], [206, 'let ', undefined])
  const itself = await server.ask('/app.js.gz', { 'Accept-Encoding': 'gzip' })
  assert.deepEqual([itself.headers['content-type'], itself.headers['content-encoding']], ['application/gzip', undefined])
  const picture = await server.ask('/a.png', { 'Accept-Encoding': 'gzip' })
  assert.deepEqual([picture.body.toString(), picture.headers['content-encoding']], ['png', undefined])
  const head = await server.ask('/app.js', { 'Accept-Encoding': 'br' }, 'HEAD')
  assert.deepEqual([head.headers['content-encoding'], head.headers['content-length']], ['br', '6'])
})

test('sends a large compressed copy in pieces', async (t) => {
  const server = await serveStatic(t, { 'large.js': large, 'large.js.br': large.subarray(1) }, { smallMaxBytes: 1000 })
  const { headers, body } = await server.ask('/large.js', { 'Accept-Encoding': 'br' })
  assert.deepEqual([headers['content-encoding'], headers['content-length']], ['br', '299999'])
  assert.ok(body.equals(large.subarray(1)))
  assert.ok((await server.ask('/large.js', { 'Accept-Encoding': 'gzip' })).body.equals(large))
  await server.allClosed()
})

test('ignores a compressed copy that is older, missing, a folder or outside', async (t) => {
  const outside = join(temporaryFolder(), 'secret')
  writeFileSync(outside, 'secret')
  const server = await serveStatic(t, { 'app.js': script, 'app.js.br': 'new', 'app.js.gz/a': '' })
  symlinkSync(outside, join(server.folder, 'app.js.zst'))
  const sent = async (accepted: string): Promise<string> => {
    const { headers, body } = await server.ask('/app.js', { 'Accept-Encoding': accepted })
    return `${headers['content-encoding'] ?? 'plain'} ${body.length < 10 ? body.toString() : ''}`
  }
  const copy = join(server.folder, 'app.js.br')
  assert.equal(await sent('br'), 'br new')
  assert.equal(await sent('gzip'), 'gzip ') // Compressed by the server.
  assert.equal(await sent('zstd'), 'plain ')
  utimesSync(copy, 1_500_000_000, 1_500_000_000)
  assert.equal(await sent('br'), 'br ') // Compressed by the server, from the newer file.
  writeFileSync(copy, 'newer')
  assert.equal(await sent('br'), 'br newer')
  writeFileSync(copy, 'newest')
  assert.equal(await sent('br'), 'br newest')
  rmSync(copy)
  assert.equal(await sent('br'), 'br ')
  rmSync(join(server.folder, 'app.js'))
  writeFileSync(copy, 'alone')
  assert.equal((await server.ask('/app.js', { 'Accept-Encoding': 'br' })).status, 404)
})

test('sends the file itself when its compressed copy is removed during the look-up', async () => {
  const folder = temporaryFolder()
  const copy = join(folder, 'app.js.br')
  writeFileSync(join(folder, 'app.js'), script)
  writeFileSync(copy, 'brotli')
  const statics = new StaticFiles({ folder, onFailure: () => {} })
  const header = (name: string): string | undefined => (name === 'accept-encoding' ? 'br' : undefined)
  const opening = statics.find({ method: 'GET', path: '/app.js', prefix: '', rawQuery: '', header, formatOfPrefix: 'auto' })
  rmSync(copy)
  assert.equal((await opening)?.status, 200)
})

test('sends a file uncompressed if compression does not make it smaller', async (t) => {
  const server = await serveStatic(t, { 'noise.txt': large })
  const { headers, body } = await server.ask('/noise.txt', { 'Accept-Encoding': 'gzip' })
  assert.deepEqual([headers['content-encoding'], headers.vary], [undefined, 'Accept-Encoding'])
  assert.ok(body.equals(large))
})

test('detects at once that a file was changed, replaced, removed or created again', async (t) => {
  const server = await serveStatic(t, { 'a.txt': 'one' })
  const file = join(server.folder, 'a.txt')
  const read = async (): Promise<string> => {
    const { status, body } = await server.ask('/a.txt')
    return status === 200 ? body.toString() : String(status)
  }
  assert.equal(await read(), 'one')
  assert.equal(await read(), 'one')
  const { atime, mtime } = statSync(file)
  writeFileSync(`${file}.new`, 'two')
  utimesSync(`${file}.new`, atime, mtime)
  renameSync(`${file}.new`, file)
  assert.equal(await read(), 'two')
  truncateSync(file, 1)
  assert.equal(await read(), 't')
  unlinkSync(file)
  assert.equal(await read(), '404')
  writeFileSync(file, 'three')
  assert.equal(await read(), 'three')
})

test('does not cache a file that has just changed', async (t) => {
  const server = await serveStatic(t, { 'a.txt': '0' }, { now: () => statSync(join(server.folder,
    'a.txt')).ctimeMs + 1999 })
  for (let round = 0; round < 20; round += 1) {
    writeFileSync(join(server.folder, 'a.txt'), String(round % 10))
    assert.equal((await server.ask('/a.txt')).body.toString(), String(round % 10))
  }
})

test('marks the ETag of a large file as weak while it is fresh, and not after', async (t) => {
  let ageMs = 99
  const now = (): number => statSync(join(server.folder, 'large.bin')).ctimeMs + ageMs
  const server = await serveStatic(t, { 'large.bin': large }, { smallMaxBytes: 1000, now })
  const weak = (await server.ask('/large.bin', {}, 'HEAD')).headers.etag ?? ''
  ageMs = 101
  const strong = (await server.ask('/large.bin', {}, 'HEAD')).headers.etag ?? ''
  assert.match(strong, /^"[\w-]{22}"$/)
  assert.equal(weak, `W/${strong}`)
  assert.equal((await server.ask('/large.bin', { 'If-None-Match': weak })).status, 304)
  ageMs = 99
  assert.equal((await server.ask('/large.bin', { Range: 'bytes=0-1', 'If-Range': strong })).status, 200)
})

test('keeps the ETag of a small file if only its times change', async (t) => {
  const server = await serveStatic(t, { 'a.txt': 'one' })
  const before = (await server.ask('/a.txt')).headers.etag
  utimesSync(join(server.folder, 'a.txt'), 1, 1)
  assert.equal((await server.ask('/a.txt')).headers.etag, before)
})

test('never sends a Last-Modified in the future or before 1970', async (t) => {
  const server = await serveStatic(t, { 'future.txt': '', 'past.txt': '' })
  utimesSync(join(server.folder, 'future.txt'), 1e10, 1e10)
  utimesSync(join(server.folder, 'past.txt'), new Date(-1e12), new Date(-1e12))
  const future = Date.parse((await server.ask('/future.txt')).headers['last-modified'] ?? '')
  assert.ok(future <= Date.now() + 10_000, String(future))
  assert.equal((await server.ask('/past.txt')).headers['last-modified'], 'Thu, 01 Jan 1970 00:00:00 GMT')
})

test('keeps within its memory limit, and serves the same', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`${index}.txt`, `${index}`.repeat(3000)]))
  const server = await serveStatic(t, files, { memoryMaxBytes: 30_000 })
  for (let round = 0; round < 3; round += 1) {
    for (const [name, content] of Object.entries(files)) {
      assert.equal((await server.ask(`/${name}`)).body.toString(), content)
    }
  }
  assert.equal(openFilesBelow(server.folder), 0)
})

test('drops the oldest files when the memory is full, and always rereads a file that is too large for it', async (t) => {
  const names = Array.from({ length: 6 }, (_, index) => `${index}.bin`)
  const files = Object.fromEntries([...names.map((name) => [name, 'a'.repeat(3000)]), ['large.bin', 'a'.repeat(14_000)]])
  let loads = 0
  // Each takes 5,048 bytes, including its entry.
  const server = await serveStatic(t, files, { memoryMaxBytes: 15_200, now: () => (loads += 1, Date.now() + 10_000) })
  const loadsFor = async (...asked: readonly string[]): Promise<number> => {
    const before = loads
    for (const name of asked) assert.equal((await server.ask(`/${name}`)).body.toString(), files[name])
    return loads - before
  }
  assert.equal(await loadsFor(...names), 6)
  assert.equal(await loadsFor('3.bin', '4.bin', '5.bin'), 0)
  assert.equal(await loadsFor('2.bin'), 1)
  assert.equal(await loadsFor('4.bin', '5.bin', '2.bin'), 0)
  assert.equal(await loadsFor('3.bin'), 1)
  assert.equal(await loadsFor('large.bin', 'large.bin'), 2)
  assert.equal(await loadsFor('5.bin', '2.bin', '3.bin'), 0)
})

test('closes the file when the client leaves half-way', { timeout: 20_000 }, async (t) => {
  const server = await serveStatic(t, { 'huge.bin': '' })
  truncateSync(join(server.folder, 'huge.bin'), 100_000_000)
  const answers = await Promise.all(Array.from({ length: 20 }, () => server.begin('/huge.bin')))
  assert.equal(openFilesBelow(server.folder), 20)
  for (const answer of answers) {
    answer.on('error', () => {})
    await once(answer, 'readable')
    answer.destroy()
  }
  await server.allClosed()
  assert.deepEqual(server.failures, [])
})

test('closes the file when the client left before the reply was sent', { timeout: 20_000 }, async (t) => {
  let left: (() => void) | undefined
  const beforeSend = async (message: IncomingMessage): Promise<void> => {
    const gone = once(message.socket, 'close')
    left?.()
    await gone
  }
  const server = await serveStatic(t, { 'large.bin': large }, { smallMaxBytes: 1000, beforeSend })
  const opened = new Promise<void>((resolve) => (left = resolve))
  const sent = request({ port: server.port, path: '/large.bin', agent: false })
  sent.on('error', () => {})
  sent.end()
  await opened
  assert.equal(openFilesBelow(server.folder), 1)
  sent.destroy()
  await server.allClosed()
  assert.deepEqual(server.failures, [])
})

test('cuts the connection when the file shrinks while it is sent', { timeout: 20_000 }, async (t) => {
  const server = await serveStatic(t, { 'huge.bin': '' })
  const file = join(server.folder, 'huge.bin')
  truncateSync(file, 100_000_000)
  const answer = await server.begin('/huge.bin')
  truncateSync(file, 10)
  let received = 0
  await assert.rejects(async () => {
    for await (const piece of answer) received += (piece as Buffer).length
  }, /aborted/)
  assert.ok(received < 100_000_000)
  await server.allClosed()
  assert.equal(server.failures.length, 1)
  assert.match(server.failures[0] ?? '', /^\/huge\.bin: Error: the file ended \d+ bytes early$/)
})

test('sends the old version to its end when the file is replaced during sending', { timeout: 20_000 }, async (t) => {
  const size = 20_000_000
  const server = await serveStatic(t, { 'huge.bin': Buffer.alloc(size, 1), 'next.bin': Buffer.alloc(size, 2) })
  const answer = await server.begin('/huge.bin')
  renameSync(join(server.folder, 'next.bin'), join(server.folder, 'huge.bin'))
  const expected = Buffer.alloc(size, 1)
  let old = 0
  for await (const piece of answer as AsyncIterable<Buffer>) {
    assert.ok(piece.equals(expected.subarray(old, old + piece.length)))
    old += piece.length
  }
  assert.equal(old, size)
  await server.allClosed()
})

test('serves whole versions only while a file is replaced again and again', async (t) => {
  const server = await serveStatic(t, { 'a.txt': '0'.repeat(50_000) })
  const versions = new Set<string>()
  for (let round = 0; round < 40; round += 1) {
    const answers = Promise.all([server.ask('/a.txt'), server.ask('/a.txt')])
    writeFileSync(join(server.folder, '.next'), String(round % 10).repeat(50_000 + round))
    renameSync(join(server.folder, '.next'), join(server.folder, 'a.txt'))
    for (const { status, body } of await answers) {
      assert.equal(status, 200)
      versions.add(body.toString())
    }
  }
  for (const text of versions) assert.match(text, /^(\d)\1+$/)
  assert.ok(versions.size > 1)
  await server.allClosed()
})

test('follows a folder that is a link when it is pointed to another release', async (t) => {
  const parent = temporaryFolder()
  const server = await serveStatic(t, { 'one/a.txt': 'one', 'two/a.txt': 'two' })
  const link = join(parent, 'current')
  symlinkSync(join(server.folder, 'one'), link)
  const statics = new StaticFiles({ folder: `${link}/`, onFailure: () => assert.fail() })
  const lengthOf = async (): Promise<string | undefined> => {
    const sent = { method: 'GET', path: '/a.txt', prefix: '', rawQuery: '', header: () => undefined }
    const reply = await statics.find({ ...sent, formatOfPrefix: 'auto' })
    return reply?.headers[reply.headers.indexOf('ETag') + 1]
  }
  const first = await lengthOf()
  rmSync(link)
  symlinkSync(join(server.folder, 'two'), link)
  assert.notEqual(first, undefined)
  assert.notEqual(await lengthOf(), first)
})

test('refuses a path that is not a folder, and names it', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'file'), '')
  for (const path of ['//', join(folder, 'none'), join(folder, 'file')]) {
    const problem = 'must be an existing folder, and not the root of the file system'
    const message = `Cannot serve static files: paths.public ${problem}: it is ${JSON.stringify(path)}`
    assert.throws(() => new StaticFiles({ folder: path, onFailure: () => {} }), { message })
  }
})
