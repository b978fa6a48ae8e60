/** Handlers of the admin panel over a real server, with a port that a test holds in its hands. */
import assert from 'node:assert/strict'
import { scryptSync } from 'node:crypto'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'node:test'
import type { AdminCredentials } from '../../lib/access/credentials.ts'
import type { AccessPort } from '../../lib/access/port.ts'
import type { AdminPort } from '../../lib/panel/port.ts'
import { makeSetupToken } from '../../lib/access/setup-token.ts'
import { systemRoutes, type SystemRoute } from '../../lib/panel/table.ts'
import { parseConfig } from '../../lib/config/load.ts'
import type { Command, CommandTable, CommandType } from '../../lib/control/commands.ts'
import { createClientAddress } from '../../lib/http/client-address.ts'
import { createContextClass } from '../../lib/http/features.ts'
import { createHostGuard } from '../../lib/http/host.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { ModuleLogger } from '../../lib/log/logger.ts'
import { compose, type Action, type Chain, type Middleware } from '../../lib/chain/compose.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import { Registry } from '../../lib/routing/registry.ts'
import { createRequestServer } from '../../lib/core/server.ts'
import { Views } from '../../lib/views/cache.ts'
import { listen } from '../support/listen.ts'
import type { Answer } from '../support/request.ts'
import { emptyRestPool } from '../support/rest-pool.ts'

/** What the tests of this folder use of the panel's port. */
export type TestPort = Pick<AdminPort, 'config' | 'control' | 'errors' | 'match' | 'routes' | 'pages' | 'log'> & AccessPort

/** A port, what it holds, and the log lines `LEVEL message` that were written. */
export interface PortInHand {
  readonly port: TestPort
  credentials: AdminCredentials
  readonly lines: string[]
  readonly registry: Registry<Chain>
}

/** Makes a port. Commands are carried out by `apply`; without it there are none. */
export function makePort(
  config: Readonly<Record<string, unknown>> = {},
  apply: (command: Command, held: PortInHand) => Promise<unknown> = () => Promise.reject(new Error('no commands')),
): PortInHand {
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
    errors: () => Promise.resolve([]),
    config: parseConfig(config, '/nowhere').config,
    control: {
      apply: <T extends CommandType>(command: Command<T>) =>
        // A command's answer belongs to its type; a test's own `apply` knows no more than the command.
        apply(command as unknown as Command, held) as Promise<CommandTable[T]['answers']>,
    },
    credentials: () => held.credentials,
    setUp: async (user, password) => (await port.control.apply({ type: 'admin.setup', user, password })).done,
    ensureSecret: () => port.control.apply({ type: 'admin.secret' }),
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
  const held: PortInHand = { port, credentials: { user: '', password: '', secret: '' }, lines, registry }
  return held
}

/** A route under test. */
export interface TestRoute {
  readonly method: string
  readonly url: string
  readonly action: Action
  readonly guard?: Middleware
  /** `svc.` and the URL unless given. */
  readonly name?: string
}

/** Serves routes on a free port until the test ends. Returns the URL. */
export async function serve(t: TestContext, { registry, port }: PortInHand, routes: readonly TestRoute[]): Promise<string> {
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
  const { handle } = createRequestServer({
    registry,
    ContextClass,
    pool: { workers: 10, queueSize: 10, alertPercent: 100, onAlert: () => {} },
    restPool: emptyRestPool,
    checkHost: createHostGuard(port.config['server.allowed_hosts']),
    staticFiles: undefined,
    accessLog: undefined,
    metrics: { record: () => {} },
    log: () => silentLogger,
    showsDetails: () => false,
  })
  const server = createServer((request, response) => handle(request, response, 'nothing'))
  return `http://127.0.0.1:${await listen(t, server)}`
}

/** The body and header of an urlencoded form, for `request`. */
export function form(fields: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) {
  const body = new URLSearchParams(fields).toString()
  return { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers } }
}

/** Asserts that an answer sends the client elsewhere, 302, without a body. */
export function leadsTo(answer: Answer, location: string, about = location): void {
  assert.deepEqual([answer.status, answer.headers.location, answer.text], [302, location, ''], about)
}

/** Asserts that an answer is a page of the panel with a form, which shows a message. */
export function says(answer: Answer, status: number, message: string): void {
  assert.deepEqual([answer.status, answer.headers['content-type']], [status, 'text/html; charset=utf-8'])
  assert.ok(answer.text.includes(`<p class="message error" role="alert">${message}</p>`), answer.text)
  assert.match(answer.text, /<form class="card" method="post"/)
}

/** The Cookie field that a login's answer makes a browser send. */
export function cookieFrom(answer: Answer): string {
  return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
}

/** Asserts that an answer is a success with this value as JSON. */
export function isJson(answer: Answer, body: unknown): void {
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  assert.deepEqual(answer.json(), body)
}

/** A stored scrypt hash that takes milliseconds to check: those that the server makes take a tenth of a second. */
export function cheapHash(password: string): string {
  const salt = Buffer.from('sixteen bytes...')
  const key = scryptSync(password, salt, 32, { N: 1024, r: 4, p: 1 })
  return `scrypt$1024$4$1$${salt.toString('base64url')}$${key.toString('base64url')}`
}

/** The rows of the table, one for each method: the POST of a row that takes GET too is named after it. */
export const endpoints: readonly SystemRoute[] = (systemRoutes as readonly SystemRoute[]).flatMap((row) =>
  row.method === 'GET,POST'
    ? [{ ...row, method: 'GET' as const }, { ...row, method: 'POST' as const, name: `${row.name}.post` }]
    : [row],
)
