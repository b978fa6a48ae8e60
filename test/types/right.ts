// What an application may write: svc-types.slow.test.ts has it compiled with several options.
import { readFile } from 'node:fs/promises'
import { createApp, HttpError } from 'svc'
import type { Action, App, Channel, Context, CookieAttributes, FlashBag, Form, FormFile, Logger, Middleware, Next } from 'svc'
import type { Params, Queue, Reply, RouteRecord, Session, Setup, SetupApp, State, WebSocketConnection, WebSocketHandlers } from 'svc'
import { socket, type Socket } from '/svc-live.js'
import type { Note } from './values.d.ts'

declare module 'svc' {
  interface State {
    user: { name: string }
  }
  interface SocketState {
    room: string
  }
  interface Settings {
    mail: { url: string }
  }
}

declare function find(id: string): Note | undefined

// Parameters by the pattern, and a context of any pattern where none is asked for.
export const show: Action<'/notes/:id/files/*rest'> = ({ params: { id, rest } }) => id.length + rest.length
export const either: Action<'/a/:id' | '/b/:id/:name'> = (ctx) => ctx.params.id.length
export const onlyRest: Action<'*path'> = (ctx) => ctx.params.path.length
export const none: Action<'/static'> = (ctx) => takesAny(ctx)
export const passed: Action<'/notes/:id'> = (ctx) => takesAny(ctx) + takesOne(ctx)
const takesAny = (ctx: Context): string => ctx.path
const takesOne = (ctx: Context<'/:id'>): string => ctx.params.id
export const parameters: Params<'/notes/:id'> = { id: '7' }
export async function* numbers({ signal }: Context) {
  for (let n = 0; !signal.aborted; n++) yield `${n}\n`
}

// The settings of the application.
export const relay: Action = ({ settings }) => new URL(settings.mail.url).host
export const start: Setup = ({ settings: { mail, other } }) => (other === undefined ? undefined : () => mail.url.length)
export const embedded = (app: App): string => app.settings.mail.url

// What ends a request is followed.
export const written = (ctx: Context<'/notes/:id'>): string => {
  const note = find(ctx.params.id)
  if (!note) ctx.fail(404, 'no_such_note', 'There is no such note.')
  return note.title
}
export const returned: Action<'/notes/:id'> = ({ params, fail }) => {
  const note = find(params.id)
  if (!note) return fail(404, 'no_such_note', 'There is no such note.')
  return note.title
}
export const taken: Action<'/notes/:id'> = ({ params, fail }) => {
  const note = find(params.id) ?? fail(404, 'no_such_note', 'There is no such note.')
  return note.title
}
export const thrown: Action<'/notes/:id'> = (ctx) => {
  const note = find(ctx.params.id)
  if (!note) throw new HttpError(404, 'no_such_note', 'There is no such note.', { headers: { 'X-Note': 'none' } })
  return note.title
}
export const caught = (error: unknown): number => (error instanceof HttpError ? error.status : 500)

// Values of the session and of state.
export const values: Action = ({ session, state, flash, view }) => {
  const number: number = session.get('count', 0) + 1
  const text: string = session.get('theme', 'light')
  const truth: boolean = session.get('seen', false)
  const list: Note[] = session.get<Note[]>('list', [])
  if (session.get('count', 0) === 7) session.set('count', number)
  const cart: Note[] = session.get('cart', [])
  cart.push({ title: state.user.name })
  session.set('cart', cart)
  session.set('any', { text, truth, list, at: 7 })
  const message: string = flash('form').get('message', '')
  flash('form').set({ type: 'success', message })
  flash('form').set('errors', { title: 'It is empty.' })
  const note: Note = { title: 'A note' }
  return view('note.html', note, 201)
}

export async function file(one: FormFile): Promise<Buffer> {
  const { bytes, path } = one
  if (one.path !== undefined) return readFile(one.path)
  return Buffer.concat([one.bytes, bytes ?? (await readFile(path))])
}
export const form: Action = async ({ readForm, readJson, readText, readBytes, query, headers, cookies }) => {
  const sent: Form = await readForm()
  const title: string | undefined = sent.get('title')
  const body: unknown = await readJson()
  return { title, tags: sent.getAll('tag'), all: [...sent.entries()], body, text: await readText(), size: (await readBytes()).length,
    page: query.get('page'), type: headers['content-type'], seen: cookies['seen'] }
}
export const replies: Action = async (ctx): Promise<Reply> => {
  const attributes: CookieAttributes = { maxAge: 60, sameSite: 'Strict' }
  ctx.setCookie('seen', '1', attributes)
  ctx.setHeader('Vary', ['Accept', 'Origin'])
  ctx.status = 201
  const record: RouteRecord = ctx.route
  ctx.log(record.name)
  ctx.log.error('it failed', new Error('a reason'))
  if (ctx.query.has('poll')) return ctx.longPoll(ctx.queue('jobs'), { timeout_s: 5, form: 'typed' })
  if (ctx.query.has('stream')) return ctx.sse(ctx.channel('notes', { events: 10 }))
  if (ctx.query.has('hold')) return ctx.hold(async (signal) => ({ aborted: signal.aborted }))
  return ctx.query.has('to') ? ctx.redirect(ctx.url('note', { id: 7 }), 303) : ctx.json({ id: await ctx.resourceId() })
}
export const specified: Action = ({ USession, UFlash, UGetResource, UCsrfToHtml, UResourceToHtml, ld, l, lw, le, lf }) => {
  for (const line of [ld, l, lw, le, lf]) line(UCsrfToHtml() + UResourceToHtml(7))
  const parts: [Session, FlashBag, Promise<string>] = [USession(), UFlash('a'), UGetResource()]
  return parts.length
}

export const timing: Middleware = async (ctx, next) => {
  await next()
  ctx.setHeader('Server-Timing', 'app;dur=1')
  if (ctx.reply === undefined) ctx.empty()
}
export const guard: Middleware = (ctx, next: Next) => {
  if (ctx.headers.authorization === 'Bearer sesame') return next()
  ctx.state['at'] = Date.now()
  ctx.json({ error: 'sign_in' }, 401)
}
export const short: Middleware = (ctx, next) => (ctx.secure ? next() : ctx.redirect('/sign-in'))
export const late: Middleware = async (ctx, next) => {
  if (!ctx.secure) return ctx.json({ error: 'sign_in' }, 401)
  await next()
}
export const setup: Setup = async ({ config, process, logger, channel, queue, metrics, ready }: SetupApp) => {
  metrics.counter('orders_total', 'Orders.', ['kind']).add(1, { kind: 'book' })
  metrics.gauge('open', 'Open orders.', () => 1)
  ready('database', async () => true)
  const log: Logger = logger('feed')
  const notes: Channel = channel('notes')
  const jobs: Queue = queue('jobs')
  const end = notes.subscribe(({ id, data }) => log(`${id} ${String(data)}`))
  await jobs.push({ first: process.number === 1, env: config['app.env'] })
  const id: number = await notes.publish('begun')
  return id > 0 ? end : undefined
}
export const plain: Setup = () => {}
export const ending: Setup = () => () => [1, 2].pop()
export const websocket: WebSocketHandlers<'/rooms/:room'> = {
  protocols: ['chat.v2', 'chat'],
  async open(ws, { params, state, channel, query }) {
    ws.state.room = params.room + state.user.name + ws.protocol.length
    ws.state['begun'] = Date.now()
    ws.follow(channel('notes'), { since: query.get('since') })
  },
  message: (ws: WebSocketConnection, data) => ws.send(data),
  close(ws, code, reason) {
    if (ws.isOpen) ws.close(code, reason)
  },
}
export const echo: WebSocketHandlers = { message: (ws, data) => void ws.send(ws.state.room.length > 0 ? ws.state.room : data) }
export const chat: Socket = socket<Note>('/rooms/1', { onEvent: ({ title }, { id }) => title.length + id, onMessage: (data) => data.slice(1) })
export const isSent: boolean = chat.send(new Uint8Array(2)) && chat.state === 'open'
export const stateOf = (ctx: Context): State => ctx.state

const app: App = createApp({ folder: '.', config: { 'server.port': 0 }, appKey: 'a key', onStop: () => {} })
const { url, port } = await app.start()
const response: Response = await app.request('/', { method: 'POST', body: new FormData() })
app.logger('test').info(`${url} ${port} ${response.status} ${app.warnings().length}`)
await app.stop()
app.closeLogs()
