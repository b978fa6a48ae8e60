/** Handlers of the admin panel on a real server, with a port that a test controls. */
import assert from 'node:assert/strict'
import { scryptSync } from 'node:crypto'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'node:test'
import type { AdminCredentials } from '../../lib/access/credentials.ts'
import type { AccessPort } from '../../lib/access/access-port.ts'
import type { AdminPort } from '../../lib/panel/admin-port.ts'
import { makeSetupToken } from '../../lib/access/setup-token.ts'
import { systemRoutes, type SystemRoute } from '../../lib/panel/table.ts'
import { parseConfig } from '../../lib/config/load.ts'
import type { Command, CommandTable, CommandType } from '../../lib/control/commands.ts'
import { createClientAddress } from '../../lib/http/client-address.ts'
import { createContextClass } from '../../lib/http/features.ts'
import { createHostGuard } from '../../lib/http/host.ts'
import type { ModuleLogger } from '../../lib/log/logger.ts'
import { compose, type Action, type Chain, type Middleware } from '../../lib/chain/compose.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import { Registry } from '../../lib/routing/registry.ts'
import { Views } from '../../lib/views/cache.ts'
import { listen } from '../support/listen.ts'
import type { Answer } from '../support/request.ts'
import { makeRequestServer } from '../support/request-server.ts'

/** The parts of the panel's port that the tests of this folder use. */
export type TestPort = Pick<AdminPort, 'application' | 'config' | 'control' | 'errors' | 'jobs' | 'match' | 'routes' | 'pages' | 'log'> & AccessPort

/** A port, its state, and the written log lines `LEVEL message`. */
export interface PanelHarness {
  readonly port: TestPort
  credentials: AdminCredentials
  readonly lines: string[]
  readonly registry: Registry<Chain>
}

/** Makes a port. Commands are executed by `apply`; without it there are none. */
export function makePort(
  config: Readonly<Record<string, unknown>> = {},
  apply: (command: Command, held: PanelHarness) => Promise<unknown> = () => Promise.reject(new Error('no commands')),
): PanelHarness {
  const registry = new Registry<Chain>()
  const lines: string[] = []
  const log = (level: string) => (message: string) => void lines.push(`${level} ${message}`)
  const levels = { debug: log('DEBUG'), info: log('INFO'), warn: log('WARN'), error: log('ERROR'), fatal: log('FATAL') }
  const moduleLog: ModuleLogger = Object.assign(log('INFO'), levels, { debugEnabled: true })
  const pages = new Views({
    root: fileURLToPath(new URL('../../lib/panel/pages', import.meta.url)),
    cacheFolder: '/nowhere',
    ram: true,
    disk: false,
    readable: false,
    version: '1',
    onProblem: () => {},
  })
  const port: TestPort = {
    application: 'shop',
    errors: () => Promise.resolve([]),
    jobs: () => undefined,
    config: parseConfig(config, '/nowhere').config,
    control: {
      apply: <T extends CommandType>(command: Command<T>) =>
        // The type of a command determines its result, which a test's own `apply` cannot express.
        apply(command as unknown as Command, held) as Promise<CommandTable[T]['answers']>,
    },
    credentials: () => held.credentials,
    setUp: async (user, password) => (await port.control.apply({ type: 'admin.setup', user, password })).done,
    ensureSecret: () => port.control.apply({ type: 'admin.secret' }),
    useCode: (code) => port.control.apply({ type: 'admin.code', code }),
    setupToken: makeSetupToken(),
    routes: () => registry.list().map(({ record, system }) => ({ record, system })),
    match: (method, path) => {
      const match = registry.find(method, path)
      return match === undefined ? registry.allowed(path) : { record: match.route.record, params: {} }
    },
    pages,
    audit: (ctx, what, { detail } = {}) => moduleLog.info(`${what} by ${ctx.ip}${detail === undefined ? '' : `: ${detail}`}`),
    log: moduleLog,
  }
  const held: PanelHarness = { port, credentials: { user: '', password: '', secret: '' }, lines, registry }
  return held
}

/** A route under test. */
export interface TestRoute {
  readonly method: string
  readonly url: string
  readonly action: Action
  readonly guard?: Middleware
  /** Default: `svc.` and the URL. */
  readonly name?: string
}

/** Serves routes on a free port until the test ends. Returns the URL. */
export async function serve(t: TestContext, { registry, port }: PanelHarness, routes: readonly TestRoute[]): Promise<string> {
  for (const { method, url, action, guard, name = `svc.${method}${url}` } of routes) {
    const layers = guard === undefined ? [] : [{ name: 'guard', run: guard }]
    registry.add({
      record: { name, url, method, action: '', middleware: '', scope: '' },
      pattern: parsePattern(url),
      system: name.startsWith('svc.'),
      target: compose(layers, action, { late: () => {}, misuse: () => {} }),
    })
  }
  const { ContextClass } = createContextClass([], {
    bodyLimitBytes: 1_048_576,
    clientAddress: createClientAddress(port.config['server.trusted_proxies']),
  })
  const checkHost = createHostGuard(port.config['server.allowed_hosts'])
  const { handle } = makeRequestServer({ registry, ContextClass, checkHost })
  const server = createServer((request, response) => handle(request, response, 'nothing'))
  return `http://127.0.0.1:${await listen(t, server)}`
}

/** The body and header of an urlencoded form, for `request`. */
export function form(fields: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) {
  const body = new URLSearchParams(fields).toString()
  return { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers } }
}

/** Asserts that a response is a redirect, 302, without a body. */
export function leadsTo(answer: Answer, location: string, about = location): void {
  assert.deepEqual([answer.status, answer.headers.location, answer.text], [302, location, ''], about)
}

/** Asserts that a response is a page of the panel with a form, and shows a message. */
export function says(answer: Answer, status: number, message: string): void {
  assert.deepEqual([answer.status, answer.headers['content-type']], [status, 'text/html; charset=utf-8'])
  assert.ok(answer.text.includes(`<p class="message error" role="alert">${message}</p>`), answer.text)
  assert.match(answer.text, /<form class="card" method="post"/)
}

/** Returns the Cookie field that a browser sends after a login's response. */
export function cookieFrom(answer: Answer): string {
  return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
}

/** Asserts that a response is a success with this value as JSON. */
export function isJson(answer: Answer, body: unknown): void {
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  assert.deepEqual(answer.json(), body)
}

/** A stored scrypt hash that takes milliseconds to check: the server's hashes take a tenth of a second. */
export function cheapHash(password: string): string {
  const salt = Buffer.from('sixteen bytes...')
  const key = scryptSync(password, salt, 32, { N: 1024, r: 4, p: 1 })
  return `scrypt$1024$4$1$${salt.toString('base64url')}$${key.toString('base64url')}`
}

/** The rows of the table, one per method: the POST of a row that also allows GET is named after it. */
export const endpoints: readonly SystemRoute[] = (systemRoutes as readonly SystemRoute[]).flatMap((row) =>
  row.method === 'GET,POST'
    ? [{ ...row, method: 'GET' as const }, { ...row, method: 'POST' as const, name: `${row.name}.post` }]
    : [row],
)
