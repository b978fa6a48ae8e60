// `ctx.invalid`: errors that only an action can find are answered as those of `ctx.validate` are.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { request, type Answer } from '../support/request.ts'
import { startForms, type Person } from './validate-application.ts'

const actions = `import { fields } from 'svc'
const user = fields({
  email: fields.email(),
  code: fields.secret().optional(),
  tags: fields.list(fields.text()),
  news: fields.boolean(),
})
const taken = { email: 'Taken' }
export const register = async (ctx) => {
  const { email } = await ctx.validate(user)
  return email === 'a@b.c' ? ctx.invalid(taken) : ctx.text('Welcome')
}
export const read = async (ctx) => {
  await ctx.readForm()
  ctx.invalid(taken)
}
export const unread = (ctx) => ctx.invalid(taken, { form: undefined })
export const other = async (ctx) => {
  await ctx.validate(user, { form: 'other' })
  ctx.invalid({ email: ['Taken', 'Really'], '': 'Try again' }, { form: 'other' })
}
export const twice = async (ctx) => {
  await ctx.validate(user)
  await ctx.validate(fields({ more: fields.list(fields.text()), pens: fields.secret().optional() }))
  ctx.invalid(taken)
}
export const odd = (ctx) => ctx.invalid(JSON.parse('{"__proto__": "No", "constructor": ["No", "Never"]}'))
export const large = async (ctx) => {
  await ctx.validate(user)
  ctx.invalid({ email: 'x'.repeat(16_384) })
}
export const again = async (ctx) => {
  try {
    return await register(ctx)
  } catch (error) {
    return ctx.view('user.html', {}, error.status)
  }
}
export const found = (ctx) => (ctx.query.get('email') ?? ctx.invalid(taken)) && ctx.text('Found')
const wrong = {
  nothing: undefined, null: null, text: 'Taken', list: ['Taken'], empty: {}, number: { email: 5 }, emptyText: { email: '' },
  emptyList: { email: [] }, listOfOthers: { email: ['a', 5] }, listOfEmpty: { email: [''] }, map: new Map([['email', 'Taken']]), prototype: { __proto__: { email: 'a' } },
}
export const bad = (ctx) => ctx.invalid(wrong[ctx.params.name])
export const names = (ctx) => ctx.json(Object.keys(wrong))
`
const names = ['register', 'read', 'unread', 'other', 'twice', 'odd', 'large', 'again', 'found']
const files = {
  'u.mjs': actions,
  'user.html': "{{ old('email') }} {{ old('code', 'none') }} {{ errorsOf('email').join() }}\n",
  'routes/u.json': [
    ...names.map((name) => ({ name: `u.${name}`, method: 'POST', url: `/u/${name}`, action: `u.mjs@${name}`, middleware: 'SVC_MwSession' })),
    { name: 'u.get', method: 'GET', url: '/u/found', action: 'u.mjs@found', middleware: 'SVC_MwSession' },
    { name: 'u.open', method: 'POST', url: '/u/open', action: 'u.mjs@register' },
    { name: 'u.bad', method: 'GET', url: '/bad/:name', action: 'u.mjs@bad' },
    { name: 'u.names', method: 'GET', url: '/names', action: 'u.mjs@names' },
  ],
}
const start = (t: TestContext) => startForms(t, files)
const json = { accept: 'application/json' }
const body = 'email=a%40b.c&code=1234&password=x&tags=a&_csrf=y&other=z'
const input = { email: 'a@b.c', tags: ['a'], news: '', other: 'z' }
const bagOf = async ({ open }: Person, id = 'form'): Promise<unknown> => (await open(`/bag?id=${id}`)).json()
const assertBack = (answer: Answer): void =>
  assert.deepEqual([answer.status, answer.headers['location'], answer.text], [303, '/notes/new', ''])

describe('ctx.invalid', () => {
  it('sends a form back to its page with errors and input, by the rules of the schema that has read it', async (t) => {
    const person = await start(t)
    assertBack(await person.post('/u/register', body))
    assert.deepEqual(await bagOf(person), { errors: { email: ['Taken'] }, input })
    assert.equal((await person.post('/u/register', 'email=b%40b.c')).text, 'Welcome')
  })

  it('knows a form that only readForm has read, without a schema', async (t) => {
    const person = await start(t)
    assertBack(await person.post('/u/read', body))
    assert.deepEqual(await bagOf(person), { errors: { email: ['Taken'] }, input: { email: 'a@b.c', code: '1234', tags: 'a', other: 'z' } })
    const part = (name: string, more = ''): string => `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\nx\r\n`
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    assertBack(await person.post('/u/read', `${part('email')}${part('file', '; filename="a.png"')}--b--\r\n`, { headers }))
    assert.deepEqual(await bagOf(person), { errors: { email: ['Taken'] }, input: { email: 'x' } })
  })

  it('leaves no input of a form that has not been read, or that is missing', async (t) => {
    const person = await start(t)
    assertBack(await person.post('/u/unread', body))
    assert.deepEqual(await bagOf(person), { errors: { email: ['Taken'] }, input: {} })
    const headers = { cookie: person.cookie, referer: `${person.app.url}/notes/new` }
    assertBack(await request(`${person.app.url}/u/unread`, { method: 'POST', headers }))
    assert.deepEqual(await bagOf(person), { errors: { email: ['Taken'] }, input: {} })
  })

  it('takes several texts, an error of the whole, and another bag', async (t) => {
    const person = await start(t)
    assertBack(await person.post('/u/other', body))
    assert.deepEqual(await bagOf(person), {})
    assert.deepEqual(await bagOf(person, 'other'), { errors: { email: ['Taken', 'Really'], '': ['Try again'] }, input })
  })

  it('keeps the rules of several schemas', async (t) => {
    const person = await start(t)
    assertBack(await person.post('/u/twice', `${body}&more=1&pens=2`))
    assert.deepEqual(await bagOf(person), { errors: { email: ['Taken'] }, input: { ...input, more: ['1'] } })
  })

  it('answers a program with 422 and the errors', async (t) => {
    const { app, post } = await start(t)
    const expected = { error: 'invalid', errors: { email: ['Taken'] } }
    const answers = [
      await post('/u/register', body, { headers: json }),
      await post('/u/register', '{"email":"a@b.c","tags":[],"news":true}', { headers: { 'content-type': 'application/json' } }),
      await request(`${app.url}/u/found`, { headers: json }),
    ]
    for (const answer of answers) assert.deepEqual([answer.status, answer.json()], [422, expected])
    assert.equal((await request(`${app.url}/u/found?email=x`)).text, 'Found')
  })

  it('follows the other rules of a refused form', async (t) => {
    const person = await start(t)
    const { app, post, open } = person
    const stays: readonly Answer[] = [
      await post('/u/register', body, { from: '' }),
      await post('/u/register', body, { from: 'http://evil.example/notes/new' }),
      await post('/u/register', body, { from: '/nowhere' }),
      await post('/u/register', body, { headers: { cookie: '' } }),
      await post('/u/register', `${body}&big=${'x'.repeat(16_384)}`),
      await post('/u/large', body),
      await post('/u/open', body),
      await open('/u/found', { referer: `${app.url}/notes/new` }),
      await open('/u/found', { referer: `${app.url}/notes/new` }, 'HEAD'),
    ]
    for (const { status, headers } of stays) assert.deepEqual([status, headers['location']], [422, undefined])
    assert.deepEqual(await bagOf(person), {})
    assert.match(stays[0]?.text ?? '', /email: Taken/)
  })

  it('lets an action that catches it show the form itself', async (t) => {
    const { post } = await start(t)
    const answer = await post('/u/again', body, { from: '' })
    assert.deepEqual([answer.status, answer.text], [422, 'a@b.c none Taken\n'])
  })

  it('takes any path', async (t) => {
    const person = await start(t)
    const answer = await person.post('/u/odd', body, { headers: json })
    assert.equal(answer.text, '{"error":"invalid","errors":{"__proto__":["No"],"constructor":["No","Never"]}}')
    assertBack(await person.post('/u/odd', body))
    const bag = (await person.open('/bag')).text
    assert.equal(bag, '{"errors":{"__proto__":["No"],"constructor":["No","Never"]},"input":{}}')
    assert.equal(({} as { email?: unknown }).email, undefined)
  })

  it('of anything but texts by path is a mistake with a clear message', async (t) => {
    const { app } = await start(t)
    const reasons: Readonly<Record<string, string>> = {
      nothing: 'it is undefined', null: 'it is null', text: "it is 'Taken'", list: "it is [ 'Taken' ]", empty: 'it is {}',
      number: '"email" has 5', emptyText: `"email" has ''`, emptyList: '"email" has []', listOfOthers: `"email" has [ 'a', 5 ]`, listOfEmpty: `"email" has [ '' ]`,
      map: "it is Map(1) {", prototype: 'it is {}',
    }
    assert.deepEqual(Object.keys(reasons), (await request(`${app.url}/names`)).json())
    for (const [name, reason] of Object.entries(reasons)) {
      assert.equal((await request(`${app.url}/bad/${name}`)).status, 500, name)
      const line = app.lines().filter((each) => each.includes('ERROR')).at(-1) ?? ''
      const wanted = "Cannot refuse the input: pass texts that are not empty by path, as in ctx.invalid({ email: 'Taken' }): "
      assert.ok(line.includes(wanted + reason), line)
    }
  })
})
