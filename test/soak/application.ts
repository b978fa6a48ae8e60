/** The application that is soaked: a route for each kind of answer that the server has. */
import { createHash } from 'node:crypto'
import type { Files } from '../support/application.ts'

/** The administrator of the soaked server. */
export const admin = { user: 'ann', password: 'correct-horse' } as const

/** The largest body that the soaked server takes, in KiB. */
export const bodyLimitKb = 512

/** What of the server may be chosen. */
export interface SoakConfiguration {
  /** Where sessions are kept. */
  readonly store: 'memory' | 'file'
}

/** The text of an action that tells its generation, to be changed while the server runs. */
export const changingModule = (generation: number): string => `export default () => ({ generation: ${generation} })\n`

/** The text of a view that tells its generation. */
export const changingView = (generation: number): string => `<p>generation {{ ${generation} }}</p>\n`

/** Route files: those that stay, and one that says its generation in its path. */
export const changingRoutes = (generation: number): readonly object[] => [
  { name: 'generation', url: `/generation/${generation}`, method: 'GET', action: 'app.mjs@plain' },
]

/** All files of the application, `svc.json` included. */
export function soakFiles({ store }: SoakConfiguration): Files {
  return {
    'svc.json': configuration(),
    'routes/app.json': routes,
    'routes/changing.json': changingRoutes(0),
    'routes/middleware/config.json': {
      load: ['timing.mjs'],
      setup: { session: sessionSettings(store), jwt: { key: 'k'.repeat(32) } },
    },
    'routes/middleware/timing.mjs': timing,
    'app.mjs': actions,
    'live.mjs': live,
    'changing.mjs': changingModule(0),
    'views/changing.html': changingView(0),
    'views/page.html': page,
    'views/layout.html': '<!doctype html>\n<title>\n@yield title\n</title>\n<main>\n@yield main\n</main>\n',
    'views/item.html': '<li>{{ item.name }}: {{ item.text }}</li>\n',
    'views/form.html': form,
    'public/style.css': 'main { margin: 1em }\n'.repeat(400),
    'public/large.txt': 'a line of a large file\n'.repeat(20_000),
  }
}

function sessionSettings(store: 'memory' | 'file'): object {
  const settings = { store, ttl_s: 20, sweep_every: 50 }
  return store === 'file' ? { ...settings, path: 'sessions' } : { ...settings, max: 500 }
}

function configuration(): object {
  return {
    app: { env: 'prod' },
    app_key: 'a key of the soak, which signs nothing else',
    server: { host: '127.0.0.1', port: 0, body_limit_kb: bodyLimitKb, stop_timeout_s: 10 },
    admin: { user: admin.user, password: createHash('md5').update(admin.password).digest('hex'), secret: 'of the soak' },
    session: { lifetime: 0 },
    paths: { public: 'public' },
    log: { level: 'debug', console: false, max_size_mb: 1, max_files: 4 },
    access_log: { format: 'combined' },
  }
}

const routes: readonly object[] = [
  { name: 'plain', url: '/plain', method: 'GET', action: 'app.mjs@plain' },
  { name: 'hello', url: '/hello/:name', method: 'GET', action: 'app.mjs@hello', middleware: 'timing' },
  { name: 'echo', url: '/echo', method: 'POST', action: 'app.mjs@echo' },
  { name: 'fail', url: '/fail', method: 'GET', action: 'app.mjs@failing' },
  { name: 'refuse', url: '/refuse', method: 'GET', action: 'app.mjs@refusing' },
  { name: 'large', url: '/large', method: 'GET', action: 'app.mjs@large' },
  { name: 'upload', url: '/upload', method: 'POST', action: 'app.mjs@upload' },
  { name: 'page', url: '/page/:name', method: 'GET', action: 'app.mjs@page' },
  { name: 'visit', url: '/visit', method: 'GET', action: 'app.mjs@visit', middleware: 'SVC_MwSession' },
  { name: 'form', url: '/form', method: 'GET', action: 'views/form.html', middleware: 'SVC_MwSession, SVC_MwCsrf' },
  { name: 'form.send', url: '/form', method: 'POST', action: 'app.mjs@send', middleware: 'SVC_MwSession, SVC_MwCsrf' },
  { name: 'leave', url: '/leave', method: 'POST', action: 'app.mjs@leave', middleware: 'SVC_MwSession, SVC_MwCsrf' },
  { name: 'private', url: '/private', method: 'GET', action: 'app.mjs@plain', middleware: 'SVC_MwSession, SVC_MwIsAuth' },
  { name: 'token', url: '/token', method: 'GET', action: 'app.mjs@plain', middleware: 'SVC_MwJwt' },
  { name: 'publish', url: '/publish', method: 'POST', action: 'live.mjs@publish' },
  { name: 'poll', url: '/poll', method: 'GET', action: 'live.mjs@poll' },
  { name: 'take', url: '/take', method: 'GET', action: 'live.mjs@take' },
  { name: 'stream', url: '/stream', method: 'GET', action: 'live.mjs@stream' },
  { name: 'wait', url: '/wait', method: 'GET', action: 'live.mjs@wait' },
  { name: 'socket', url: '/socket', method: 'GET', action: 'live.mjs' },
  { name: 'changing', url: '/changing', method: 'GET', action: 'changing.mjs' },
  { name: 'changing.view', url: '/changing-view', method: 'GET', action: 'views/changing.html' },
]

const timing = `
export default async function timing(ctx, next) {
  const begin = performance.now()
  await next()
  ctx.setHeader('Server-Timing', 'app;dur=' + (performance.now() - begin).toFixed(1))
}

export function setup(app) {
  const timer = setInterval(() => app.logger('timing')('still there'), 1000)
  return () => clearInterval(timer)
}
`

const actions = `
import { readFile } from 'node:fs/promises'

const text = 'a line of a large answer\\n'.repeat(10_000)

export const plain = () => ({ ok: true })

export const hello = async ({ params, query, log }) => {
  log.debug('hello to ' + params.name)
  await null
  return { hello: params.name, mood: query.get('mood') }
}

export const echo = async ({ readJson, json }) => json(await readJson(), 201)

export const failing = () => {
  throw new Error('this action fails on purpose')
}

export const refusing = ({ fail }) => fail(422, 'on_purpose', 'This action refuses on purpose.')

export const large = ({ text: reply }) => reply(text)

export const upload = async ({ readForm }) => {
  const { files } = await readForm()
  const sizes = files.map(async ({ bytes, path }) => (bytes ?? (await readFile(path))).length)
  return { sizes: await Promise.all(sizes) }
}

export const page = ({ view, params }) => {
  const items = Array.from({ length: 20 }, (_, at) => ({ name: params.name, text: 'item <' + at + '>' }))
  return view('views/page.html', { items })
}

export const visit = ({ session }) => {
  const visits = session.get('visits', 0) + 1
  session.set('visits', visits)
  return { visits }
}

export const send = async ({ readForm, resourceId, flash, redirect }) => {
  const id = await resourceId()
  flash('form').set({ type: 'success', message: 'Saved ' + id + ': ' + (await readForm()).get('text') })
  return redirect('/form', 303)
}

export const leave = ({ session, redirect }) => {
  session.destroy()
  return redirect('/form', 303)
}
`

const live = `
let count = 0

export const publish = async ({ channel, queue, empty }) => {
  count += 1
  await channel('news').publish({ n: count })
  await queue('jobs').push({ n: count })
  return empty(202)
}

export const poll = ({ channel, longPoll }) => longPoll(channel('news'), { timeout_s: 1 })

export const take = ({ queue, longPoll }) => longPoll(queue('jobs'), { form: 'typed', timeout_s: 1 })

export const stream = ({ channel, sse }) => sse(channel('news'), { timeout_s: 3 })

export const wait = ({ hold, query }) =>
  hold(
    (signal) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, Number(query.get('ms')), { waited: true })
        signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
      }),
  )

export const websocket = {
  open(ws, { channel }) {
    ws.state.end = channel('news').subscribe(() => (ws.state.heard = (ws.state.heard ?? 0) + 1))
  },
  message: (ws, data) => void ws.send(data),
  close: (ws) => ws.state.end(),
}
`

const page = `@layout 'layout.html'
@section title
{{ params.name }}
@endsection
@section main
<ul>
@foreach item in items
@view 'item.html'
@endforeach
</ul>
@endsection
`

const form = `<!doctype html>
<p>{{ UFlash('form').get('message') }}</p>
<form method="post">
@csrf
@resource 42
<input name="text">
</form>
`
