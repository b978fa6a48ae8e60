/**
 * `npm run bench -- security`: what sessions, CSRF checks and resource ids cost a request, in microseconds.
 *
 * Surprise: each run works on contexts of its own, made before the clock starts, as a server has them: what a context
 * keeps once it was asked for is asked for here as often as in a request.
 */
import { OpenReplies } from '../../lib/session/open-replies.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createCsrfGroup } from '../../lib/csrf/group.ts'
import { createCsrfTokens } from '../../lib/csrf/token.ts'
import { createClientAddress } from '../../lib/http/client-address.ts'
import type { FullContext } from '../support/context.ts'
import { createContextClass } from '../../lib/http/features.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { Middleware } from '../../lib/chain/compose.ts'
import { createResourceTokens } from '../../lib/tokens/resource-id.ts'
import { runWithSession, sessionFeature } from '../../lib/session/feature.ts'
import { fieldOf } from '../../lib/session/fields.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import { median } from './support/statistics.ts'

interface Row {
  readonly name: string
  /** Microseconds that it may cost; undefined where nothing was promised. */
  readonly limitUs?: number
  /** The header fields of the request, and its method; GET unless given. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly run: (ctx: FullContext) => unknown
}

const rounds = 31
const runsPerRound = 5000
const sessions = 10_000
const keys = ['a key of the application, of 32 or more characters']
const now = Date.now

const id = 'k3Jr0vYw9LZ_x-2bq7H1cT5nE8sDfG4uMaPiOyRtWvQ'
const sessionToken = 'aJ4k0vYw9LZ_x-2bq7H1cT5nE8sDfG4uMaPiOyRtWvQ'
const otherIds = Array.from({ length: sessions - 1 }, (_, at) => id.slice(0, -5) + String(at).padStart(5, '0'))
let turn = 0
const store = createMemoryStore({ max: sessions, onFull: () => {} })
fillStore()

const csrf = createCsrfGroup({ keys, trustedOrigins: [], log: () => silentLogger, now })
csrf.prepare({ lapse: 3600 }).commit()
const session = { cookie: 'SVCSID', ttlS: 3600, store, saved: () => {}, lost: () => {}, openReplies: new OpenReplies() }
const services = { bodyLimitBytes: 1000, clientAddress: createClientAddress([]) }
const { ContextClass } = createContextClass([sessionFeature(session), csrf.feature], services)
const resources = createResourceTokens({ keys, now })
const resource = resources.make('4711')
const signed = createCsrfTokens({ keys, now }).make()

const fromBrowser = {
  host: 'example.org',
  cookie: `theme=dark; SVCSID=${id}`,
  origin: 'https://example.org',
  'sec-fetch-site': 'same-origin',
}
const stateless = csrf.middleware.get('SVC_MwCsrfCheck') as Middleware // the group has both
const stateful = csrf.middleware.get('SVC_MwCsrf') as Middleware
let reached = 0
const next = (): void => {
  reached += 1
}
const readUser = (ctx: FullContext) => (): void => {
  if (ctx.session.get('_auth_user') === 'ada') reached += 1
}

const rows: readonly Row[] = [
  { name: 'session: read from memory, in turn', limitUs: 2, run: () => store.read(nextId()) !== undefined && next() },
  { name: 'session: read from memory, the same', limitUs: 2, run: () => store.read(id) !== undefined && next() },
  { name: 'session: SVC_MwSession and a key', headers: fromBrowser, run: (ctx) => runWithSession(ctx, readUser(ctx)) },
  {
    name: 'CSRF check: SVC_MwCsrfCheck, header',
    limitUs: 8,
    method: 'POST',
    headers: { ...fromBrowser, 'x-csrf-token': signed },
    run: (ctx) => stateless(ctx, next),
  },
  {
    name: 'CSRF check: SVC_MwCsrf, header, with SVC_MwSession',
    limitUs: 8,
    method: 'POST',
    headers: { ...fromBrowser, 'x-csrf-token': sessionToken },
    run: (ctx) => runWithSession(ctx, () => stateful(ctx, next)),
  },
  { name: 'CSRF check: a GET', run: (ctx) => stateless(ctx, next) },
  { name: 'CSRF: a signed token rendered', run: (ctx) => ctx.csrfInput() !== '' && next() },
  { name: 'resource id: make', limitUs: 8, run: () => resources.make('4711') !== '' && next() },
  { name: 'resource id: read', limitUs: 8, run: () => resources.read(resource) === '4711' && next() },
]

console.log(`Node ${process.version}; microseconds, median of ${rounds} alternating rounds of ${runsPerRound}\n`)
const costs = new Map<Row, number[]>(rows.map((row) => [row, []]))
for (const row of rows) measure(row)
for (let round = 0; round < rounds; round += 1) for (const row of rows) costs.get(row)?.push(measure(row))
for (const [row, list] of costs) {
  const limit = row.limitUs === undefined ? '' : `  at most ${row.limitUs}`
  console.log(row.name.padEnd(52) + median(list).toFixed(2).padStart(6) + limit)
}

/** The microseconds of one run. */
function measure({ name, method = 'GET', headers = {}, run }: Row): number {
  const contexts = Array.from({ length: runsPerRound }, () => makeContext(method, headers))
  reached = 0
  const start = performance.now()
  for (const ctx of contexts) run(ctx)
  const elapsedMs = performance.now() - start
  if (reached !== runsPerRound) throw new Error(`${name}: ${reached} of ${runsPerRound} runs came to their end`)
  return (elapsedMs * 1000) / runsPerRound
}

function makeContext(method: string, headers: Readonly<Record<string, string>>): FullContext {
  const socket = { remoteAddress: '192.0.2.1', encrypted: true }
  const request = { method, url: '/notes', headers, rawHeaders: Object.entries(headers).flat(), socket }
  // As much of a request and a response as is looked at, with the members of the features above.
  return new ContextClass(request as unknown as IncomingMessage, { headersSent: false } as ServerResponse) as FullContext
}

function nextId(): string {
  turn = (turn + 7919) % otherIds.length
  return otherIds[turn] as string // in range
}

function fillStore(): void {
  const fields = new Map([
    [fieldOf('_auth_user'), '"ada"'],
    [fieldOf('_csrf_token'), JSON.stringify(sessionToken)],
    [fieldOf('cart'), JSON.stringify(Array.from({ length: 20 }, (_, at) => ({ id: at, amount: 1 })))],
  ])
  for (const other of otherIds) store.create(other, fields, 3_600_000)
  store.create(id, fields, 3_600_000)
}
