/** A complete server with its `svc.json` in its own folder, accessed over real sockets like an administrator does. */
import { createHash, createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { adminCookieName } from '../../lib/access/cookie.ts'
import { createApp, type App } from '../support/app.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { testKey, writeFiles, type Files } from '../support/application.ts'
import { request, type Answer, type Question } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

export const user = 'ann'
export const password = 'correct horse'
export const secret = '0123456789abcdef0123456789abcdef'

/** The configuration keys of an administrator. */
export const credentials = { 'admin.user': user, 'admin.password': md5(password), 'admin.secret': secret }

/** An application with one route, the default. */
export const greeting: Files = {
  'routes/a.json': [{ name: 'hello', url: '/hello/:name', method: 'GET', action: 'hello.mjs' }],
  'hello.mjs': 'export default (ctx) => `hello ${ctx.params.name}`\n',
}

/** An application with a route that fails and one that does not, for tests of pages that show errors. */
export const failing: Files = {
  'routes/a.json': [
    { name: 'pay', url: '/pay/:id', method: 'GET', action: 'pay.mjs' },
    { name: 'fine', url: '/fine', method: 'GET', action: 'pay.mjs@fine' },
  ],
  'pay.mjs': `
    export default (ctx) => { throw new Error('Order ' + ctx.params.id + ' is gone') }
    export const fine = () => ({ fine: true })
  `,
}

export interface PanelServer {
  readonly folder: string
  readonly app: App
  readonly url: string
  readonly port: number
  /** Sends a request without a session. */
  ask(path: string, question?: Question): Promise<Answer>
  /** Sends a request with a valid cookie. */
  askSignedIn(path: string, question?: Question): Promise<Answer>
  /** Sends a value as JSON, with a valid cookie. */
  post(path: string, value: unknown, headers?: Question['headers']): Promise<Answer>
  write(files: Files): void
  read(file: string): string
  /** `svc.json` as it is on disk. */
  saved(): Record<string, unknown>
  /** The messages of the general log so far, `LEVEL module message`. */
  lines(): string[]
  /** Stops it and starts another on the same folder. */
  restart(): Promise<void>
}

/**
 * Starts a server; it is stopped when the test ends.
 * @param config added to: port 0, no console, prod, an `app_key` and the credentials above
 */
export async function startPanel(
  t: Pick<TestContext, 'after'>,
  config: Readonly<Record<string, unknown>> = {},
  files: Files = {},
): Promise<PanelServer> {
  const folder = temporaryFolder()
  const keys = { 'server.port': 0, 'log.console': false, app_key: testKey, ...credentials, ...config }
  writeFiles(folder, { 'routes/.keep': '', ...files, 'svc.json': keys })
  let app: App | undefined
  let address = { url: '', port: 0 }

  async function start(): Promise<void> {
    app = createApp({ loaded: loadConfig(join(folder, 'svc.json')) })
    address = await app.start()
  }

  async function stop(): Promise<void> {
    await app?.stop()
    app?.closeLogs()
  }

  t.after(stop)
  await start()
  const ask: PanelServer['ask'] = (path, question) => request(`${address.url}${path}`, question)
  const askSignedIn: PanelServer['ask'] = (path, question = {}) =>
    ask(path, { ...question, headers: { cookie: cookieOf(nowSeconds()), ...question.headers } })
  return {
    folder,
    get app() {
      return app as App // it is set by the first start
    },
    get url() {
      return address.url
    },
    get port() {
      return address.port
    },
    ask,
    askSignedIn,
    post: (path, value, headers = {}) => askSignedIn(path, { body: JSON.stringify(value), headers }),
    write: (more) => writeFiles(folder, more),
    read: (file) => readFileSync(join(folder, file), 'utf8'),
    saved: () => JSON.parse(readFileSync(join(folder, 'svc.json'), 'utf8')) as Record<string, unknown>,
    lines: () => {
      app?.flushLogs()
      const text = readFileSync(join(folder, '.logs', 'svc.log'), 'utf8')
      return text
        .split('\n')
        .slice(0, -1)
        .map((line) => line.replace(/^\[.*?\] \[(\w+) *\] \[(\w+)\] /, '$1 $2 '))
    },
    restart: async () => {
      await stop()
      await start()
    },
  }
}

/** Writes keys into the `svc.json` of a server before it is restarted. */
export function changeConfig(server: PanelServer, keys: Readonly<Record<string, unknown>>): void {
  writeFileSync(join(server.folder, 'svc.json'), JSON.stringify({ ...server.saved(), ...keys }))
}

export function md5(text: string): string {
  return createHash('md5').update(text).digest('hex')
}

/** The Cookie field of a session that began at a time, in the form of the spec or the hardened one. */
export function cookieOf(seconds: number | string, signedWith: string = secret, hardened = false): string {
  const sign = hardened
    ? createHmac('sha256', signedWith).update(String(seconds)).digest('hex')
    : md5(`${signedWith}|${seconds}`)
  return `${adminCookieName}=${seconds}:${sign}`
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000)
}
