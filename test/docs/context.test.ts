// docs/context.md: each member works as described. test/package/svc-types.test.ts compares the page with the public types.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { contextRows } from '../support/context-page.ts'
import { runCurlLines } from '../support/curl.ts'
import { readPage, shownFiles } from '../support/markdown.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'

const page = readPage('docs/context.md')
const rows = contextRows(page)

/** Uses of the members in the request below; the comment is the result. */
const examples: Readonly<Record<string, string>> = {
  method: "ctx.method // 'POST'",
  path: "ctx.path // '/notes/7'",
  query: "ctx.query.get('page') // '2'",
  prefix: "ctx.prefix // ''",
  rawQuery: "ctx.rawQuery // '?page=2'",
  params: "ctx.params.id // '7'",
  headers: "ctx.headers['content-length'] // '10'",
  cookies: "ctx.cookies.theme // 'dark'",
  ip: "ctx.ip // '127.0.0.1'",
  secure: 'ctx.secure // false',
  host: "ctx.host // 'localhost:8080'",
  httpVersion: "ctx.httpVersion // '1.1'",
  id: 'return { order: 7, id: ctx.id }',
  route: "ctx.route.name // 'note'",
  state: "ctx.state.user = 'ann'",
  user: 'ctx.user // undefined',
  returnTo: "ctx.returnTo('/notes') // '/notes'",
  settings: 'ctx.settings.mail // undefined',
  signal: 'await setTimeout(5, undefined, { signal: ctx.signal })',
  url: "ctx.url('note', { id: 'a b' }) // '/notes/a%20b'",
  readBytes: '(await ctx.readBytes()).length // 10',
  readText: "await ctx.readText() // 'title=Milk'",
  readJson: 'const { title } = await ctx.readJson()',
  readForm: "(await ctx.readForm()).get('title') // 'Milk'",
  validate: 'const { title } = await ctx.validate(ctx.fields({ title: ctx.fields.text() }))',
  invalid: "ctx.invalid({ title: 'Taken' })",
  fields: 'ctx.fields({ size: ctx.fields.integer() })',
  old: "ctx.old('title', 'none') // 'none'",
  errorsOf: "ctx.errorsOf('title').length // 0",
  json: 'return ctx.json({ id: 7 }, 201)',
  html: "return ctx.html('<h1>Milk</h1>')",
  text: "return ctx.text('Milk')",
  view: "return ctx.view('note.html', { title: 'Milk' })",
  file: "return ctx.file('note.html', { name: 'Milk.html' })",
  redirect: "return ctx.redirect('/notes', 303)",
  empty: 'return ctx.empty()',
  fail: "ctx.fail(404, 'no_note', 'There is no such note.')",
  reply: 'ctx.reply // undefined',
  status: 'ctx.status = 202',
  setHeader: "ctx.setHeader('Cache-Control', 'max-age=60')",
  setCookie: "ctx.setCookie('theme', 'light', { maxAge: 3600 })",
  session: "ctx.session.set('cart', [7])",
  signIn: "ctx.signIn({ id: 7, name: 'Ann' })",
  signOut: 'ctx.signOut()',
  password: "(await ctx.password.verify('guess', undefined)).ok // false",
  flash: "ctx.flash('note').set({ type: 'success', message: 'Saved.' })",
  csrfInput: 'return `<form method="post">${ctx.csrfInput()}</form>`',
  csrf_token: "ctx.csrf_token // ''",
  resourceInput: 'return ctx.html(ctx.resourceInput(7))',
  resourceId: "await ctx.resourceId() // ''",
  cspNonce: "ctx.cspNonce // ''",
  csp_nonce: "ctx.csp_nonce // ''",
  channel: "await ctx.channel('notes').publish({ id: 7 })",
  queue: "await ctx.queue('jobs').push({ note: 7 })",
  enqueue: "await ctx.enqueue('tidy').catch(() => 'no such job') // 'no such job'",
  longPoll: "return ctx.longPoll(ctx.channel('notes'), { timeout_s: 0 })",
  sse: "return ctx.sse(ctx.channel('notes'), { timeout_s: 0.01 })",
  live: "return ctx.live(ctx.channel('notes'))",
  presence: "ctx.presence(ctx.channel('notes'), { id: 'ann' })",
  hold: 'return ctx.hold((signal) => setTimeout(5, { done: true }, { signal }))',
  log: "ctx.log('note 7 was read')",
  logger: "ctx.logger('billing').warn('no money')",
  USession: "ctx.USession().get('cart', []) // []",
  UFlash: "ctx.UFlash('note').get('message', '') // ''",
  UCsrfToHtml: 'return ctx.html(ctx.UCsrfToHtml())',
  UResourceToHtml: "ctx.UResourceToHtml('') // ''",
  UGetResource: "await ctx.UGetResource() // ''",
  ld: "ctx.ld('asked')",
  l: "ctx.l('read')",
  lw: "ctx.lw('slow')",
  le: "ctx.le('Cannot read note 7', new Error('gone'))",
  lf: "ctx.lf('no disk')",
}

describe('docs/context.md', () => {
  it('has an example that works', async (t) => {
    const { url, folder, lines } = await startApplication(t, shownFiles(page))
    await runCurlLines(page, { 8080: url }, folder)
    assert.match(lines().find((line) => line.includes('a note was read')) ?? '', /id=7 by=127\.0\.0\.1$/)
    assert.equal((await request(`${url}/notes/0`)).status, 404)
  })

  it('has members that work and return the expected values', async (t) => {
    const { port } = await startApplication(t, {
      'routes/notes.json': [{ name: 'note', url: '/notes/:id', action: 'notes.mjs', middleware: 'SVC_MwSession' }],
      'notes.mjs': moduleOf(examples),
      'note.html': '<h1>{{ title }}</h1>',
    })
    assert.deepEqual(Object.keys(examples).sort(), rows.map(({ name }) => name).sort())
    for (const [name, example] of Object.entries(examples)) {
      const { status, headers } = parseAnswer(await exchange(port, requestFor(name)))
      assert.equal(status >= 400, name === 'fail' || name === 'invalid', `${name}: ${status}`)
      assert.ok(headers['x-used']?.split(' ').includes(name), `${example} uses ${headers['x-used']}`)
      assert.equal(headers['x-value'], headers['x-expected'], example)
    }
  })
})

/** A form, with the name of the example to run. */
function requestFor(name: string): string {
  const json = { type: 'application/json', body: '{ "id": 7}' } // As long as the form.
  const { type, body } = name === 'readJson' ? json : { type: 'application/x-www-form-urlencoded', body: 'title=Milk' }
  const since = name === 'live' ? '&since=99' : '' // Ahead of the channel: the poll returns at once, not after half a minute.
  return `POST /notes/7?page=2${since} HTTP/1.1\r\nHost: localhost:8080\r\nCookie: theme=dark\r\nContent-Type: ${type}\r\nContent-Length: 10\r
X-Example: ${name}\r\nConnection: close\r\n\r\n${body}`
}

/** A module whose action runs the example named by the request, and returns the members used and the result. */
function moduleOf(all: Readonly<Record<string, string>>): string {
  const functions = Object.entries(all).map(([name, example]) => {
    const [code = '', expected] = example.split(' // ')
    if (expected === undefined) return `${name}: async (ctx) => { ${code} },\n`
    return `${name}: async (ctx) => {
      const value = ${code}
      ctx.setHeader('X-Value', inspect(value))
      ctx.setHeader('X-Expected', inspect(${expected}))
    },\n`
  })
  return `import { setTimeout } from 'node:timers/promises'
    import { inspect } from 'node:util'
    const examples = { ${functions.join('')} }
    export default async (ctx) => {
      const used = new Set()
      const seen = new Proxy(ctx, {
        get: (target, name) => (used.add(name), target[name]),
        set: (target, name, value) => (used.add(name), (target[name] = value), true),
      })
      try {
        return await examples[ctx.headers['x-example']](seen)
      } finally {
        ctx.setHeader('X-Used', [...used].join(' '))
      }
    }`
}
