// Return values of actions other than text and JSON: bytes, a Blob, a Response, streams and async iterables.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { describe, it } from 'node:test'
import { Connection, cutAtEnd, requestText } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

const json = { headers: { accept: 'application/json' } }
let count = 0
const newKey = (): string => `returned-${process.pid}-${(count += 1)}`
const emitted = (name: string): Promise<void> =>
  new Promise((resolve) => process.once(name as 'SIGUSR2', () => resolve())) // Any name will do.

describe('a returned value', () => {
  it('is sent according to its type', async (t) => {
    const { url } = await serve(t, {
      '/text': '() => "<p>"',
      '/bytes': '() => Uint8Array.of(104, 105)',
      '/buffer': '() => Buffer.from("hi")',
      '/words': '() => new Uint16Array(Uint8Array.of(104, 105).buffer)',
      '/array-buffer': '() => Uint8Array.of(104, 105).buffer',
      '/blob': '() => new Blob(["h", "i"], { type: "text/css" })',
      '/large-blob': '() => new Blob(["h".repeat(2 ** 21)])',
      '/set-type': '(ctx) => { ctx.setHeader("Content-Type", "text/css"); return Buffer.from("hi") }',
      '/set-type-blob': '(ctx) => { ctx.setHeader("Content-Type", "text/css"); return new Blob(["hi"]) }',
      '/object': '() => ({ a: 1 })',
      '/bare': '() => Object.assign(Object.create(null), { a: 1 })',
      '/list': '() => [1]',
      '/class': '() => new (class { a = 1; get b() { return 2 } })()',
      '/date': '() => new Date(0)',
      '/search': '() => new URL("http://a/")',
      '/nothing': '() => {}',
    })
    const octets = 'application/octet-stream'
    const jsonType = 'application/json; charset=utf-8'
    const rows: [string, string | undefined, string][] = [
      ['text', 'text/html; charset=utf-8', '<p>'],
      ['bytes', octets, 'hi'],
      ['buffer', octets, 'hi'],
      ['words', octets, 'hi'],
      ['array-buffer', octets, 'hi'],
      ['blob', octets, 'hi'],
      ['large-blob', octets, 'h'.repeat(2 ** 21)],
      ['set-type', 'text/css', 'hi'],
      ['set-type-blob', 'text/css', 'hi'],
      ['object', jsonType, '{"a":1}'],
      ['bare', jsonType, '{"a":1}'],
      ['list', jsonType, '[1]'],
      ['class', jsonType, '{"a":1}'],
      ['date', jsonType, '"1970-01-01T00:00:00.000Z"'],
      ['search', jsonType, '"http://a/"'],
      ['nothing', undefined, ''],
    ]
    for (const [path, type, text] of rows) {
      const answer = await request(`${url}/${path}`)
      assert.deepEqual([answer.headers['content-type'], answer.text], [type, text], path)
      const length = path === 'nothing' ? undefined : String(Buffer.byteLength(text))
      assert.equal(answer.headers['content-length'], length, path)
    }
  })

  it('of bytes may be reused by the next action: they are sent as returned', async (t) => {
    const same = "globalThis.bytesOfReturned ??= Buffer.alloc(20)"
    t.after(() => Reflect.deleteProperty(globalThis, 'bytesOfReturned'))
    cutAtEnd(t)
    const { port } = await serve(t, { '/:id': `async ({ params }) => (${same}).fill(params.id.padEnd(20))` })
    const clients = Array.from({ length: 20 }, () => new Connection(t, port))
    await Promise.all(clients.map(({ socket }) => once(socket, 'connect')))
    for (let round = 1; round <= 5; round += 1) {
      for (const [at, client] of clients.entries()) void client.send(requestText(`GET /${at}`)) // They arrive in one turn.
      for (const [at, client] of clients.entries()) assert.equal((await client.answers(round)).at(-1)?.body.trim(), String(at))
    }
  })

  it('of an unsupported type is a 500, and the log line says what to return', async (t) => {
    const rows = [
      ['null', 'null', "return ctx.fail(404) when there is nothing to show, or ctx.json(null)"],
      ['7', 'a number', 'return ctx.json(value), or String(value)'],
      ['7n', 'a bigint', 'return String(value)'],
      ['false', 'a boolean', 'return ctx.json(value), or String(value)'],
      ['Symbol()', 'a symbol', 'return text, an object or bytes'],
      ['(() => {})', 'a function', 'call it and return what it returns'],
      ['new Map()', 'a Map', 'return Object.fromEntries(map)'],
      ['new Set()', 'a Set', 'return [...set]'],
      ['new RangeError("x")', 'an Error', 'throw it, or return ctx.fail(status, code, message)'],
    ] as const
    const { url, lines } = await serve(t, Object.fromEntries(rows.map(([text], at) => [`/${at}`, `async () => ${text}`])))
    for (const [at, [, what, advice]] of rows.entries()) {
      const answer = await request(`${url}/${at}`, json)
      assert.deepEqual([answer.status, answer.json()], [500, { error: 'internal_error' }], what)
      const line = `GET /${at} (r${at}): An action returned ${what}, which cannot be sent: ${advice}`
      assert.ok(lines().some((one) => one.includes(line)), line)
    }
  })

  it('of a stream keeps a Content-Length that was set', async (t) => {
    const slowly = 'async function* () { yield "one "; await new Promise((done) => setTimeout(done, 1)); yield "two" }'
    const set = (length: unknown): string => `ctx.setHeader("Content-Length", ${JSON.stringify(length)})`
    const { url, lines } = await serve(t, {
      '/slow': `(ctx) => { ${set(7)}; return (${slowly})() }`,
      '/fast': `(ctx) => { ${set('3')}; return new Response("one").body }`,
      '/response': 'async () => new Response("four", { headers: { "Content-Length": "4" } })',
      '/ignored': `(ctx) => { ${set(99)}; return "text" }`,
      '/head': `(ctx) => { ${set(99)}; return "" }`,
      '/wrong': `(ctx) => { ${set('7 bytes')}; return "text" }`,
      '/proxy/:name': '({ params, query }) => fetch(query.get("from") + "/" + params.name)',
      '/packed': '(ctx) => { ctx.setHeader("Content-Encoding", "identity"); return "four" }',
    })
    const rows = [['slow', '7', 'one two'], ['fast', '3', 'one'], ['response', '4', 'four'], ['ignored', '4', 'text']]
    for (const [path, length, text] of rows) {
      const answer = await request(`${url}/${path}`)
      assert.deepEqual([answer.headers['content-length'], answer.headers['transfer-encoding'], answer.text], [length, undefined, text], path)
    }
    const proxied = await request(`${url}/proxy/slow?from=${url}`)
    assert.deepEqual([proxied.headers['content-length'], proxied.text], ['7', 'one two'])
    const decoded = await request(`${url}/proxy/packed?from=${url}`)
    assert.deepEqual([decoded.headers['content-encoding'], decoded.text], [undefined, 'four'])
    for (const path of ['slow', 'head']) {
      const answer = await request(`${url}/${path}`, { method: 'HEAD' })
      assert.deepEqual([answer.status, answer.headers['content-length']], [200, path === 'slow' ? '7' : '99'])
    }
    assert.equal((await request(`${url}/wrong`)).status, 500)
    assert.match(lines().join('\n'), /Cannot set Content-Length: it must be a number of bytes: it is "7 bytes"/)
  })

  it('of a stream is cut, with a warning, when it does not have its Content-Length', async (t) => {
    const slowly = 'async function* () { yield "one "; await new Promise((done) => setTimeout(done, 1)); yield "two" }'
    const answer = (length: number, stream: string): string => `(ctx) => { ctx.setHeader("Content-Length", ${length}); return ${stream} }`
    cutAtEnd(t)
    const { port, lines } = await serve(t, {
      '/more': answer(5, `(${slowly})()`),
      '/fewer': answer(8, `(${slowly})()`),
      '/fewer-at-once': answer(8, 'new Response("one").body'),
      '/more-at-once': answer(2, 'new Response("one").body'),
      '/none': answer(2, '(async function* () {})()'),
    })
    const rows = [['more', 'one '], ['fewer', 'one two'], ['fewer-at-once', 'one'], ['more-at-once', ''], ['none', '']]
    for (const [path, text] of rows) {
      const client = new Connection(t, port)
      await client.send(requestText(`GET /${path}`))
      const received = await client.closed()
      const [, body = ''] = received.split('\r\n\r\n')
      assert.ok(text?.startsWith(body), `${path}: ${received}`) // A cut may lose what the client had not got.
    }
    const warnings = lines().filter((line) => line.includes('WARN') && line.includes('than its Content-Length'))
    assert.equal(warnings.length, rows.length)
    assert.match(warnings.join('\n'), /the stream has more bytes than its Content-Length, 5: the connection was cut/)
  })

  it('with a validator of the action is answered with 304', async (t) => {
    const cancelled = newKey()
    const { url } = await serve(t, {
      '/tag': '(ctx) => { ctx.setHeader("ETag", \'"v1"\'); return { a: 1 } }',
      '/time': '(ctx) => { ctx.setHeader("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"); return "a" }',
      '/response': 'async () => new Response("a", { headers: { ETag: \'"v1"\' } })',
      '/stream': `(ctx) => {
        ctx.setHeader("ETag", 'W/"v1"')
        return new ReadableStream({ pull(c) { c.enqueue(Buffer.from("a")) }, cancel() { process.emit("${cancelled}") } })
      }`,
      '/created': '(ctx) => { ctx.setHeader("ETag", \'"v1"\'); return ctx.json({}, 201) }',
      '/large': '(ctx) => { ctx.setHeader("ETag", \'"v1"\'); return "a".repeat(5000) }',
    })
    const ask = (path: string, headers: Record<string, string>, method = 'GET') => request(`${url}/${path}`, { method, headers })
    const known = { 'if-none-match': '"v1"' }
    const cancel = emitted(cancelled)
    for (const path of ['tag', 'response', 'stream', 'large']) {
      const { status, text, headers } = await ask(path, known)
      assert.deepEqual([status, text, headers['content-length']], [304, '', undefined], path)
      assert.match(headers.etag ?? '', /"v1"$/)
      assert.equal((await ask(path, known, 'HEAD')).status, 304, path)
    }
    await cancel
    const packed = await ask('large', { 'accept-encoding': 'gzip' })
    assert.equal((await ask('large', { 'if-none-match': packed.headers.etag ?? '' })).status, 304)
    assert.equal((await ask('time', { 'if-modified-since': 'Sun, 06 Nov 1994 08:49:37 GMT' })).status, 304)
    assert.equal((await ask('time', { 'if-modified-since': 'Sun, 06 Nov 1994 08:49:36 GMT' })).status, 200)
    assert.equal((await ask('tag', { 'if-none-match': '"v2"' })).status, 200)
    assert.equal((await ask('tag', known, 'POST')).status, 200)
    assert.equal((await ask('created', known)).status, 201)
  })

  it('is dropped after a redirect, with a warning', async (t) => {
    const { url, lines } = await serve(t, {
      '/both': '(ctx) => { ctx.redirect("/there", 303); return { a: 1 } }',
      '/reply': '(ctx) => { ctx.redirect("/there"); return ctx.json({ a: 1 }, 200) }',
      '/one': '(ctx) => ctx.redirect("/there")',
      '/none': '(ctx) => { ctx.redirect("/there") }',
    })
    for (const [path, status] of [['both', 303], ['reply', 302], ['one', 302], ['none', 302]] as const) {
      const answer = await request(`${url}/${path}`)
      assert.deepEqual([answer.status, answer.headers.location, answer.text], [status, '/there', ''], path)
    }
    assert.equal((await request(`${url}/both`)).status, 303)
    const warnings = lines().filter((line) => line.includes('after ctx.redirect()'))
    assert.equal(warnings.length, 2) // At most one a second per route.
    for (const [at, path] of ['both (r0)', 'reply (r1)'].entries()) {
      assert.ok(warnings[at]?.includes(`[WARN ] [error] GET /${path}: the action returned a value after ctx.redirect()`), warnings[at])
    }
  })
})

describe('a middleware', () => {
  it('that neither replies nor calls next() is named in a warning', async (t) => {
    for (const source of ['() => {}', 'async () => {}']) {
      const { url, lines } = await serve(t, { '/a': '() => "a"' }, {}, {
        'routes/r.json': [{ name: 'a', url: '/a', action: 'actions.mjs@r0', middleware: 'silent' }],
        'routes/middleware/config.json': { load: ['silent.mjs'] },
        'routes/middleware/silent.mjs': `export default ${source}\n`,
      })
      assert.equal((await request(`${url}/a`)).status, 404)
      assert.match(lines().join('\n'), /\[WARN \] \[error\] GET \/a \(a\): middleware silent neither replied nor called next\(\)/)
    }
  })
})

describe('a returned Response', () => {
  it('is sent with its status, fields and body', async (t) => {
    const { url } = await serve(t, {
      '/json': '() => Response.json({ a: 1 }, { status: 201 })',
      '/text': '() => new Response("hi")',
      '/empty': '() => new Response(null, { status: 204, headers: { "X-A": "1" } })',
      '/moved': '() => Response.redirect("http://example.org/", 307)',
      '/fields': `(ctx) => {
        ctx.status = 418
        ctx.setHeader("X-A", "old")
        ctx.setHeader("X-B", "kept")
        ctx.setCookie("a", "1")
        const headers = new Headers({ "X-A": "new", Connection: "close, X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=9" })
        headers.append("Set-Cookie", "b=2")
        headers.append("Set-Cookie", "c=3")
        headers.set("Content-Length", "2")
        headers.set("Transfer-Encoding", "chunked")
        return new Response("hi", { headers })
      }`,
    })
    const made = await request(`${url}/json`)
    assert.deepEqual([made.status, made.headers['content-type'], made.text], [201, 'application/json', '{"a":1}'])
    assert.equal(made.headers['content-length'], '7')
    const text = await request(`${url}/text`)
    assert.deepEqual([text.status, text.headers['content-type'], text.text], [200, 'text/plain;charset=UTF-8', 'hi'])
    const empty = await request(`${url}/empty`)
    assert.deepEqual([empty.status, empty.headers['x-a'], empty.text], [204, '1', ''])
    const moved = await request(`${url}/moved`)
    assert.deepEqual([moved.status, moved.headers.location], [307, 'http://example.org/'])
    const { status, headers, text: body } = await request(`${url}/fields`)
    assert.deepEqual([status, body, headers['x-a'], headers['x-b'], headers['x-hop']], [200, 'hi', 'new', 'kept', undefined])
    assert.deepEqual(headers['set-cookie']?.map((cookie) => cookie.split(';')[0]), ['a=1', 'b=2', 'c=3'])
    assert.deepEqual([headers['content-length'], headers['transfer-encoding']], ['2', undefined])
  })

  it('of fetch() is passed on without the encoding that fetch() has decoded', async (t) => {
    const upstream = createServer((_, response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Type': 'text/css', ETag: '"1"' })
      response.end(Buffer.from('H4sIAAAAAAAAA8vIBACsKpPYAgAAAA==', 'base64'))
    })
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    t.after(() => upstream.close())
    const { port } = upstream.address() as { port: number }
    const { url } = await serve(t, { '/': `() => fetch("http://127.0.0.1:${port}/", { headers: { Connection: "close" } })` })
    const { headers, text } = await request(url)
    assert.deepEqual([text, headers['content-type'], headers['content-encoding'], headers.etag], ['hi', 'text/css', undefined, '"1"'])
  })

  it('that is invalid is a 500', async (t) => {
    const { url, lines } = await serve(t, {
      '/error': '() => Response.error()',
      '/used': 'async () => { const used = new Response("a"); await used.text(); return used }',
      '/locked': '() => { const locked = new Response("a"); locked.body.getReader(); return locked }',
    })
    for (const path of ['error', 'used', 'locked']) assert.equal((await request(`${url}/${path}`)).status, 500, path)
    assert.match(lines().join('\n'), /returned a Response with status 0: it must be 200 to 599/)
    assert.match(lines().join('\n'), /returned a Response whose body has been read already/)
  })
})

describe('a returned stream', () => {
  const chunks = (inner: string): string => `async function* () { ${inner} }`

  it('is sent, whatever its type', async (t) => {
    const later = 'await new Promise((resolve) => setTimeout(resolve, 5));'
    const { url } = await serve(t, {
      '/generator': `() => (${chunks(`yield "a"; ${later} yield Buffer.from("b"); yield new ArrayBuffer(0)`)})()`,
      '/short': `() => (${chunks('yield "a"; yield "b"')})()`,
      '/readable': `async () => (await import("node:stream")).Readable.from((${chunks(`yield "a"; ${later} yield "b"`)})())`,
      '/file': 'async () => (await import("node:fs")).createReadStream(new URL(import.meta.url))',
      '/web': `() => new ReadableStream({ async pull(to) { ${later} to.enqueue(Buffer.from("ab")); to.close() } })`,
      '/object': `() => ({ [Symbol.asyncIterator]: ${chunks('yield "ab"')} })`,
      '/response': `() => new Response(new ReadableStream({ async pull(to) { ${later} to.enqueue(Buffer.from("ab")); to.close() } }))`,
    })
    for (const path of ['generator', 'short', 'readable', 'web', 'object', 'response']) {
      const { status, headers, text } = await request(`${url}/${path}`)
      const type = path === 'response' ? undefined : 'application/octet-stream'
      assert.deepEqual([status, headers['content-type'], text], [200, type, 'ab'], path)
    }
    assert.equal((await request(`${url}/short`)).headers['content-length'], '2')
    assert.match((await request(`${url}/file`)).text, /^export const r0/)
    const head = await request(`${url}/generator`, { method: 'HEAD' })
    assert.deepEqual([head.status, head.headers['content-type'], head.text], [200, 'application/octet-stream', ''])
  })

  it('takes a stream worker and none of the HTTP pool; without a free one it waits, then is 503', async (t) => {
    const source = `() => (${chunks('yield "a"; await new Promise(() => {})')})()`
    const config = { 'pool_http.workers': 1, 'pool_rest.workers_sse': 1, 'pool_rest.queue_size': 0 }
    const { url, port } = await serve(t, { '/stream': source, '/plain': '() => "plain"' }, config)
    const first = new Connection(t, port)
    await first.send(requestText('GET /stream'))
    await until(() => first.received.includes('\r\n\r\n1\r\na\r\n'))
    assert.equal((await request(`${url}/plain`)).text, 'plain')
    const refused = await request(`${url}/stream`)
    assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1'])
  })

  it('is read no faster than the client reads, and cancelled when it disconnects', async (t) => {
    const [made, ended] = [newKey(), newKey()]
    const { port } = await serve(t, {
      '/': `() => (async function* () {
        const piece = Buffer.alloc(65536)
        try { for (let at = 1; ; at++) { process.emit("${made}", at); yield piece } } finally { process.emit("${ended}") }
      })()`,
    })
    let last = 0
    process.on(made as 'SIGUSR2', (at) => (last = at as unknown as number)) // As above.
    t.after(() => process.removeAllListeners(made))
    const client = new Connection(t, port)
    client.socket.pause()
    await client.send(requestText('GET /'))
    // Until the system's buffers are full: then it stalls.
    await until(() => last > 2)
    let before = -1
    while (before !== last) {
      before = last
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    assert.ok(last < 2000, `${last} pieces of 64 KiB were read ahead`)
    const over = emitted(ended)
    await client.reset()
    await over
  })

  it('that fails before its first piece is a 500; a later failure breaks the connection', async (t) => {
    const { url, port, lines } = await serve(t, {
      '/first': `() => (${chunks('throw new Error("first fault")')})()`,
      '/later': `() => (${chunks('yield "a"; await new Promise(setImmediate); await new Promise(setImmediate); throw new Error("later fault")')})()`,
      '/body': `() => new Response(new ReadableStream({
        start(to) { to.enqueue(Buffer.from("a")) },
        async pull(to) { // After the first piece has been read: an earlier error would discard it.
          await new Promise(setImmediate); await new Promise(setImmediate); to.error(new Error("body fault")) } }))`,
      '/odd': `() => (${chunks('yield { a: 1 }')})()`,
      '/slow': `() => (${chunks('await new Promise((resolve) => setTimeout(resolve, 20)); throw new Error("slow fault")')})()`,
      '/slow-body': `() => new Response(new ReadableStream({
        start(to) { setTimeout(() => to.error(new Error("slow body fault")), 20) } }))`,
      '/slow-odd': `() => (${chunks('await new Promise((resolve) => setTimeout(resolve, 20)); yield null')})()`,
      '/no-file': `() => process.getBuiltinModule("node:fs").createReadStream("/no/such/file")`,
    })
    for (const path of ['/first', '/odd', '/slow', '/slow-body', '/slow-odd', '/no-file']) {
      const answer = await request(url + path, json)
      assert.deepEqual([answer.status, answer.json()], [500, { error: 'internal_error' }], path)
    }
    for (const path of ['/later', '/body']) {
      const client = new Connection(t, port)
      await client.send(requestText(`GET ${path}`))
      const text = await client.closed()
      assert.match(text, /^HTTP\/1.1 200 [^]*\r\n\r\n1\r\na\r\n$/, path) // No chunk of length 0 at the end.
    }
    await until(() => /first fault[^]*later fault[^]*body fault/.test(lines().join('\n')))
    assert.match(lines().join('\n'), /yielded a value of type object: it must yield text or bytes/)
  })

  it('may fail without a reader', async (t) => {
    const closed = newKey()
    const noFile = `process.getBuiltinModule("node:fs").createReadStream("/no/such/file").on("close", () => process.emit("${closed}"))`
    let closes = 0
    process.on(closed as 'SIGUSR2', () => (closes += 1)) // Any name will do.
    t.after(() => process.removeAllListeners(closed))
    const { url } = await serve(t, {
      '/head': `() => ${noFile}`,
      '/redirect': `(ctx) => { ctx.redirect("/"); return ${noFile} }`,
      '/throws': `() => ${noFile}`,
      '/replaces': `() => ${noFile}`,
      '/status': `(ctx) => { ctx.status = 1000; return ${noFile} }`,
    }, {}, {
      'routes/a.json': ['throws', 'replaces'].map((name, at) =>
        ({ name, url: `/${name}`, action: `actions.mjs@r${at + 2}`, middleware: name })),
      'routes/middleware/config.json': { load: ['late.mjs'] },
      'routes/middleware/late.mjs': `
        export const throws = async (ctx, next) => { await next(); throw new Error("on the way out") }
        export const replaces = async (ctx, next) => { await next(); ctx.json({ a: 1 }) }`,
    })
    const rows: [string, number][] = [['/redirect', 302], ['/throws', 500], ['/replaces', 200], ['/status', 500]]
    assert.equal((await request(`${url}/head`, { method: 'HEAD' })).status, 200)
    for (const [path, status] of rows) assert.equal((await request(url + path)).status, status, path)
    await until(() => closes === 5) // Each has failed by then: an unhandled error would have ended this process.
  })

  it('whose client disconnects is not an error', async (t) => {
    const ended = newKey()
    const { port, lines } = await serve(t, {
      '/': `() => {
        const stream = new (process.getBuiltinModule("node:stream").PassThrough)()
        const timer = setInterval(() => stream.write("a"), 5)
        return stream.on("close", () => { clearInterval(timer); process.emit("${ended}") })
      }`,
    })
    const over = emitted(ended)
    const client = new Connection(t, port)
    await client.send(requestText('GET /'))
    await until(() => client.received.includes('1\r\na\r\n'))
    await client.reset()
    await over
    await new Promise(setImmediate)
    assert.deepEqual(lines().filter((line) => line.includes('[ERROR]')), [])
  })

  it('is cut at the stream time-out', async (t) => {
    const ended = newKey()
    const { port } = await serve(
      t,
      { '/': `() => new ReadableStream({ start(to) { to.enqueue(Buffer.from("a")) }, cancel() { process.emit("${ended}") } })` },
      { 'pool_rest.stream_timeout_s': 1 },
    )
    const over = emitted(ended)
    const client = new Connection(t, port)
    await client.send(requestText('GET /'))
    assert.match(await client.closed(), /\r\n\r\n1\r\na\r\n$/)
    await over
  })

  it('is cancelled if it yields anything but text and bytes, and if no worker is free for it', async (t) => {
    const [odd, refused] = [newKey(), newKey()]
    const endless = (key: string): string => `new ReadableStream({ start(to) { to.enqueue("a") }, cancel() { process.emit("${key}") } })`
    const { url } = await serve(t, {
      '/odd': `() => (async function* () { try { yield { a: 1 } } finally { process.emit("${odd}") } })()`,
      '/refused': `() => ${endless(refused)}`,
    }, { 'pool_rest.workers_sse': 0 })
    const closings = [emitted(odd), emitted(refused)]
    assert.deepEqual([(await request(`${url}/odd`)).status, (await request(`${url}/refused`)).status], [500, 503])
    await Promise.all(closings)
  })

  it('is cancelled if a middleware fails afterwards', async (t) => {
    const ended = newKey()
    const { url } = await serve(t, {
      '/a': `() => new ReadableStream({ cancel() { process.emit("${ended}") } })`,
    }, {}, {
      'routes/r.json': [{ name: 'a', url: '/a', action: 'actions.mjs@r0', middleware: 'fails' }],
      'routes/middleware/config.json': { load: ['fails.mjs'] },
      'routes/middleware/fails.mjs': 'export default async (ctx, next) => { await next(); throw new Error("on the way out") }\n',
    })
    const over = emitted(ended)
    assert.equal((await request(`${url}/a`)).status, 500)
    await over
  })
})
