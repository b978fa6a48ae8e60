// `ctx.validate` with real requests: forms, JSON, files, errors, and the redirect back to the form.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { request, type Answer } from '../support/request.ts'
import { startForms, formType, type Person } from './validate-application.ts'

const json = 'application/json'
const errorsOf = (answer: Answer): unknown => {
  const { error, errors, ...others } = answer.json() as { error: string; errors: unknown }
  assert.deepEqual([answer.status, error, others], [422, 'invalid', {}], answer.text)
  return errors
}

/** A multipart body. */
function multipart(parts: readonly (readonly [name: string, value: string, file?: readonly [filename: string, type: string]])[]) {
  const body = parts.map(([name, value, file]) => {
    const more = file === undefined ? '' : `; filename="${file[0]}"\r\nContent-Type: ${file[1]}`
    return `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
  })
  return { headers: { 'content-type': 'multipart/form-data; boundary=b' }, body: `${body.join('')}--b--\r\n` }
}

describe('ctx.validate', () => {
  it('returns the values of a form and of JSON, with their types', async (t) => {
    const { post } = await startForms(t)
    const form = await post('/notes', 'title=+Milk+&size=2&tags=a&tags=b&public=on&address.city=Oslo&unknown=1')
    const values = { title: 'Milk', size: 2, tags: ['a', 'b'], public: true, address: { city: 'Oslo' } }
    assert.deepEqual(form.json(), { values, prototype: null })
    const body = JSON.stringify({ ...values, unknown: 1 })
    assert.deepEqual((await post('/notes', body, { headers: { 'content-type': json } })).json(), { values, prototype: null })
    const other = await post('/notes', body, { headers: { 'content-type': 'application/vnd.api+json; charset=utf-8' } })
    assert.deepEqual(other.json(), { values, prototype: null })
  })

  it('treats a form without fields, and a missing body, as an empty form', async (t) => {
    const { app } = await startForms(t)
    const headers = { accept: json }
    const errors = { title: ['Required'] }
    assert.deepEqual(errorsOf(await request(`${app.url}/notes`, { method: 'POST', headers })), errors)
    assert.deepEqual(errorsOf(await request(`${app.url}/notes`, { body: '', headers: { ...headers, 'content-type': formType } })), errors)
  })

  it('refuses other bodies with 415, and invalid JSON with 400', async (t) => {
    const { post } = await startForms(t)
    for (const type of ['text/plain', 'application/xml', 'text/json', 'application/jsonx', 'nonsense', 'application/octet-stream']) {
      const answer = await post('/api', '{"name":"x","count":1}', { headers: { 'content-type': type, accept: json } })
      assert.equal(answer.status, 415, type)
      assert.match(answer.text, /"error":"unsupported_media_type","detail":"Cannot read the body: it must be a form or JSON, and its Content-Type is/)
    }
    const { app } = await startForms(t)
    assert.equal((await request(`${app.url}/api`, { body: 'a=b' })).status, 415)
    for (const body of ['', '{', '{"name":}']) {
      assert.equal((await post('/api', body, { headers: { 'content-type': json } })).status, 400, body)
    }
  })

  it('answers JSON with 422 and its errors by path', async (t) => {
    const { post } = await startForms(t)
    const send = async (value: unknown, path = '/notes') =>
      errorsOf(await post(path, JSON.stringify(value), { headers: { 'content-type': json } }))
    assert.deepEqual(await send({ size: '2', tags: ['x', 'toolong', 1], public: 'on', address: {} }), {
      title: ['Required'],
      size: ['Must be a whole number'],
      'tags.1': ['Must have at most 5 characters'],
      'tags.2': ['Must be a text'],
      public: ['Must be yes or no'],
      'address.city': ['Required'],
    })
    assert.deepEqual(await send([]), { '': ['Must be an object'] })
    assert.deepEqual(await send('x'), { '': ['Must be an object'] })
    assert.deepEqual(await send({ name: 'x', count: -1e400 }, '/api'), { count: ['Required'] })
  })

  it('throws an error with the problems that an action can catch', async (t) => {
    const { post } = await startForms(t)
    const caught = await post('/caught', 'title=&size=0&password=x', { from: '' })
    assert.deepEqual(caught.json(), {
      status: 422,
      code: 'invalid',
      errors: { title: ['Required'], size: ['Must be 1 or more'] },
      input: { title: '', size: '0', tags: [], public: '' },
    })
  })

  it('lets an action that catches it show the form itself, with and without a session', async (t) => {
    const { post, open, app } = await startForms(t)
    for (const [path, from] of [['/again', ''], ['/again', '/notes/new'], ['/again/session', ''], ['/again/session', '/notes/new']] as const) {
      const { status, text } = await post(path, 'title=&tags=b&password=x', { from })
      assert.equal(status, 422)
      assert.match(text, /<p id="title-error">Required<\/p>[^]*name="title" value=""[^]*name="tags" value="b"[^]*value="none"/, path)
    }
    for (const path of ['/notes/new', '/open/notes/new']) assert.doesNotMatch((await open(path)).text, /title-error/)
    assert.equal(app.lines().some((line) => / WARN | ERROR/.test(line)), false)
  })

  it('refuses anything but a schema, with a clear message', async (t) => {
    const { post, app } = await startForms(t)
    assert.equal((await post('/wrong', 'title=x')).status, 500)
    assert.match(app.lines().join('\n'), /Cannot validate: pass fields\(\{\.\.\.\}\) or a Standard Schema: it is \{ title: \[Field\] \}/)
  })
})

describe('a form with invalid input', () => {
  it('is sent back to its page, which shows the errors and the input once', async (t) => {
    const { post, open } = await startForms(t)
    const body = 'title=&size=0&tags=b&tags=&password=geheim&code=1234&address.city=&address.street=x'
    const sent = await post('/notes', body, { from: '/notes/new?tab=2&x=%20y#part' })
    assert.deepEqual([sent.status, sent.headers['location'], sent.text], [303, '/notes/new?tab=2&x=%20y', ''])
    const { text } = await open('/notes/new?tab=2')
    assert.match(text, /<p id="title-error">Required<\/p>/)
    assert.match(text, /name="title" value=""/)
    assert.match(text, /name="public" >/)
    assert.match(text, /value="b">\s*<input name="tags" value="">/)
    assert.match(text, /name="password" value="none"/)
    assert.match(text, /<i>Must be 1 or more<\/i>/)
    assert.doesNotMatch(text, /geheim|1234|city-error/)
    const again = (await open('/notes/new')).text
    assert.match(again, /name="title" value="untitled"[^]*checked[^]*name="tags" value="a"[^]*<i><\/i>/)
    assert.doesNotMatch(again, /title-error/)
  })

  it('escapes what was typed', async (t) => {
    const { post, open } = await startForms(t)
    await post('/notes', `title=${encodeURIComponent('"><script>alert(1)</script>')}`)
    assert.match((await open('/notes/new')).text, /value="&quot;&gt;&lt;script&gt;/)
  })

  it('can use another bag', async (t) => {
    const { post, open } = await startForms(t)
    assert.equal((await post('/named', 'title=', { from: '/other' })).status, 303)
    assert.doesNotMatch((await open('/notes/new')).text, /title-error/)
    assert.match((await open('/other')).text, /<b>Required<\/b>\s*<i><\/i>/)
    assert.match((await open('/other')).text, /^<i>-<\/i>/)
  })

  it('keeps errors and input until the page is shown: a HEAD or a prefetch does not consume them', async (t) => {
    const { post, open } = await startForms(t)
    await post('/notes', 'title=')
    assert.equal((await open('/notes/new', {}, 'HEAD')).status, 200)
    assert.match((await open('/notes/new', { 'sec-purpose': 'prefetch' })).text, /title-error/)
    assert.match((await open('/notes/new', { 'sec-purpose': 'prefetch;prerender' })).text, /title-error/)
    assert.match((await open('/notes/new')).text, /title-error/)
    assert.doesNotMatch((await open('/notes/new')).text, /title-error/)
  })

  it('keeps other values of the bag', async (t) => {
    const { post, open } = await startForms(t, {
      'page.html': "{{ UFlash('form').get('message') }} {{ errorsOf('title').length }} {{ UFlash('form').get('errors') }}\n",
      'b.mjs': "export default ({ flash, empty }) => { flash('form').set('message', 'Hello'); return empty() }",
      'routes/b.json': [{ name: 'b', url: '/b', action: 'b.mjs', middleware: 'SVC_MwSession' }],
    })
    await open('/b')
    await post('/notes', 'title=')
    assert.equal((await open('/notes/new')).text, 'Hello 1 \n')
    assert.equal((await open('/notes/new')).text, ' 0 \n')
  })

  it('leaves no file, no token, and no field that is secret by name or kind', async (t) => {
    const { post, open } = await startForms(t)
    const secrets = [
      '_csrf', '_resource_id', 'setup_token', 'code', 'password', 'PASSWORD2', 'user_pass', 'passphrase', 'apiSecret', 'token', 'accessToken',
      'otp', 'otp_1', 'otp1', 'userPin', 'userPIN', 'PIN', 'card', 'cardNumber', 'card-number', 'my.card', 'CVC', 'cvv', 'iban', 'IBANNumber', 'iban.0',
    ]
    const plain = ['spinner', 'pinned', 'discard', 'cardinal', 'author', 'opt', 'cv', 'Ibanez', 'shipping', 'numéro', '__proto__', 'constructor']
    const parts = [...secrets, ...plain].map((name) => [name, 'x'] as const)
    const file = ['picture', 'x', ['a.png', 'image/png']] as const
    const sent = await post('/notes', '', multipart([['title', ''], ...parts, file, ['tags', 'a']]))
    assert.equal(sent.status, 303)
    const { input } = (await open('/bag')).json() as { input: Record<string, unknown> }
    assert.deepEqual(Object.keys(input).sort(), ['title', 'tags', 'public', ...plain].sort())
  })

  it('leaves no token under its configured name', async (t) => {
    const { post, open } = await startForms(t, { 'routes/middleware/config.json': { setup: { csrf: { field: 'form_key' } } } })
    await post('/notes', 'title=&form_key=x&other_key=y')
    const { input } = (await open('/bag')).json() as { input: unknown }
    assert.deepEqual(input, { title: '', tags: [], public: '', other_key: 'y' })
  })

  it('leaves a list for repeated names, and for a list', async (t) => {
    const { post, open } = await startForms(t)
    await post('/notes', 'title=&tags=a&free=1&free=2&one=1')
    const { input } = (await open('/bag')).json() as { input: unknown }
    assert.deepEqual(input, { title: '', tags: ['a'], free: ['1', '2'], one: '1', public: '' })
  })

  const stays = async ({ post, open }: Person, ...args: Parameters<Person['post']>): Promise<void> => {
    const answer = await post(...args)
    assert.deepEqual([answer.status, answer.headers['location']], [422, undefined], JSON.stringify(args.slice(0, 3)).slice(0, 200))
    assert.deepEqual((await open('/bag')).json(), {})
  }

  it('is answered with the 422 page if its own page is unknown', async (t) => {
    const person = await startForms(t)
    const { url, port } = person.app
    const referers = [
      '', 'nonsense', 'http://evil.example/notes/new', `http://127.0.0.1:${port + 1}/notes/new`, `http://localhost:${port}/notes/new`,
      `http://127.0.0.1:${port}@evil.example/notes/new`, `ftp://127.0.0.1:${port}/notes/new`, `${url}//evil.example/`, `${url}/\\evil.example/`,
      `${url}/x/..//evil.example`, `${url}/nowhere`, `${url}/api`, `${url}/odd/%ff`, `${url}/svc-stop`, `${url}/svc-logout`, `${url}/svc-status`, `${url}/x/%2e%2e/svc-stop`,
      'null', 'about:blank', `${url}.evil.example/notes/new`, `http://evil.example/?${url}/notes/new`,
    ]
    for (const from of referers) await stays(person, '/notes', 'title=', { from, headers: from === '' ? {} : { referer: from } })
    const resolved = await person.post('/notes', 'title=', { from: `${url}/x/../notes/./new?a=//b` })
    assert.equal(resolved.headers['location'], '/notes/new?a=//b')
  })

  it('knows its host by the Host field, also behind a proxy', async (t) => {
    const { post } = await startForms(t, {}, { 'server.trusted_proxies': ['127.0.0.1'] })
    const proxied = { 'x-forwarded-host': 'notes.example', 'x-forwarded-proto': 'https' }
    const locate = async (from: string, headers: Readonly<Record<string, string>>) => (await post('/notes', 'title=', { from, headers })).status
    assert.equal(await locate('https://notes.example/notes/new', proxied), 303)
    assert.equal(await locate('https://NOTES.example:443/notes/new', proxied), 303)
    assert.equal(await locate('http://notes.example/notes/new', proxied), 422)
    assert.equal(await locate('https://notes.example/notes/new', { host: 'notes.example' }), 303)
    assert.equal(await locate('https://notes.example/notes/new', {}), 422)
  })

  it('is not sent back without a session, and does not start one', async (t) => {
    const person = await startForms(t)
    for (const cookie of ['', 'SVCSID=unknown', `SVCSID=${'x'.repeat(43)}`]) {
      const answer = await person.post('/notes', 'title=', { headers: { cookie } })
      assert.equal(answer.status, 422)
      assert.equal(answer.headers['set-cookie'], undefined)
    }
    await stays(person, '/open/notes', 'title=', { from: '/open/notes/new' })
  })

  it('is not sent back to a program, nor with error_format json; but with html', async (t) => {
    const person = await startForms(t)
    const { post } = person
    for (const headers of [{ accept: json }, { 'x-requested-with': 'XMLHttpRequest' }]) {
      assert.deepEqual(errorsOf(await post('/notes', 'title=', { headers })), { title: ['Required'] })
    }
    assert.deepEqual(errorsOf(await post('/json', 'title=')), { title: ['Required'] })
    assert.equal((await post('/html', 'title=', { headers: { accept: json } })).status, 303)
    const page = await post('/html', '{}', { headers: { 'content-type': json } })
    assert.deepEqual([page.status, page.headers['content-type']], [422, 'text/html; charset=utf-8'])
  })

  it('is not sent back after a GET: it could loop forever', async (t) => {
    const { open, app } = await startForms(t)
    assert.equal((await open('/search', { referer: `${app.url}/search` })).status, 422)
  })

  it('is sent back with up to 16 KiB of input', async (t) => {
    const { post, open } = await startForms(t)
    const length = 16_384 - JSON.stringify({ title: '', tags: [], public: '' }).length
    assert.equal((await post('/notes', `title=${'x'.repeat(length)}`)).status, 303)
    assert.equal((await post('/notes', `title=${'x'.repeat(length + 1)}`)).status, 422)
    assert.equal((await post('/notes', `title=${'%C3%A9'.repeat(length / 2 + 1)}`)).status, 422)
    assert.equal(((await open('/bag')).json() as { input: { title: string } }).input.title.length, length)
    const large = multipart([['title', ''], ['picture', 'x'.repeat(100_000), ['a.png', 'image/png']]])
    assert.equal((await post('/notes', '', large)).status, 303)
    // Errors count towards the session as well.
    assert.equal((await post('/notes', 'title=&' + 'tags=123456&'.repeat(900))).status, 422)
  })

  it('drops what the action had set for the response, but keeps cookies', async (t) => {
    const { post } = await startForms(t, {
      'a.mjs': `export const save = (ctx) => {
        ctx.setHeader('ETag', '"x"'); ctx.setHeader('X-Own', 'y'); ctx.setCookie('seen', '1'); ctx.status = 201
        return ctx.validate(ctx.fields({ title: ctx.fields.text() }))
      }
      export const begin = ({ session }) => { session.set('here', 1); return 'begun' }
      export { save as named, save as bag, save as api, save as standard, save as wrong, save as caught }`,
    })
    const { status, headers } = await post('/notes', 'title=')
    assert.deepEqual([status, headers['etag'], headers['x-own'], headers['set-cookie']?.length, headers['content-length']], [303, undefined, 'y', 1, '0'])
  })

  it('is not an error in the metrics, but a 422 is', async (t) => {
    const { post, open } = await startForms(t, {}, { 'app.env': 'dev' })
    const errors = async () => ((await open('/svc-status')).json() as { requests: { errors: number } }).requests.errors
    const before = await errors()
    await post('/notes', 'title=')
    assert.equal(await errors(), before)
    await post('/notes', 'title=', { from: '' })
    assert.equal(await errors(), before + 1)
  })
})

describe('the 422 page', () => {
  const own = `<h1>{{ title }}</h1>
@foreach entry in Object.entries(errors)
<li>{{ entry[0] }}: {{ entry[1].join() }}</li>
@endforeach
@error 'title'
<p>{{ message }}</p>
@enderror
<input value="{{ old('title', 'none') }}"><i>{{ input.title }}</i><b>{{ old('password', 'none') }}</b>
`

  it('is the server\'s own, with the errors, escaped', async (t) => {
    const { post } = await startForms(t)
    const { status, text } = await post('/notes', 'title=&size=x', { from: '' })
    assert.equal(status, 422)
    assert.match(text, /<h1>422 Unprocessable Entity<\/h1>[^]*title: Required\nsize: Must be a whole number/)
  })

  it('can be the application\'s, with errors and input', async (t) => {
    const { post, app } = await startForms(t, { 'routes/errors/422.html': own })
    const { text } = await post('/notes', 'title=+&size=x&password=y', { from: '' })
    assert.match(text, /<li>title: Required<\/li>\s*<li>size: Must be a whole number<\/li>\s*<p>Required<\/p>\s*<input value=" "><i> <\/i><b>none<\/b>/)
    assert.equal(app.lines().some((line) => line.includes('ERROR')), false)
  })

  it('can be the page for all errors: other errors have neither', async (t) => {
    const { open, post, app } = await startForms(t, { 'routes/errors/error.html': own })
    assert.match((await open('/nowhere')).text, /^<h1>Not Found<\/h1>\n<input value="none"><i><\/i>/)
    assert.match((await post('/notes', 'title=', { from: '' })).text, /<p>Required<\/p>/)
    assert.equal(app.lines().some((line) => line.includes('ERROR')), false)
  })
})

describe('files of a form', () => {
  const send = async (t: TestContext, ...file: readonly [filename: string, type: string, content?: string]) => {
    const { post } = await startForms(t)
    const [filename, type, content = 'x'] = file
    const form = multipart([['title', 'x'], ['picture', content, [filename, type]]])
    return post('/notes', '', { ...form, headers: { ...form.headers, accept: json } })
  }

  it('are accepted by their types', async (t) => {
    assert.equal(((await send(t, 'a.png', 'image/png')).json() as { picture: string }).picture, 'a.png')
    assert.equal(((await send(t, 'a.html', 'IMAGE/PNG; x=y')).json() as { picture: string }).picture, 'a.html')
  })

  it('are refused by type, whatever their names, and by size', async (t) => {
    assert.deepEqual(errorsOf(await send(t, 'a.png', 'text/html')), { picture: ['Must be a file of type image/*'] })
    assert.deepEqual(errorsOf(await send(t, 'a.png', 'image/svg+xml')), { picture: ['Must be a file of type image/*'] })
    assert.deepEqual(errorsOf(await send(t, 'a.png', 'image/png', 'x'.repeat(1025))), { picture: ['Must be a file of at most 1 KiB'] })
    assert.deepEqual(errorsOf(await send(t, 'a.png', 'image/png', 'x'.repeat(100_000))), { picture: ['Must be a file of at most 1 KiB'] })
  })

  it('of an empty input do not count', async (t) => {
    assert.equal((await send(t, '', 'application/octet-stream', '')).status, 200)
  })
})
