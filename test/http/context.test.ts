import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

const asJson = { accept: 'application/json' }

describe('the request in the context', () => {
  it('has method, path, query, params, route and state', async (t) => {
    const { url } = await serve(t, {
      '/n/:id/*rest': `({ method, path, query, params, route, state, rawQuery, routeName, httpVersion }) =>
        ({ method, path, q: query.getAll('q'), params, route, state, rawQuery, routeName, httpVersion })`,
    })
    assert.deepEqual((await request(`${url}/n/%C3%A9%2F/b/c?q=1+2&q=%C3%A9`, { method: 'PUT' })).json(), {
      method: 'PUT',
      path: '/n/%C3%A9%2F/b/c',
      q: ['1 2', 'é'],
      params: { id: 'é/', rest: 'b/c' },
      route: { name: 'r0', url: '/n/:id/*rest', action: 'actions.mjs@r0', method: '*', middleware: '', scope: 'test:read' },
      state: {},
      rawQuery: '?q=1+2&q=%C3%A9',
      routeName: 'r0',
      httpVersion: '1.1',
    })
  })

  it('has header fields by lower-case name, cookies, address, host and scheme', async (t) => {
    const { port } = await serve(t, {
      '/': `({ headers, cookies, ip, host, secure, header }) => ({ x: headers['x-test'], cookies, ip, host, secure })`,
    })
    const fields = ['X-TEST: a', 'x-test: b', 'Cookie: a=1; b="2"', 'Cookie: c=%41', 'X-Forwarded-For: 9.9.9.9']
    const text = await exchange(port, requestText('GET /', [...fields, 'Connection: close']))
    assert.deepEqual(JSON.parse(parseAnswer(text).body), {
      x: 'a, b',
      cookies: { a: '1', b: '2', c: 'A' },
      ip: '127.0.0.1',
      host: 'h',
      secure: false,
    })
  })

  it('returns objects without prototype, and a state that inherits nothing, always the same', async (t) => {
    const { port } = await serve(t, {
      '/:a': `(ctx) => ['params', 'headers', 'cookies', 'state'].map((name) =>
        [Object.getPrototypeOf(ctx[name]), ctx[name] === ctx[name], 'constructor' in ctx[name]])`,
    })
    const text = await exchange(port, requestText('GET /x', ['__proto__: a', 'Cookie: __proto__=1', 'Connection: close']))
    assert.deepEqual(JSON.parse(parseAnswer(text).body), [null, null, null, {}].map((prototype) => [prototype, true, false]))
  })

  it('has no host for an HTTP/1.0 request without one', async (t) => {
    const { port } = await serve(t, { '/': '({ host, httpVersion }) => ({ host, httpVersion })' })
    const { body } = parseAnswer(await exchange(port, 'GET / HTTP/1.0\r\n\r\n'))
    assert.deepEqual(JSON.parse(body), { host: '', httpVersion: '1.0' })
  })

  it('believes forwarding headers only from a trusted proxy', async (t) => {
    const action = '({ ip, host, secure, setCookie }) => { setCookie("a", "b"); return { ip, host, secure } }'
    const headers = { 'x-forwarded-for': '1.1.1.1, 8.8.8.8', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'example.org' }
    const trusting = await serve(t, { '/': action }, { 'server.trusted_proxies': ['127.0.0.0/8'] })
    const answer = await request(trusting.url, { headers })
    assert.deepEqual(answer.json(), { ip: '8.8.8.8', host: 'example.org', secure: true })
    assert.match(answer.headers['set-cookie']?.[0] ?? '', /; Secure/)
    assert.match(trusting.lines('access.log')[0] ?? '', /^8\.8\.8\.8 /)
    const other = await serve(t, { '/': action })
    const plain = await request(other.url, { headers })
    assert.deepEqual(plain.json(), { ip: '127.0.0.1', host: `127.0.0.1:${other.port}`, secure: false })
    assert.doesNotMatch(plain.headers['set-cookie']?.[0] ?? '', /Secure/)
  })

  it('accepts a request id of 8 to 128 valid characters and sends it back; else makes one on demand', async (t) => {
    const { url } = await serve(t, { '/asks': '(ctx) => [ctx.id, ctx.id]', '/silent': "() => 'x'", '/fails': '(ctx) => { ctx.id; throw 1 }' })
    const good = ['abcdefgh', 'A-z_0.9-', 'x'.repeat(128)]
    for (const id of good) {
      const answer = await request(`${url}/asks`, { headers: { 'x-request-id': id } })
      assert.deepEqual([answer.json(), answer.headers['x-request-id']], [[id, id], id])
      assert.equal((await request(`${url}/silent`, { headers: { 'X-REQUEST-ID': id } })).headers['x-request-id'], id)
      assert.equal((await request(`${url}/none`, { headers: { 'x-request-id': id } })).headers['x-request-id'], id)
    }
    for (const id of ['abcdefg', 'x'.repeat(129), 'abcdefg h', 'abcdefgh\u00e9', 'abcd,efgh', '']) {
      const answer = await request(`${url}/asks`, { headers: { 'x-request-id': id } })
      const [made, again] = answer.json() as string[]
      assert.match(made ?? '', /^[\w-]{36}$/)
      assert.deepEqual([again, answer.headers['x-request-id']], [made, made])
      assert.equal((await request(`${url}/silent`, { headers: { 'x-request-id': id } })).headers['x-request-id'], undefined)
    }
    assert.match((await request(`${url}/fails`)).headers['x-request-id'] as string, /^[\w-]{36}$/)
  })

  it('aborts the signal when the client disconnects, but not after a response', async (t) => {
    const { url, port, lines } = await serve(t, {
      '/wait': `(ctx) => new Promise((resolve) => {
        ctx.log('waits')
        ctx.signal.addEventListener('abort', () => { ctx.log('aborted'); resolve('gone') })
      })`,
      '/late': `(ctx) => new Promise((resolve) => {
        ctx.log('waits')
        ctx.response.on('close', () => setImmediate(() => { ctx.log('late ' + ctx.signal.aborted); resolve('') }))
      })`,
      '/cut': `async (ctx) => {
        ctx.signal.addEventListener('abort', () => ctx.log('cut and notified'))
        await null
        ctx.request.socket.destroy()
        return 'x'
      }`,
      '/fine': "(ctx) => { ctx.signal.addEventListener('abort', () => ctx.log('wrong')); return 'x' }",
      '/fetch': `async (ctx) => {
        ctx.log('waits')
        await new Promise((resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
      }`,
    })
    const logged = (text: string): boolean => lines().some((line) => line.endsWith(text))
    for (const [at, path] of ['/wait', '/late', '/fetch'].entries()) {
      const client = new Connection(t, port)
      await client.send(requestText(`GET ${path}`))
      await until(() => lines().filter((line) => line.endsWith('waits')).length === at + 1)
      // The client ends its side; without an action that watches for it, only a reset counts.
      if (path === '/late') await client.reset()
      else client.socket.destroy()
      await until(() => lines('access.log').length === at + 1)
    }
    await assert.rejects(request(`${url}/cut`))
    assert.equal((await request(`${url}/fine`)).text, 'x')
    await until(() => logged('aborted') && logged('late true') && logged('cut and notified'))
    assert.ok(!logged('wrong'))
    assert.deepEqual(lines().filter((line) => line.includes('[ERROR]')), [], 'aborted work is not an error')
  })
})

describe('reading the body', () => {
  it('returns text, JSON, a form and bytes, read once and cached', async (t) => {
    const { url } = await serve(t, {
      '/text': 'async ({ readText }) => [await readText(), await readText()]',
      '/json': 'async ({ readJson }) => { const a = await readJson(); return [a, a === (await readJson())] }',
      '/form': "async ({ readForm }) => { const f = await readForm(); return [f.get('a'), f.getAll('b'), f.files.length] }",
      '/bytes': 'async ({ readBytes, readText }) => [...(await readBytes()), await readText()]',
    })
    const post = async (path: string, type: string, body: string): Promise<unknown> =>
      (await request(url + path, { body, headers: { 'content-type': type } })).json()
    assert.deepEqual(await post('/text', 'text/plain', 'é'), ['é', 'é'])
    assert.deepEqual(await post('/json', 'application/json', '{"a":[1]}'), [{ a: [1] }, true])
    assert.deepEqual(await post('/form', 'application/x-www-form-urlencoded', 'a=1+2&b=3&b=%C3%A9'), ['1 2', ['3', 'é'], 0])
    const part = '--B\r\nContent-Disposition: form-data; name="a"; filename="x.txt"\r\n\r\nfile\r\n--B--\r\n'
    assert.deepEqual(await post('/form', 'multipart/form-data; boundary=B', part), [null, [], 1])
    assert.deepEqual(await post('/bytes', 'application/octet-stream', 'ab'), [97, 98, 'ab'])
    assert.deepEqual((await request(`${url}/text`)).json(), ['', ''])
  })

  it('answers bad JSON with 400 and a wrong form type with 415', async (t) => {
    const { url } = await serve(t, { '/json': '(ctx) => ctx.readJson()', '/form': '(ctx) => ctx.readForm()' })
    const bad = await request(`${url}/json`, { body: '{', headers: asJson })
    assert.deepEqual([bad.status, (bad.json() as { error: string }).error], [400, 'bad_json'])
    const type = await request(`${url}/form`, { body: '{}', headers: { 'content-type': 'application/json' } })
    assert.deepEqual([type.status, (type.json() as { error: string }).error], [415, 'unsupported_media_type'])
  })

  it('cannot begin once the response has begun: a response contains no 100 Continue', async (t) => {
    const { port, lines } = await serve(t, {
      '/': `(ctx) => {
        setImmediate(() => ctx.readText().catch((error) => ctx.log('late: ' + error.code)))
        return 'x'.repeat(1e6)
      }`,
    })
    const client = new Connection(t, port)
    await client.send(requestText('POST /', ['Content-Length: 5', 'Expect: 100-continue']))
    const text = await client.closed()
    assert.equal(text.includes('100 Continue'), false)
    assert.equal(splitAnswers(text)[0]?.body.length, 1e6)
    await until(() => lines().some((line) => line.includes('late: client_closed')))
  })
})

describe('replies', () => {
  it('are made by destructured functions of the context', async (t) => {
    const files = { 'v.html': '<p>{{ a }} {{ path }}</p>' }
    const { url } = await serve(
      t,
      {
        '/json': '({ json }) => json({ a: 1 }, 201)',
        '/html': "({ html }) => html('<p>', 202)",
        '/text': "({ text }) => text('<p>', 203)",
        '/view': "({ view }) => view('v.html', { a: '<' }, 206)",
        '/redirect': "({ redirect }) => redirect('/x')",
        '/empty': '({ empty }) => empty()',
        '/empty200': '({ empty }) => empty(200)',
        '/fail': "({ fail }) => fail(418, 'teapot', 'I am <one>')",
        '/unsaid': '({ json }) => { json([1]) }',
        '/later': 'async ({ json }) => { await null; json([2], 201) }',
      },
      {},
      files,
    )
    const rows: [string, number, string | undefined, string][] = [
      ['/json', 201, 'application/json; charset=utf-8', '{"a":1}'],
      ['/html', 202, 'text/html; charset=utf-8', '<p>'],
      ['/text', 203, 'text/plain; charset=utf-8', '<p>'],
      ['/view', 206, 'text/html; charset=utf-8', '<p>&lt; /view</p>'],
      ['/redirect', 302, undefined, ''],
      ['/empty', 204, undefined, ''],
      ['/empty200', 200, undefined, ''],
      ['/fail', 418, 'application/json; charset=utf-8', '{"error":"teapot","detail":"I am <one>"}'],
      ['/unsaid', 200, 'application/json; charset=utf-8', '[1]'],
      ['/later', 201, 'application/json; charset=utf-8', '[2]'],
    ]
    for (const [path, status, type, body] of rows) {
      const answer = await request(url + path, { headers: asJson })
      assert.deepEqual([answer.status, answer.headers['content-type'], answer.text], [status, type, body], path)
      assert.equal(answer.headers['content-length'], path === '/empty' ? undefined : String(answer.bytes.length), path)
    }
  })

  it('redirect with valid header characters', async (t) => {
    const { url } = await serve(t, { '/': "(ctx) => ctx.redirect(ctx.query.get('to'), Number(ctx.query.get('status') ?? 302))" })
    const rows: [string, string][] = [
      ['/a?b=c&d#e', '/a?b=c&d#e'],
      ['/é/😀 x', '/%C3%A9/%F0%9F%98%80%20x'],
      ['/a\r\nSet-Cookie: b=c', '/a%0D%0ASet-Cookie:%20b=c'],
      ['/%C3%A9%20', '/%C3%A9%20'],
      ['/\0\x7f', '/%00%7F'],
      ['https://example.org/', 'https://example.org/'],
      ['', ''],
    ]
    for (const [to, location] of rows) {
      const answer = await request(`${url}/?to=${encodeURIComponent(to)}`)
      assert.deepEqual([answer.status, answer.headers.location, answer.text], [302, location, ''])
      assert.equal(answer.headers['set-cookie'], undefined)
    }
    for (const status of [301, 303, 307, 308]) {
      assert.equal((await request(`${url}/?to=/&status=${status}`)).status, status)
    }
    for (const status of [200, 300, 304, 404]) assert.equal((await request(`${url}/?to=/&status=${status}`)).status, 500)
  })

  it('replace a lone surrogate in a redirect', async (t) => {
    const { url } = await serve(t, { '/': "(ctx) => ctx.redirect('/\\ud83d')" })
    assert.equal((await request(url)).headers.location, '/%EF%BF%BD')
  })

  it('are made from the return value of the action', async (t) => {
    const { url } = await serve(t, {
      '/string': "() => '<p>'",
      '/empty-string': "() => ''",
      '/object': '() => ({ a: 1 })',
      '/array': '() => [1]',
      '/bytes': '() => Uint8Array.of(0, 255)',
      '/buffer': "() => Buffer.from('é')",
      '/undefined': '() => {}',
      '/undefined201': '(ctx) => { ctx.status = 201 }',
      '/promise': "async () => 'late'",
      '/thenable': "() => ({ then: (resolve) => resolve('thenable') })",
      '/replaced': "(ctx) => { ctx.text('first'); return 'second' }",
    })
    const json = 'application/json; charset=utf-8'
    const html = 'text/html; charset=utf-8'
    const rows: [string, number, string | undefined, string][] = [
      ['/string', 200, html, '<p>'],
      ['/empty-string', 200, html, ''],
      ['/object', 200, json, '{"a":1}'],
      ['/array', 200, json, '[1]'],
      ['/bytes', 200, 'application/octet-stream', '\0\u00ff'],
      ['/buffer', 200, 'application/octet-stream', 'Ã©'],
      ['/undefined', 204, undefined, ''],
      ['/undefined201', 201, undefined, ''],
      ['/promise', 200, html, 'late'],
      ['/thenable', 200, html, 'thenable'],
      ['/replaced', 200, html, 'second'],
    ]
    for (const [path, status, type, body] of rows) {
      const answer = await request(url + path)
      assert.deepEqual([answer.status, answer.headers['content-type'], answer.bytes.toString('latin1')], [status, type, body], path)
    }
  })

  it('that are invalid are 500, and the connection continues', async (t) => {
    const { url, port, lines } = await serve(t, {
      '/function': '() => () => 1',
      '/symbol': "() => Symbol('a')",
      '/bigint': '() => 1n',
      '/json': '(ctx) => ctx.json(undefined)',
      '/text': '(ctx) => ctx.text(42)',
      '/html': '(ctx) => ctx.html(undefined)',
      '/status': "(ctx) => { ctx.status = 99; return 'x' }",
      '/status600': "(ctx) => ctx.text('x', 600)",
      '/status-text': "(ctx) => ctx.text('x', '201')",
      '/fail': "(ctx) => ctx.fail(302, 'found', 'x')",
      '/ok': "() => 'ok'",
    })
    const paths = ['/function', '/symbol', '/bigint', '/json', '/text', '/html', '/status', '/status600', '/status-text', '/fail']
    const client = new Connection(t, port)
    for (const path of paths) await client.send(requestText(`GET ${path}`))
    await client.send(requestText('GET /ok'))
    const answers = await client.answers(paths.length + 1)
    assert.deepEqual(answers.map(({ status }) => status), [...paths.map(() => 500), 200])
    client.socket.destroy()
    assert.equal(lines().filter((line) => line.includes('[ERROR] [error]')).length, paths.length)
    assert.equal((await request(`${url}/ok`)).text, 'ok')
  })

  it('use the status set before or after', async (t) => {
    const { url } = await serve(t, {
      '/before': "(ctx) => { ctx.status = 201; return 'x' }",
      '/after': "(ctx) => { ctx.json(1, 202); ctx.status = 203 }",
      '/said': "(ctx) => { ctx.status = 201; return ctx.json(1, 202) }",
      '/kept': "(ctx) => { ctx.status = 201; return ctx.json(1) }",
      '/read': '(ctx) => [ctx.status, ctx.json(1, 207) && ctx.status]',
    })
    assert.equal((await request(`${url}/before`)).status, 201)
    assert.equal((await request(`${url}/after`)).status, 203)
    assert.equal((await request(`${url}/said`)).status, 202)
    assert.equal((await request(`${url}/kept`)).status, 201)
    assert.deepEqual((await request(`${url}/read`)).json(), [0, 207])
  })
})

describe('header fields and cookies of the response', () => {
  it('have one cookie per name, domain and path: the last that was set', async (t) => {
    const { url } = await serve(t, {
      '/': `({ setCookie }) => {
        for (const value of ['1', '2']) {
          setCookie('a', value)
          setCookie('a', value, { path: '/x' })
          setCookie('a', value, { domain: 'example.org' })
          setCookie('b', value, { maxAge: Number(value) })
        }
        setCookie('a', '3', { domain: 'Example.ORG', httpOnly: false })
        return 'x'
      }`,
    })
    const { headers } = await request(url)
    assert.deepEqual(headers['set-cookie'], [
      'a=2; Path=/; HttpOnly; SameSite=Lax',
      'a=2; Path=/x; HttpOnly; SameSite=Lax',
      'b=2; Max-Age=2; Path=/; HttpOnly; SameSite=Lax',
      'a=3; Domain=Example.ORG; Path=/; SameSite=Lax',
    ])
  })

  it('are set by destructured functions of the context', async (t) => {
    const { url } = await serve(t, {
      '/': `({ setHeader, setCookie }) => {
        setHeader('X-A', 'first')
        setHeader('x-a', 1)
        setHeader('X-B', ['1', '2'])
        setHeader('Content-Type', 'text/css')
        setCookie('a', 'é; x')
        setCookie('b', '', { maxAge: 0, path: '/x', domain: 'example.org', httpOnly: false, secure: true, sameSite: 'None' })
        return 'x'
      }`,
    })
    const { status, headers } = await request(url)
    assert.deepEqual([status, headers['x-a'], headers['x-b'], headers['content-type']], [200, '1', '1, 2', 'text/css'])
    const [first = '', second = ''] = headers['set-cookie'] ?? []
    assert.equal(first, 'a=%C3%A9%3B%20x; Path=/; HttpOnly; SameSite=Lax')
    for (const attribute of ['Max-Age=0', 'Path=/x', 'Domain=example.org', 'Secure']) assert.ok(second.includes(attribute), second)
    assert.doesNotMatch(second, /HttpOnly/)
  })

  it('cannot be injected', async (t) => {
    const { url } = await serve(t, {
      '/header': "(ctx) => { ctx.setHeader('X-A', ctx.query.get('v')); return 'x' }",
      '/name': "(ctx) => { ctx.setHeader(ctx.query.get('v'), 'a'); return 'x' }",
      '/cookie': "(ctx) => { ctx.setCookie('a', 'b', { path: ctx.query.get('v') }); return 'x' }",
      '/cookie-name': "(ctx) => { ctx.setCookie(ctx.query.get('v'), 'b'); return 'x' }",
      '/length': "(ctx) => { ctx.setHeader('Content-Length', ctx.query.get('v')); return 'x' }",
      '/type': "(ctx) => { ctx.setHeader('Content-Type', ctx.query.get('v')); return 'x' }",
    })
    const value = encodeURIComponent('a\r\nX-Evil: 1\r\n\r\n<script>')
    for (const path of ['/header', '/name', '/cookie', '/cookie-name', '/length', '/type']) {
      const answer = await request(`${url}${path}?v=${value}`)
      assert.deepEqual([answer.status, answer.headers['x-evil']], [500, undefined], path)
      assert.doesNotMatch(answer.text, /script/)
    }
  })
})

describe('other members', () => {
  it('build the path of a named route', async (t) => {
    const { url } = await serve(t, { '/a/:b': "({ url }) => url('r0', { b: 'é/' })", '/bad': "(ctx) => ctx.url('none')" })
    assert.equal((await request(`${url}/a/x`)).text, '/a/%C3%A9%2F')
    assert.equal((await request(`${url}/bad`)).status, 500)
  })

  it('write log lines at every level and for a module', async (t) => {
    const { url, lines } = await serve(t, {
      '/': `({ logger, log, ld, l, lw, le, lf }) => {
        log('1'); log.debug('2'); log.info('3'); log.warn('4'); log.error('5'); log.fatal('6')
        ld('7'); l('8'); lw('9'); le('10'); lf('11')
        logger('billing').warn('12')
      }`,
    })
    const headers = { 'x-request-id': 'one-of-12' }
    assert.equal((await request(url, { headers })).status, 204)
    const found = lines().flatMap((line) => /\[(\w+) *\] \[(app|billing)\] (\d+(?: \[.*\])?)$/.exec(line)?.slice(1).join(' ') ?? [])
    assert.deepEqual(found, [
      'INFO app 1 [one-of-12]',
      'DEBUG app 2 [one-of-12]',
      'INFO app 3 [one-of-12]',
      'WARN app 4 [one-of-12]',
      'ERROR app 5 [one-of-12]',
      'FATAL app 6 [one-of-12]',
      'DEBUG app 7 [one-of-12]',
      'INFO app 8 [one-of-12]',
      'WARN app 9 [one-of-12]',
      'ERROR app 10 [one-of-12]',
      'FATAL app 11 [one-of-12]',
      'WARN billing 12 [one-of-12]',
    ])
  })

  it('log the stack of an error as the only argument, at every level', async (t) => {
    const { url, lines } = await serve(t, {
      '/': `({ log, le }) => {
        log(new Error('a')); log.warn(new Error('b')); log.error(new Error('c')); log.fatal(new Error('d')); le(new Error('e'))
        log.warn('f', new Error('g')); log.error(Symbol('h'))
      }`,
    })
    assert.equal((await request(url, { headers: { 'x-request-id': 'one-of-12' } })).status, 204)
    const found = lines().flatMap((line) => /^(?:.*\[app\] (.*)|    (Error: .*))$/.exec(line)?.slice(1).join('') ?? [])
    const expected = ['a', 'b', 'c', 'd', 'e'].flatMap((name) => [`Error: ${name} [one-of-12]`, `Error: ${name}`])
    assert.deepEqual(found, [...expected, 'f [one-of-12]', 'Error: g', 'Symbol(h) [one-of-12]'])
  })

  it('pass state from middleware to the action, and let middleware change the response', async (t) => {
    const { url } = await serve(
      t,
      {},
      {},
      {
        'routes/m.json': [
          { name: 'm', url: '/m', action: 'm.mjs', middleware: 'outer, stop' },
          { name: 'n', url: '/n', action: 'm.mjs', middleware: 'silent' },
        ],
        'routes/middleware/config.json': { load: ['mw.mjs'] },
        'routes/middleware/mw.mjs': `
          export const outer = async (ctx, next) => { ctx.state.user = 'ann'; await next(); ctx.status = 202; ctx.setHeader('X-After', '1') }
          export const stop = (ctx, next) => ctx.query.has('stop') ? void ctx.text('stopped', 403) : next()
          export const silent = () => {}`,
        'm.mjs': 'export default ({ state }) => ({ user: state.user })',
      },
    )
    const answer = await request(`${url}/m`)
    assert.deepEqual([answer.status, answer.json(), answer.headers['x-after']], [202, { user: 'ann' }, '1'])
    assert.equal((await request(`${url}/m?stop`)).text, 'stopped')
    assert.equal((await request(`${url}/n`)).status, 404, 'a request is a 404 until there is a reply')
  })
})
