/** An application with forms for `ctx.validate`, and a browser-like client. */
import type { TestContext } from 'node:test'
import { startApplication, type Files, type TestApplication } from '../support/application.ts'
import { request, type Answer, type Question } from '../support/request.ts'

const actions = `
const cache = new Map()
const schemas = (fields) => ({
  note: fields({
    title: fields.text({ max: 20 }),
    size: fields.integer({ min: 1 }).optional(),
    tags: fields.list(fields.text({ max: 5 })),
    public: fields.boolean(),
    password: fields.text().optional(),
    code: fields.secret().optional(),
    address: fields.object({ city: fields.text() }).optional(),
    picture: fields.file({ types: ['image/*'], maxKb: 1 }).optional(),
  }),
  api: fields({ name: fields.text(), count: fields.integer() }),
})
const of = ({ fields }) => cache.get('all') ?? cache.set('all', schemas(fields)).get('all')
export const save = async (ctx) => {
  const values = await ctx.validate(of(ctx).note)
  return { values, prototype: Object.getPrototypeOf(values), picture: values.picture?.filename }
}
export const named = async (ctx) => ctx.validate(of(ctx).note, { form: 'other' })
export const api = async (ctx) => ctx.validate(of(ctx).api)
export const begin = ({ session }) => { session.set('here', 1); return 'begun' }
export const bag = ({ flash, query }) => {
  const one = flash(query.get('id') ?? 'form')
  return { errors: one.get('errors'), input: one.get('input') }
}
export const standard = async (ctx) => {
  const { default: schema } = await import('./standard.mjs')
  return ctx.validate(schema[ctx.params.name])
}
export const wrong = (ctx) => ctx.validate({ title: ctx.fields.text() })
export const again = async (ctx) => {
  try {
    return await ctx.validate(of(ctx).note)
  } catch (error) {
    return ctx.view('page.html', {}, error.status)
  }
}
export const caught = async (ctx) => {
  try {
    return await ctx.validate(of(ctx).note)
  } catch (error) {
    return { status: error.status, code: error.code, ...error.invalid }
  }
}
`
const page = `<form method="post">
@error 'title'
<p id="title-error">{{ message }}</p>
@enderror
<input name="title" value="{{ old('title', 'untitled') }}">
@error "address.city" 'form'
<p id="city-error">{{ message }}</p>
@enderror
<input type="checkbox" name="public" {{ old('public', true) ? 'checked' : '' }}>
@foreach tag in old('tags', ['a'])
<input name="tags" value="{{ tag }}">
@endforeach
<input name="password" value="{{ old('password', 'none') }}">
<i>{{ errorsOf('size').join() }}</i>
</form>
`

/** The routes: a page and its post with sessions, the same without, and more. */
export const files: Files = {
  'routes/a.json': {
    routes: [
      ...['SVC_MwSession', ''].flatMap((middleware) => {
        const place = middleware === '' ? '/open' : ''
        return [
          { name: `page${place}`, method: 'GET', url: `${place}/notes/new`, action: 'page.html', middleware },
          { name: `save${place}`, method: 'POST', url: `${place}/notes`, action: 'a.mjs@save', middleware },
        ]
      }),
      { name: 'other', method: 'GET', url: '/other', action: 'other.html', middleware: 'SVC_MwSession' },
      { name: 'named', method: 'POST', url: '/named', action: 'a.mjs@named', middleware: 'SVC_MwSession' },
      { name: 'bag', method: 'GET', url: '/bag', action: 'a.mjs@bag', middleware: 'SVC_MwSession' },
      { name: 'begin', method: 'GET', url: '/begin', action: 'a.mjs@begin', middleware: 'SVC_MwSession' },
      { name: 'search', method: 'GET', url: '/search', action: 'a.mjs@save', middleware: 'SVC_MwSession' },
      { name: 'api', method: 'POST', url: '/api', action: 'a.mjs@api' },
      { name: 'api.json', method: 'POST', url: '/json', action: 'a.mjs@save', error_format: 'json', middleware: 'SVC_MwSession' },
      { name: 'api.html', method: 'POST', url: '/html', action: 'a.mjs@save', error_format: 'html', middleware: 'SVC_MwSession' },
      { name: 'standard', method: 'POST', url: '/standard/:name', action: 'a.mjs@standard' },
      { name: 'wrong', method: 'POST', url: '/wrong', action: 'a.mjs@wrong' },
      { name: 'caught', method: 'POST', url: '/caught', action: 'a.mjs@caught', middleware: 'SVC_MwSession' },
      { name: 'again', method: 'POST', url: '/again', action: 'a.mjs@again' },
      { name: 'again.session', method: 'POST', url: '/again/session', action: 'a.mjs@again', middleware: 'SVC_MwSession' },
      { name: 'odd', method: 'GET', url: '/odd/:name', action: 'page.html', middleware: 'SVC_MwSession' },
    ],
  },
  'a.mjs': actions,
  'page.html': page,
  'other.html': "@error 'title', 'other'\n<b>{{ message }}</b>\n@enderror\n<i>{{ old('title', '-', 'other') }}</i>\n",
}

/** A browser with the cookie of a session, at a page of the application. */
export interface Person {
  readonly app: TestApplication
  readonly cookie: string
  /** Sends a form from a page; `from` is its path, or a whole Referer that begins with http. */
  post(path: string, body: string, question?: Question & { readonly from?: string }): Promise<Answer>
  open(path: string, headers?: Readonly<Record<string, string>>, method?: string): Promise<Answer>
}

export const formType = 'application/x-www-form-urlencoded'

/** Starts the application, and a session in it. */
export async function startForms(t: TestContext, more: Files = {}, config: Readonly<Record<string, unknown>> = {}): Promise<Person> {
  const app = await startApplication(t, { ...files, ...more }, config)
  const begun = await request(`${app.url}/begin`)
  const cookie = begun.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
  return {
    app,
    cookie,
    post: (path, body, { from = '/notes/new', headers = {}, ...question } = {}) => {
      const referer = /^(?:https?:|$)/.test(from) ? from : app.url + from
      const sent = { cookie, 'content-type': formType, ...(referer === '' ? {} : { referer }), ...headers }
      return request(app.url + path, { body, method: 'POST', ...question, headers: sent })
    },
    open: (path, headers = {}, method = 'GET') => request(app.url + path, { method, headers: { cookie, ...headers } }),
  }
}
