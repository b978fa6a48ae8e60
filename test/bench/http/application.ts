/**
 * The application that svc serves in the benchmark, and the files that its rivals read. One application has the routes
 * of all workloads; the configuration is that of production, with the access log on.
 */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeCertificate } from '../../support/certificate.ts'
import { pageData, pageTemplate } from './page.ts'
import { rowsOf } from './rows.ts'
import { fixtureOf, photo, type Workload } from './workloads.ts'

const actions = `const data = ${JSON.stringify(pageData)}
const rowsOfLength = { 6000: ${JSON.stringify(rowsOf(6000))}, 64000: ${JSON.stringify(rowsOf(64_000))} }
export const text = (ctx) => ctx.text('Hello, World!')
export const user = ({ params }) => ({ id: params.id, name: 'Ada' })
export const begin = ({ session, csrfInput, html }) => {
  session.set('user', 'Ada')
  return html(csrfInput())
}
export const beginSigned = ({ csrfInput, html }) => html(csrfInput())
export const session = ({ session }) => ({ user: session.get('user') })
export const form = async ({ readForm }) => ({ thanks: (await readForm()).get('name') })
let note
export const validated = (ctx) => {
  const { text, email, integer, date, boolean } = ctx.fields
  note ??= ctx.fields({
    title: text({ max: 80 }), email: email(), size: integer({ min: 1, max: 100 }), due: date(), done: boolean(),
  })
  return ctx.validate(note)
}
export const rows = ({ params }) => rowsOfLength[params.bytes]
export const view = (ctx) => ctx.view('page.html', data)
`
const fiveMiddlewares = `let count = 0
export const clock = (ctx, next) => {
  ctx.state.startedAt = performance.now()
  return next()
}
export const agent = (ctx, next) => {
  ctx.state.agent = ctx.headers['user-agent']
  return next()
}
export const language = (ctx, next) => {
  ctx.state.language = ctx.headers['accept-language'] ?? 'en'
  return next()
}
export const counter = (ctx, next) => {
  count += 1
  ctx.state.count = count
  return next()
}
export const frame = (ctx, next) => {
  ctx.setHeader('X-Frame-Options', 'DENY')
  return next()
}
`

/**
 * Writes an application into a folder.
 * @param folder a new one
 * @param server 'svc'; 'svc, session' for forms whose token lies in a session; 'svc, headers' and 'svc, limit' for JSON through
 *   that middleware
 */
export function writeApplication(folder: string, workload: Workload, server: string): void {
  const forms = server === 'svc, session' ? 'SVC_MwSession,SVC_MwCsrf' : 'SVC_MwCsrfCheck'
  const five = workload.name === 'middlewares' ? 'clock,agent,language,counter,frame' : ''
  const through = { 'svc, headers': 'SVC_MwHeaders', 'svc, limit': 'SVC_MwLimit:all' }[server] ?? five
  const begin = workload.name === 'form' && server === 'svc' ? 'beginSigned' : 'begin'
  const routes = [
    route('text', 'GET', '/text', 'text'),
    route('user', 'GET', '/users/:id', 'user', through),
    route('begin', 'GET', '/begin', begin, server === 'svc, session' ? forms : 'SVC_MwSession'),
    route('session', 'GET', '/session', 'session', 'SVC_MwSession'),
    route('form', 'POST', '/form', 'form', forms),
    route('validated', 'POST', '/validated', 'validated'),
    route('view', 'GET', '/view', 'view'),
    route('rows', 'GET', '/rows/:bytes', 'rows'),
  ]
  const paths = workload.name === 'static' ? { public: 'public' } : {}
  const limit = { all: { count: 1_000_000, per_s: 1 } }
  const tls = workload.tls ? { tls: { cert: 'bench.pem', key: 'bench.key' } } : {}
  const settings = { app_key: 'benchmark', server: { port: 0, ...tls }, paths }
  write(folder, 'svc.json', JSON.stringify(settings))
  write(folder, 'routes/bench.json', JSON.stringify(routes))
  write(folder, 'routes/middleware/config.json', JSON.stringify({ load: ['five.mjs'], setup: { limit } }))
  write(folder, 'routes/middleware/five.mjs', fiveMiddlewares)
  write(folder, 'actions.mjs', actions)
  write(folder, 'page.html', pageTemplate('{{', '}}'))
  if (workload.tls) makeCertificate(folder, 'bench')
  writePhoto(folder)
}

/** Writes what the servers of other makes read into a new folder. */
export function writeFixture(folder: string, workload: Workload): void {
  write(folder, 'fixture.json', JSON.stringify(fixtureOf(workload)))
  write(folder, 'page.ejs', pageTemplate('<%=', '%>'))
  if (workload.tls) makeCertificate(folder, 'bench')
  writePhoto(folder)
}

/** An old file: what has just changed is not kept in memory. */
function writePhoto(folder: string): void {
  const file = write(folder, 'public/photo.jpg', photo)
  const time = new Date('2024-01-01T00:00:00Z')
  utimesSync(file, time, time)
}

function write(folder: string, name: string, content: string | Uint8Array): string {
  const file = join(folder, name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
  return file
}

function route(name: string, method: string, url: string, action: string, middleware = ''): object {
  return { name, method, url, action: `actions.mjs@${action}`, middleware }
}
