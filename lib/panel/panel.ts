/**
 * Puts the admin panel of one server together.
 */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CredentialStore } from '../admin/credential-store.ts'
import { createPasswordCheck, type Scrypt } from '../admin/password.ts'
import { makeSetupToken } from '../admin/setup-token.ts'
import { createLoginThrottle, type LoginThrottle } from '../admin/throttle.ts'
import type { Control } from '../application/commands.ts'
import { version } from '../base/version.ts'
import type { Chain } from '../chain/compose.ts'
import type { NodesView } from '../group/node.ts'
import type { LoadedConfig } from '../config/load.ts'
import { readChanges } from '../log/changes.ts'
import { sumOfGroups } from '../log/error-groups.ts'
import type { Logger } from '../log/logger.ts'
import type { Processes } from '../metrics/processes.ts'
import { renderPrometheus } from '../metrics/prometheus.ts'
import type { Registry } from '../routing/registry.ts'
import { Views } from '../views/cache.ts'
import type { AdminPort, DryMatch } from './port.ts'
import { statusOf } from './status.ts'
import { createSystemRoutes } from './table.ts'

interface PanelOptions {
  readonly loaded: LoadedConfig
  readonly credentials: CredentialStore
  readonly registry: Registry<Chain>
  /** The readings of all processes. */
  readonly processes: Processes
  readonly logger: Logger
  readonly control: Control
  readonly readiness: AdminPort['readiness']
  readonly preview: AdminPort['preview']
  /** The nodes, where servers share an engine. */
  readonly nodes: NodesView | undefined
  /** Of several processes: the token that a remote setup must present, and the count of failed logins. */
  readonly part: { readonly setupToken: string; readonly loginThrottle: LoginThrottle } | undefined
  /** Checks passwords together with those of the application's users. */
  readonly scrypt: Scrypt
}

interface Panel {
  /** Registers the system routes. Call it once, at the start. */
  open(): void
  /** Logs the setup token while there are no credentials. */
  announceSetup(): void
}

/** How many changes the page shows. */
const keptChanges = 200

const pagesFolder = fileURLToPath(new URL('pages', import.meta.url))

/** Builds the panel. Nothing is registered before `open()`. */
export function createPanel(options: PanelOptions): Panel {
  const { loaded, credentials, registry, processes, logger, nodes } = options
  const { config } = loaded
  const pages = new Views({
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
    configSources: loaded.sources,
    control: options.control,
    credentials: () => credentials.current,
    setupToken: options.part?.setupToken ?? makeSetupToken(),
    loginThrottle: options.part?.loginThrottle ?? createLoginThrottle(),
    passwords: createPasswordCheck(options.scrypt),
    status: async () => {
      const [server, list] = await Promise.all([processes.read('window'), nodes?.list()])
      return statusOf(config['app.env'], server, list)
    },
    prometheus: async () => {
      const [server, list] = await Promise.all([processes.read('start'), nodes?.list()])
      return renderPrometheus(server, list)
    },
    history: () => processes.history(),
    recentRequests: () => processes.requests(),
    recentLines: () => processes.lines(),
    errors: async () => {
      // While the engine is away, which the warnings say, those of this server are shown.
      const others = nodes?.errors().catch(() => [])
      const [ofServer, ofOthers = []] = await Promise.all([processes.errors(), others])
      return sumOfGroups([ofServer, ...ofOthers])
    },
    clearErrors: async () => {
      await nodes?.clearErrors()
      await options.control.apply({ type: 'errors.clear' })
    },
    changes: () => readChanges(resolve(loaded.folder, config['paths.log']), config['log.file'], keptChanges),
    traceState: () => logger.trace.state(),
    routes: () => registry.list(),
    preview: options.preview,
    match: (method, path) => dryMatch(registry, method, path),
    readiness: options.readiness,
    pages,
    log: logger.untraced('server'),
    monitorLog: logger.module('monitor'),
    metricsLog: logger.module('metrics'),
  }
  const { routes, announceSetup } = createSystemRoutes(port)
  return {
    open: () => {
      for (const route of routes) registry.add(route)
    },
    announceSetup,
  }
}

/** Finds a route as a request would. The parameters have no prototype, like those of a request. */
function dryMatch(registry: Registry<Chain>, method: string, path: string): DryMatch | readonly string[] {
  const found = registry.find(method, path)
  if (found === undefined) return registry.allowed(path)
  const params = Object.create(null) as Record<string, string>
  found.route.pattern.names.forEach((name, at) => {
    params[name] = found.values[at] ?? ''
  })
  return { record: found.route.record, params }
}
