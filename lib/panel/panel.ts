/**
 * The admin panel of one server, put together: its credentials, its metrics, the commands that it carries out, and its
 * routes.
 */
import { fileURLToPath } from 'node:url'
import type { Config } from '../config/table.ts'
import type { CommandHandlers, Control } from '../control/commands.ts'
import type { AdminState, Change, CommandFollowers } from '../control/relay.ts'
import type { Logger } from '../log/logger.ts'
import type { RecentLines } from '../log/recent-lines.ts'
import { TimedTrace } from '../log/timed-trace.ts'
import { createOwnProcess, createSingleProcess, type JoinProcesses, type Summary } from '../metrics/processes.ts'
import { renderPrometheus } from '../metrics/prometheus.ts'
import type { MetricSources } from '../metrics/table.ts'
import type { Chain } from '../chain/compose.ts'
import type { NodesView } from '../nodes/contract.ts'
import type { Registry } from '../routing/registry.ts'
import { version } from '../base/version.ts'
import { createViews } from '../views/cache.ts'
import { CredentialStore } from '../admin/credential-store.ts'
import type { AdminPort, DryMatch } from './port.ts'
import { createSessionTotals } from './session-totals.ts'
import { makeSetupToken } from '../admin/setup-token.ts'
import { statusOf } from './status.ts'
import { createSystemRoutes } from './table.ts'
import { createLoginThrottle, type LoginThrottle } from '../admin/throttle.ts'

export interface PanelOptions {
  readonly config: Config
  /** Where credentials are saved; undefined: an embedded server without a file. */
  readonly configFile: string | undefined
  /** The `app_key` in use. */
  readonly appKey: string
  readonly registry: Registry<Chain>
  /** The numbers of its `sessions` may begin anew: a reload can exchange the store. */
  readonly sources: MetricSources
  /** Joins this process with the others of the server; it is the only one unless given. */
  readonly processes?: JoinProcesses | undefined
  readonly logger: Logger
  readonly recentLines: RecentLines
  /** Given late, since its handlers are the panel's in part. */
  readonly control: () => Control
  readonly readiness: AdminPort['readiness']
  /** The nodes, where servers share an engine. */
  readonly nodes: () => NodesView | undefined
  /** What a setup from afar must show: 128 random bits of this server's own unless given. */
  readonly setupToken: string | undefined
  /** Counts the failed logins; a throttle of this process unless given. */
  readonly loginThrottle: LoginThrottle | undefined
}

type OwnCommand = 'trace.set' | 'bench.start' | 'admin.setup' | 'admin.secret'

export interface Panel {
  /** The commands that the panel carries out. */
  readonly handlers: Pick<CommandHandlers, OwnCommand>
  /** What takes them up when another process has carried them out. */
  readonly followers: Pick<CommandFollowers, OwnCommand>
  /** What the panels of other processes must know. */
  adminState(): AdminState
  /** Takes over what the panel of another process knows. */
  takeAdminState(state: AdminState): void
  /** What this process says of itself at a glance. */
  summary(): Summary
  /** Whether the `app_key` in use is in the configuration file. */
  readonly keySaved: boolean
  /** Registers the system routes. To be called once, at the start. */
  open(): void
  /** Logs what a first setup needs, where there was none. */
  announceSetup(): void
  /** Ends what runs in the background. */
  close(): void
}

const pagesFolder = fileURLToPath(new URL('pages', import.meta.url))

/** Builds the panel. Nothing is registered before `open()`. */
export function createPanel(options: PanelOptions): Panel {
  const { config, registry, logger } = options
  const sources = { ...options.sources, sessions: createSessionTotals(options.sources.sessions) }
  const join = options.processes ?? createSingleProcess
  const own = createOwnProcess(sources, () => options.recentLines.list())
  const processes = join(own)
  const log = logger.module('server')
  const store = new CredentialStore({
    config,
    file: options.configFile,
    appKey: options.appKey,
    onSaved: (file, keys) => logger.module('config').info(`wrote ${keys.join(', ')} into ${file}`),
  })
  const trace = new TimedTrace(logger.trace, (module, enabled) =>
    log.info(`trace of ${module} went back to ${enabled ? 'on' : 'off'} by itself`),
  )
  const pages = createViews({
    root: pagesFolder,
    cacheFolder: pagesFolder,
    ram: true,
    disk: false,
    readable: false,
    version,
    onProblem: (message) => logger.module('response').warn(message),
  })
  const port: AdminPort = {
    config,
    control: { apply: (command) => options.control().apply(command) },
    credentials: () => store.current,
    setupToken: options.setupToken ?? makeSetupToken(),
    loginThrottle: options.loginThrottle ?? createLoginThrottle(),
    status: async () => {
      const [server, nodes] = await Promise.all([processes.read('window'), options.nodes()?.list()])
      return statusOf(config['app.env'], server, nodes)
    },
    prometheus: async () => {
      const [server, nodes] = await Promise.all([processes.read('start'), options.nodes()?.list()])
      return renderPrometheus(server, nodes)
    },
    history: () => processes.history(),
    recentRequests: () => processes.requests(),
    recentLines: () => processes.lines(),
    traceState: () => logger.trace.state(),
    routes: () => registry.list(),
    match: (method, path) => dryMatch(registry, method, path),
    readiness: options.readiness,
    pages,
    log,
    monitorLog: logger.module('monitor'),
    metricsLog: logger.module('metrics'),
  }
  const { routes, announceSetup } = createSystemRoutes(port)

  function takeAdminState(state: AdminState): void {
    const { keySaved = store.keySaved, ...credentials } = state
    store.take(credentials, keySaved)
  }

  function followAdmin({ admin }: Change): void {
    if (admin !== undefined) takeAdminState(admin)
  }

  return {
    handlers: {
      'trace.set': ({ module, enabled, ttlSeconds }) => trace.set(module, enabled, ttlSeconds),
      'bench.start': () => processes.beginWindow(),
      'admin.setup': async ({ user, password }) => ({ done: await store.setUp(user, password) }),
      'admin.secret': () => store.ensureSecret(),
    },
    followers: {
      'trace.set': ({ command: { module, enabled } }) => trace.set(module, enabled),
      'bench.start': () => processes.beginWindow(),
      'admin.setup': followAdmin,
      'admin.secret': followAdmin,
    },
    adminState: () => ({ ...store.current, keySaved: store.keySaved }),
    takeAdminState,
    summary: () => own.summary(),
    get keySaved() {
      return store.keySaved
    },
    open: () => {
      for (const route of routes) registry.add(route)
    },
    announceSetup,
    close: () => {
      processes.close()
      trace.close()
    },
  }
}

/** Finds as a request would. The parameters have no prototype, as those of a request. */
function dryMatch(registry: Registry<Chain>, method: string, path: string): DryMatch | readonly string[] {
  const found = registry.find(method, path)
  if (found === undefined) return registry.allowed(path)
  const params = Object.create(null) as Record<string, string>
  found.route.pattern.names.forEach((name, at) => {
    params[name] = found.values[at] ?? ''
  })
  return { record: found.route.record, params }
}
