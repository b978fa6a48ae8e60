// What must not compile: each line behind a comment that expects an error, which is one itself where there is none.
import { createApp, HttpError } from 'svc'
import { socket } from '/svc-live.js'
import type { Action, Context, FormFile, Middleware, Reply, Session, Setup, WebSocketHandlers } from 'svc'

declare const session: Session
declare const ctx: Context
declare function find(id: string): { title: string } | undefined

// @ts-expect-error The pattern has no parameter of this name.
export const name: Action<'/notes/:id'> = ({ params }) => params.name
// @ts-expect-error A context of one pattern does not do for another.
export const other: Action<'/notes/:id'> = (one) => takesName(one)
const takesName = (one: Context<'/:name'>): string => one.params.name
// @ts-expect-error `fail` that was taken out is not followed.
export const taken: Action = ({ fail }) => { const note = find('7'); if (!note) fail(404, 'none', 'None.'); return note.title }
// @ts-expect-error There is no such member of the context.
ctx.respond({})
// @ts-expect-error What the server's own parts use is no member of the context.
ctx.matched
// @ts-expect-error Only `status` is for setting.
ctx.method = 'GET'
// @ts-expect-error Settings are only for reading.
ctx.settings.mail = 'b'
// @ts-expect-error Of a setting without a type nothing is known.
ctx.settings.other.url
// @ts-expect-error A body is to be looked at before it is used.
export const body: Action = async ({ readJson }) => (await readJson()).title
// @ts-expect-error A key of the session with a type takes no other value.
session.set('clicks', 'many')
// @ts-expect-error Its fallback has that type.
export const clicks: number = session.get('clicks', 'none')
// @ts-expect-error Without a fallback it may not be there.
export const cart: unknown[] = session.get('cart')
// @ts-expect-error The fallback's type is that of the value.
session.get('count', 0).length
// @ts-expect-error Of a key without one nothing is known.
session.get('count').length
// @ts-expect-error A file in memory has no path.
export const path = (file: FormFile): string => file.path
// @ts-expect-error A status is a number.
throw new HttpError('404', 'none', 'None.')
// @ts-expect-error A cookie has no such attribute.
ctx.setCookie('a', 'b', { maxage: 7 })
// @ts-expect-error A reply is made by the context.
export const reply: Reply = { status: 200 }
// @ts-expect-error Middleware replies by the context, not by what it returns.
export const middleware: Middleware = () => 'text'
// @ts-expect-error A teardown is a function.
export const setup: Setup = () => 7
// @ts-expect-error A WebSocket has no such handler.
export const websocket: WebSocketHandlers = { opened() {} }
// @ts-expect-error The protocols of a WebSocket are a list.
export const protocols: WebSocketHandlers = { protocols: 'chat' }
// @ts-expect-error A name of a WebSocket's state with a type takes no other value.
export const typed: WebSocketHandlers = { open: (ws) => (ws.state.user = 7) }
// @ts-expect-error Of a name without one nothing is known.
export const untyped: WebSocketHandlers = { open: (ws) => ws.state['other'].length }
// @ts-expect-error A page sends text and bytes.
socket('/chat').send({ text: 'a' })
// @ts-expect-error A server has no such option.
createApp({ port: 8080 })
// @ts-expect-error The server's own commands are no part of what embedding uses.
createApp().control
// @ts-expect-error Only values are imported so; what is a type says it.
import { Next } from 'svc'
