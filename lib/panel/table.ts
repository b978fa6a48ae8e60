/**
 * All system routes, one row each. To add an endpoint, add its row and its handler.
 *
 * System routes are ordinary entries of the registry, with two differences: their middleware is the guard, and they
 * never wait for a worker of the HTTP pool.
 */
import { NotEverywhereError } from '../control/commands.ts'
import { compose, type Action, type ChainReports } from '../chain/compose.ts'
import { parsePattern } from '../routing/pattern.ts'
import { createGuard, type Change } from '../access/guard.ts'
import type { AccessPort } from '../access/access-port.ts'
import { createDescription } from './description.ts'
import { refuse } from './json-body.ts'
import { createJobEndpoints } from './jobs.ts'
import { createListings } from './listings.ts'
import { createMonitor } from './monitor.ts'
import { createOperations } from './operations.ts'
import { createProfiles } from './profile.ts'
import { createAdminPort, type PanelParts } from './admin-port.ts'
import { createReports } from './reports.ts'
import { answersForms } from './result.ts'
import { createRouteEndpoints } from './route-endpoints.ts'
import { createSignIn } from '../access/sign-in.ts'
import { createTraceEndpoints } from './trace-endpoints.ts'

/** A system route. */
export interface SystemRoute {
  readonly name: string
  readonly method: 'GET' | 'POST' | 'GET,POST'
  readonly url: string
  /** Whether the admin check applies. */
  readonly auth: boolean
  /** Whether a request changes something: never, always, or when it has a query. */
  readonly change: Change
  /** Whether the route exists even with `admin.enabled` false. */
  readonly always: boolean
  /** Its purpose in one line. */
  readonly meaning: string
}

/** The handlers, by the names of the rows. */
type Handlers = { readonly [Name in (typeof systemRoutes)[number]['name']]: Action }

const open = { auth: false, change: 'never', always: false } as const
const guarded = { auth: true, change: 'never', always: false } as const
const changing = { auth: true, change: 'always', always: false } as const

/** The table, in the order of registration and documentation. */
export const systemRoutes = [
  { ...open, always: true, name: 'svc.ping', method: 'GET', url: '/svc-ping',
    meaning: 'Reports that the server is up, and its version.' },
  { ...open, always: true, name: 'svc.slow', method: 'GET', url: '/svc-slow', meaning: 'Answers after three seconds.' },
  { ...open, always: true, name: 'svc.ready', method: 'GET', url: '/svc-ready',
    meaning: 'For load balancers: 200, or 503 while stopping.' },
  { ...guarded, name: 'svc.status', method: 'GET', url: '/svc-status', meaning: 'The metrics as JSON.' },
  { ...guarded, name: 'svc.metrics', method: 'GET', url: '/svc-metrics', meaning: 'The metrics as Prometheus text.' },
  { ...guarded, name: 'svc.monitor', method: 'GET', url: '/svc-monitor', meaning: 'The dashboard.' },
  { ...guarded, name: 'svc.errors', method: 'GET', url: '/svc-errors', meaning: 'The errors by cause.' },
  { ...changing, name: 'svc.errors.clear', method: 'POST', url: '/svc-errors/clear', meaning: 'Clears all errors.' },
  { ...guarded, name: 'svc.config', method: 'GET', url: '/svc-config',
    meaning: 'Every key of the configuration, and where its value comes from.' },
  { ...guarded, name: 'svc.changes', method: 'GET', url: '/svc-changes',
    meaning: 'The last changes and their authors.' },
  { ...guarded, name: 'svc.index', method: 'GET', url: '/svc-index',
    meaning: 'All routes, with a button to open them.' },
  { ...guarded, name: 'svc.openapi', method: 'GET', url: '/svc-openapi',
    meaning: 'The application\'s API, with a form to try each operation.' },
  { ...guarded, name: 'svc.jobs', method: 'GET', url: '/svc-jobs',
    meaning: 'The background jobs: by name, and those that wait, run or are dead.' },
  { ...changing, name: 'svc.jobs.retry', method: 'POST', url: '/svc-jobs/retry',
    meaning: 'Makes a dead job, or all of a name, wait again.' },
  { ...changing, name: 'svc.jobs.discard', method: 'POST', url: '/svc-jobs/discard',
    meaning: 'Removes a job, or all dead ones of a name.' },
  { ...changing, name: 'svc.jobs.run', method: 'POST', url: '/svc-jobs/run', meaning: 'Runs a job now.' },
  { ...guarded, change: 'with-query', name: 'svc.profile', method: 'GET', url: '/svc-profile',
    meaning: 'Where the time and memory of a process go; with a query, takes a profile.' },
  { ...changing, name: 'svc.profile.take', method: 'POST', url: '/svc-profile', meaning: 'Takes a profile.' },
  { ...guarded, change: 'with-query', name: 'svc.trace', method: 'GET', url: '/svc-trace',
    meaning: 'The trace switches; with a query, sets one first.' },
  { ...changing, name: 'svc.trace.set', method: 'POST', url: '/svc-trace', meaning: 'Sets a trace switch.' },
  { ...changing, name: 'svc.cache.clear', method: 'GET,POST', url: '/svc-cache-clear',
    meaning: 'Deletes the compiled views on disk.' },
  { ...changing, name: 'svc.stop', method: 'GET,POST', url: '/svc-stop', meaning: 'Stops the server gracefully.' },
  { ...changing, name: 'svc.bench.start', method: 'GET,POST', url: '/svc-bench-start',
    meaning: 'Sets the counters of the bench window to 0.' },
  { ...changing, name: 'svc.bench.stop', method: 'GET,POST', url: '/svc-bench-stop',
    meaning: 'The metrics since the bench window began.' },
  { ...changing, name: 'svc.routes.add', method: 'POST', url: '/svc-routes/add', meaning: 'Registers a route.' },
  { ...changing, name: 'svc.routes.delete', method: 'POST', url: '/svc-routes/delete', meaning: 'Removes a route.' },
  { ...changing, name: 'svc.routes.reload', method: 'GET,POST', url: '/svc-routes/reload',
    meaning: 'Reads the route files again.' },
  { ...guarded, name: 'svc.routes.list', method: 'GET', url: '/svc-routes/list',
    meaning: 'The application\'s routes.' },
  { ...guarded, name: 'svc.routes.listall', method: 'GET', url: '/svc-routes/listall',
    meaning: 'All routes, including system routes.' },
  { ...guarded, name: 'svc.routes.match', method: 'GET', url: '/svc-routes/match',
    meaning: 'Which route would answer, or why none would.' },
  { ...guarded, name: 'svc.routes.diff', method: 'GET', url: '/svc-routes/diff',
    meaning: 'What a reload would change.' },
  { ...open, name: 'svc.login', method: 'GET', url: '/svc-login', meaning: 'The login form.' },
  { ...open, change: 'always', name: 'svc.login.post', method: 'POST', url: '/svc-login', meaning: 'Signs in.' },
  { ...open, change: 'always', name: 'svc.logout', method: 'GET,POST', url: '/svc-logout', meaning: 'Signs out.' },
  { ...open, name: 'svc.setup', method: 'GET', url: '/svc-setup', meaning: 'The form for the first credentials.' },
  { ...open, change: 'always', name: 'svc.setup.post', method: 'POST', url: '/svc-setup',
    meaning: 'Saves the first credentials.' },
] as const satisfies readonly SystemRoute[]

/** The effect of opening a route that changes something: the index asks for confirmation. */
const consequences: ReadonlyMap<string, string> = new Map(
  systemRoutes.filter((row) => row.method !== 'POST' && row.change === 'always').map((row) => [row.name, row.meaning]),
)

/** The guard returns the outcome of `next()`, so there is nothing to report. */
const noReports: ChainReports = { late: () => {}, misuse: () => {} }

/** Builds the panel. With `admin.enabled` false it has only the routes that always exist. */
export function createPanel(parts: PanelParts) {
  const port = createAdminPort(parts)
  const access: AccessPort = {
    ...port,
    setUp: async (user, password) => (await port.control.apply({ type: 'admin.setup', user, password })).done,
    ensureSecret: () => port.control.apply({ type: 'admin.secret' }),
    useCode: (code) => port.control.apply({ type: 'admin.code', code }),
  }
  const guard = createGuard(access, { throttle: port.loginThrottle })
  const signIn = createSignIn(access, {
    changes: changesOnGet,
    throttle: port.loginThrottle,
    codeThrottle: port.codeThrottle,
    passwords: port.passwords,
  })
  const handlers: Handlers = {
    ...createOperations(port),
    ...createReports(port),
    ...createListings(port, consequences),
    ...createRouteEndpoints(port),
    ...createJobEndpoints(port),
    ...createProfiles(port),
    ...createTraceEndpoints(port),
    'svc.monitor': createMonitor(port),
    'svc.openapi': createDescription(port),
    'svc.login': signIn.loginPage,
    'svc.login.post': signIn.login,
    'svc.logout': signIn.logout,
    'svc.setup': signIn.setupPage,
    'svc.setup.post': signIn.setup,
  }
  const routes = systemRoutes
    .filter((row) => row.always || port.config['admin.enabled'])
    .map((row) => {
      const layers = [{ name: 'svc.guard', run: guard(row) }]
      const { name, url, method } = row
      const handler = handlers[name]
      const action = row.change === 'never' ? handler : answersForms(name, namingProcesses(handler))
      return {
        record: { name, url, method, action: '', middleware: '', scope: '' },
        pattern: parsePattern(url),
        system: true,
        refusesHead: row.change !== 'never',
        target: compose(layers, action, noReports),
      }
    })
  return {
    /** Registers the routes. Call it once, at the start. */
    open: () => {
      for (const route of routes) parts.registry.add(route)
    },
    /** Logs the setup token while there are no credentials. */
    announceSetup: () => signIn.announceSetup(),
  }
}

/** Answers 500 naming the processes that have not applied a change; other failures are only logged. */
function namingProcesses(action: Action): Action {
  return async (ctx) => {
    try {
      return await action(ctx)
    } catch (error) {
      if (!(error instanceof NotEverywhereError)) throw error
      return refuse(ctx, 500, error.message)
    }
  }
}

/** Whether a GET on a system route's URL changes something. */
function changesOnGet(url: string): boolean {
  return systemRoutes.some((row) => row.url === url && row.method !== 'POST' && row.change === 'always')
}
