/**
 * The admin panel's interface to its server: everything that its routes show and change.
 */
import { basename, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AuditDetails } from '../access/access-port.ts'
import { createPanelFilter } from '../access/allow-list.ts'
import { createCodeThrottle, type CodeThrottle } from '../access/code-throttle.ts'
import { hasAdminCookie } from '../access/cookie.ts'
import type { CredentialStore } from '../access/credential-store.ts'
import type { KeyDerivation } from '../access/key-derivation.ts'
import { createPasswordCheck } from '../access/password.ts'
import { makeSetupToken } from '../access/setup-token.ts'
import { createLoginThrottle, type LoginThrottle } from '../access/throttle.ts'
import type { ReloadPreview } from '../application/application.ts'
import type { FailedCheck } from '../application/ready-checks.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { Control } from '../control/commands.ts'
import { version } from '../base/version.ts'
import type { CoreContext } from '../http/context.ts'
import type { Chain } from '../chain/compose.ts'
import type { LoadedConfig } from '../config/load.ts'
import { configTable } from '../config/table.ts'
import type { Description } from '../describe/openapi.ts'
import type { Profiler } from '../diagnose/profile.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { NodesView } from '../nodes/node.ts'
import { sumOfGroups, type ErrorGroup } from '../log/error-groups.ts'
import type { Logs } from '../log/logs.ts'
import type { Processes } from '../metrics/processes.ts'
import { renderPrometheus } from '../metrics/prometheus.ts'
import type { CodeDigest } from '../proof/code-digest.ts'
import type { Registry } from '../routing/registry.ts'
import type { RouteRecord } from '../routing/route.ts'
import { Views } from '../views/cache.ts'
import { filesInMemory } from '../views/view-files.ts'
import { statusOf, type Status } from './status.ts'

/** The parts of the server that the port uses. */
export interface PanelParts {
  readonly loaded: LoadedConfig
  readonly credentials: CredentialStore
  readonly registry: Registry<Chain>
  /** The readings of all processes. */
  readonly processes: Processes
  readonly logs: Logs
  readonly control: Control
  /**
   * `stopping` once a stop begins; `not ready` while the shared engine or the latest state is out of reach.
   */
  readonly readiness: () => 'ready' | 'not ready' | 'stopping'
  /** Runs the readiness checks of the application. Resolves with those that fail. */
  readonly failedChecks: () => MaybePromise<readonly FailedCheck[]>
  /** What a reload would change now. */
  readonly preview: () => Promise<ReloadPreview>
  /** The background jobs; undefined while the server has had no job file. */
  readonly jobs: () => Jobs | undefined
  /** Describes the routes in use, as OpenAPI 3.1. Rejects with MissingRoomError. */
  readonly describe: () => Promise<Description>
  /** Takes profiles of this process. Rejects with MissingRoomError. */
  readonly profiler: () => Promise<Profiler>
  /** The number of this process, from 1, and how many serve. */
  readonly process: { readonly number: number; readonly count: number }
  /** Aborts when a stop begins. */
  readonly stopping: AbortSignal
  /** The settings in use: of the application, and of the built-in middleware. */
  readonly settings: () => { readonly settings: unknown; readonly setup: unknown }
  /** The nodes, if servers share an engine. */
  readonly nodes: NodesView | undefined
  /** With several processes: the token that a remote setup must present, and the counts of failed logins and codes. */
  readonly worker: WorkerOfPanel | undefined
  /** The digests of the running code. */
  readonly code: CodeDigest
  /** The end of the certificate in milliseconds since 1970; undefined for plain HTTP. */
  readonly certificateEndsMs: () => number | undefined
  /** Shared with the password checks of the application's users. */
  readonly keyDerivation: KeyDerivation
}

/** What the panel shares with those of the other processes. */
interface WorkerOfPanel {
  readonly setupToken: string
  readonly loginThrottle: LoginThrottle
  readonly codeThrottle: CodeThrottle
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

/** The number of changes on the page. */
const keptChanges = 200

const pagesFolder = fileURLToPath(new URL('pages', import.meta.url))

/** Makes the port. */
export function createAdminPort(parts: PanelParts) {
  const { loaded, credentials, registry, logs, worker } = parts
  const { config } = loaded
  const { 'app.env': env } = config
  const hides = createPanelFilter(config['admin.allow'])
  const logger = logs.general
  // No trace switch suppresses audit lines.
  const log = logger.untraced('server')
  return {
    /** The configuration at start-up; for the admin's credentials, use `credentials()`. */
    config,
    application: applicationName(loaded),
    /** The sources of the configuration's values, by key; keys that are missing here have their defaults. */
    configSources: loaded.sources,
    settings: parts.settings,
    describe: parts.describe,
    profiler: parts.profiler,
    process: parts.process,
    stopping: parts.stopping,
    jobs: parts.jobs,
    control: parts.control,
    readiness: parts.readiness,
    failedChecks: parts.failedChecks,
    preview: parts.preview,
    /** Whether a client may see the panel. */
    maySee: (ctx: CoreContext): boolean =>
      config['admin.enabled'] && hides?.({ path: '/svc-status', ip: ctx.ip }) !== true
        && (env === 'dev' || hasAdminCookie(ctx, { config, credentials: () => credentials.current }, Date.now())),
    /** The current name, password hash, secret and second factor. */
    credentials: () => credentials.current,
    /** The token that a remote setup must present. */
    setupToken: worker?.setupToken ?? makeSetupToken(),
    /** Counts the failed logins. */
    loginThrottle: worker?.loginThrottle ?? createLoginThrottle(),
    /** Counts the wrong codes of the second factor. */
    codeThrottle: worker?.codeThrottle ?? createCodeThrottle(),
    passwords: createPasswordCheck(parts.keyDerivation),
    ...createReports(parts, env),
    /** The trace switches. */
    traceState: () => logger.trace.state(),
    /** All routes in the order of registration. */
    routes: (): readonly ListedRoute[] => registry.list(),
    match: (method: string, path: string) => dryMatch(registry, method, path),
    /** Renders the panel's own pages; files are relative to `lib/panel/pages`. */
    pages: createPages(logger.module('response').warn),
    /** The log of module `server`. */
    log,
    audit: (ctx: CoreContext, what: string, { detail, failed = false, ...change }: AuditDetails = {}): void => {
      log.info(`${what} by ${ctx.ip}${detail === undefined ? '' : `: ${detail}`}`, { request: ctx })
      // In `dev` there is no sign-in, and the user of a failure is unknown.
      const isSignedIn = env === 'prod' && !failed
      const user = isSignedIn ? credentials.current.user : undefined
      const complete = { by: ctx.ip, user, what, ...change }
      if (failed) logs.audit.recordFailure(complete)
      else logs.audit.record(complete)
    },
    /** For changes without their own line in the general log. */
    auditLog: logs.audit,
    monitorLog: logger.module('monitor'),
    metricsLog: logger.module('metrics'),
  }
}

/** Makes the part of the port that reads what the server counts and logs. */
function createReports(parts: PanelParts, env: string) {
  const { processes, nodes, logs, code, certificateEndsMs } = parts
  return {
    /** The document of `/svc-status`. */
    status: async (): Promise<Status> => {
      const [server, list] = await Promise.all([processes.read('window'), nodes?.list()])
      return statusOf({ env, code, certificateEndsMs: certificateEndsMs() }, server, list)
    },
    /** The text of `/svc-metrics`. */
    prometheus: async (): Promise<string> => {
      const [server, list] = await Promise.all([processes.read('start'), nodes?.list()])
      return renderPrometheus(code, server, list, certificateEndsMs())
    },
    /** The series of the last 15 minutes. */
    history: () => processes.history(),
    /** The last requests, oldest first. */
    recentRequests: () => processes.requests(),
    /** The last lines of the general log, oldest first. */
    recentLines: () => processes.lines(),
    /** The errors by cause, the most recently seen first. */
    errors: async (): Promise<readonly ErrorGroup[]> => {
      // While the engine is away, which the warnings report, only those of this server are shown.
      const others = nodes?.errors().catch(() => [])
      const [ofServer, ofOthers = []] = await Promise.all([processes.errors(), others])
      return sumOfGroups([ofServer, ...ofOthers])
    },
    /** Clears the errors, in every process and node. */
    clearErrors: async (): Promise<void> => {
      await nodes?.clearErrors()
      await parts.control.apply({ type: 'errors.clear' })
    },
    /** The last changes in the audit log of this machine, newest first. */
    changes: () => logs.changes(keptChanges),
  }
}

/** `shared.name` unless that is the default; else the name of the application's folder. */
function applicationName({ config, folder }: LoadedConfig): string {
  const name = config['shared.name']
  return name === configTable['shared.name'].default ? basename(resolve(folder, config['paths.root'])) : name
}

function createPages(onProblem: (message: string) => void): Views {
  return new Views({
    root: pagesFolder,
    cacheFolder: pagesFolder,
    ram: true,
    disk: false,
    readable: false,
    version,
    files: filesInMemory(pagesFolder), // The panel keeps working when an upgrade moves the server's folder.
    onProblem,
  })
}

/**
 * Finds a route as a request would: the route that would answer, or the methods that the path takes; an empty list if
 * no pattern matches. The parameters have no prototype, like those of a request.
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
