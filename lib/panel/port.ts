/**
 * Everything that the admin panel uses of its server: what its routes show and change.
 */
import { fileURLToPath } from 'node:url'
import type { AuditDetails } from '../access/port.ts'
import type { CredentialStore } from '../access/credential-store.ts'
import { createPasswordCheck, type Scrypt } from '../access/password.ts'
import { makeSetupToken } from '../access/setup-token.ts'
import { createLoginThrottle, type LoginThrottle } from '../access/throttle.ts'
import type { ReloadPreview } from '../application/application.ts'
import type { Control } from '../control/commands.ts'
import { version } from '../base/version.ts'
import type { CoreContext } from '../http/context.ts'
import type { Chain } from '../chain/compose.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { NodesView } from '../cluster/node.ts'
import { sumOfGroups, type ErrorGroup } from '../log/error-groups.ts'
import type { Logs } from '../log/logs.ts'
import type { Processes } from '../metrics/processes.ts'
import { renderPrometheus } from '../metrics/prometheus.ts'
import type { Registry } from '../routing/registry.ts'
import type { RouteRecord } from '../routing/route.ts'
import { Views } from '../views/cache.ts'
import { filesInMemory } from '../views/view-files.ts'
import { statusOf, type Status } from './status.ts'

/** The parts of the server that the port is made of. */
export interface PanelParts {
  readonly loaded: LoadedConfig
  readonly credentials: CredentialStore
  readonly registry: Registry<Chain>
  /** The readings of all processes. */
  readonly processes: Processes
  readonly logs: Logs
  readonly control: Control
  /**
   * `stopping` from the moment a stop begins; `not ready` while the shared engine or the latest state is out of reach.
   */
  readonly readiness: () => 'ready' | 'not ready' | 'stopping'
  /** What a reload would change now. */
  readonly preview: () => Promise<ReloadPreview>
  /** The nodes, where servers share an engine. */
  readonly nodes: NodesView | undefined
  /** Of several processes: the token that a remote setup must present, and the count of failed logins. */
  readonly part: { readonly setupToken: string; readonly loginThrottle: LoginThrottle } | undefined
  /** Checks passwords together with those of the application's users. */
  readonly scrypt: Scrypt
}

/** A route as the listings show it. */
export interface ListedRoute {
  readonly record: RouteRecord
  readonly system: boolean
}

/** A dry match: which route would answer, with which parameters. */
interface DryMatch {
  readonly record: RouteRecord
  readonly params: Readonly<Record<string, string>>
}

/** The server as the panel sees it. */
export type AdminPort = ReturnType<typeof createAdminPort>

/** How many changes the page shows. */
const keptChanges = 200

const pagesFolder = fileURLToPath(new URL('pages', import.meta.url))

/** Makes the port. */
export function createAdminPort(parts: PanelParts) {
  const { loaded, credentials, registry, processes, logs, nodes, part } = parts
  const { config } = loaded
  const logger = logs.general
  // No trace switch holds audit lines back.
  const log = logger.untraced('server')
  return {
    /** The configuration at the start; for `admin.user`, `admin.password` and `admin.secret`, use `credentials()`. */
    config,
    /** Where the values of the configuration come from, by key; a missing one has its default. */
    configSources: loaded.sources,
    control: parts.control,
    readiness: parts.readiness,
    preview: parts.preview,
    /** The present name, password hash and secret. */
    credentials: () => credentials.current,
    /** The token that a remote setup must present. */
    setupToken: part?.setupToken ?? makeSetupToken(),
    /** Counts the failed logins. */
    loginThrottle: part?.loginThrottle ?? createLoginThrottle(),
    passwords: createPasswordCheck(parts.scrypt),
    /** The document of `/svc-status`. */
    status: async (): Promise<Status> => {
      const [server, list] = await Promise.all([processes.read('window'), nodes?.list()])
      return statusOf(config['app.env'], server, list)
    },
    /** The text of `/svc-metrics`. */
    prometheus: async (): Promise<string> => {
      const [server, list] = await Promise.all([processes.read('start'), nodes?.list()])
      return renderPrometheus(server, list)
    },
    /** The series of the last 15 minutes. */
    history: () => processes.history(),
    /** The last requests, oldest first. */
    recentRequests: () => processes.requests(),
    /** The last lines of the general log, oldest first. */
    recentLines: () => processes.lines(),
    /** The errors by cause, the one that was seen last first. */
    errors: async (): Promise<readonly ErrorGroup[]> => {
      // While the engine is away, which the warnings say, those of this server are shown.
      const others = nodes?.errors().catch(() => [])
      const [ofServer, ofOthers = []] = await Promise.all([processes.errors(), others])
      return sumOfGroups([ofServer, ...ofOthers])
    },
    /** Forgets the errors, in every process and node. */
    clearErrors: async (): Promise<void> => {
      await nodes?.clearErrors()
      await parts.control.apply({ type: 'errors.clear' })
    },
    /** The last changes in the audit log of this machine, the newest first. */
    changes: () => logs.changes(keptChanges),
    /** The trace switches. */
    traceState: () => logger.trace.state(),
    /** All routes in the order of registration. */
    routes: (): readonly ListedRoute[] => registry.list(),
    match: (method: string, path: string) => dryMatch(registry, method, path),
    /** Renders the panel's own pages; files are relative to `lib/panel/pages`. */
    pages: new Views({
      root: pagesFolder,
      cacheFolder: pagesFolder,
      ram: true,
      disk: false,
      readable: false,
      version,
      files: filesInMemory(pagesFolder), // The panel works on when the server's folder is moved, as in an upgrade.
      onProblem: (message) => logger.module('response').warn(message),
    }),
    /** The log of module `server`. */
    log,
    audit: (ctx: CoreContext, what: string, { detail, failed = false, ...change }: AuditDetails = {}): void => {
      log.info(`${what} by ${ctx.ip}${detail === undefined ? '' : `: ${detail}`}`, { request: ctx })
      // In `dev` nobody signs in. Of a failure nobody knows who it was.
      const isSignedIn = config['app.env'] === 'prod' && !failed
      const user = isSignedIn ? credentials.current.user : undefined
      const complete = { by: ctx.ip, user, what, ...change }
      if (failed) logs.audit.recordFailure(complete)
      else logs.audit.record(complete)
    },
    /** For what has no line of its own in the general log. */
    auditLog: logs.audit,
    monitorLog: logger.module('monitor'),
    metricsLog: logger.module('metrics'),
  }
}

/**
 * Finds a route as a request would: the route that would answer, or the methods that the path takes; none when no
 * pattern matches. The parameters have no prototype, like those of a request.
 * @throws HttpError 400 as a request would
 */
function dryMatch(registry: Registry<Chain>, method: string, path: string): DryMatch | readonly string[] {
  const found = registry.find(method, path)
  if (found === undefined) return registry.allowed(path)
  const params = Object.create(null) as Record<string, string>
  found.route.pattern.names.forEach((name, at) => {
    params[name] = found.values[at] ?? ''
  })
  return { record: found.route.record, params }
}
