/**
 * Everything that the admin panel uses of its server. `app.ts` provides it.
 */
import type { Config } from '../config/table.ts'
import type { Control } from '../application/commands.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { ReloadPreview } from '../application/application.ts'
import type { ChangeLine } from '../log/changes.ts'
import type { ErrorGroup } from '../log/error-groups.ts'
import type { LogLine } from '../log/recent-lines.ts'
import type { HistorySnapshot } from '../metrics/history.ts'
import type { RecentRequest } from '../metrics/recent-requests.ts'
import type { RouteRecord } from '../routing/route.ts'
import type { Views } from '../views/cache.ts'
import type { AdminCredentials } from '../admin/credentials.ts'
import type { PasswordCheck } from '../admin/password.ts'
import type { Status } from './status.ts'
import type { LoginThrottle } from '../admin/throttle.ts'

/** A route as the listings show it. */
export interface ListedRoute {
  readonly record: RouteRecord
  readonly system: boolean
}

/** A dry match: which route would answer, with which parameters. */
export interface DryMatch {
  readonly record: RouteRecord
  readonly params: Readonly<Record<string, string>>
}

/** The server as the panel sees it: what its routes show and change. */
export interface AdminPort {
  /** The configuration at the start; for `admin.user`, `admin.password` and `admin.secret`, use `credentials()`. */
  readonly config: Config
  /** Where the values of the configuration come from, by key; a missing one has its default. */
  readonly configSources: Readonly<Record<string, string>>
  /** Changes the running server. */
  readonly control: Control
  /** The present name, password hash and secret. */
  credentials(): AdminCredentials
  /** The token that a remote setup must present. */
  readonly setupToken: string
  /** Counts the failed logins. */
  readonly loginThrottle: LoginThrottle
  /** Checks the admin's password; a check of its own unless given. */
  readonly passwords?: PasswordCheck
  /** The document of `/svc-status`. */
  status(): Promise<Status>
  /** The text of `/svc-metrics`. */
  prometheus(): Promise<string>
  /** The series of the last 15 minutes. */
  history(): Promise<HistorySnapshot>
  /** The last requests, oldest first. */
  recentRequests(): Promise<readonly RecentRequest[]>
  /** The last lines of the general log, oldest first. */
  recentLines(): Promise<readonly LogLine[]>
  /** The errors by cause, the one that was seen last first. */
  errors(): Promise<readonly ErrorGroup[]>
  /** Forgets the errors, in every process and node. */
  clearErrors(): Promise<void>
  /** The last 200 changes in the log of this machine, the newest first. */
  changes(): Promise<readonly ChangeLine[]>
  /** The trace switches. */
  traceState(): Readonly<Record<string, boolean>>
  /** All routes in the order of registration. */
  routes(): readonly ListedRoute[]
  /** What a reload would change now. */
  preview(): Promise<ReloadPreview>
  /**
   * Returns the route that would answer, or the methods that the path takes; none when no pattern matches. Throws
   * HttpError 400 as a request would.
   */
  match(method: string, path: string): DryMatch | readonly string[]
  /**
   * `stopping` from the moment a stop begins; `not ready` while the shared engine or the latest state is out of reach.
   */
  readiness(): 'ready' | 'not ready' | 'stopping'
  /** Renders the panel's own pages; files are relative to `lib/panel/pages`. */
  readonly pages: Views
  /** The log of module `server` for audit lines, which no trace switch holds back. */
  readonly log: ModuleLogger
  /** The logs of modules `monitor` and `metrics`. */
  readonly monitorLog: ModuleLogger
  readonly metricsLog: ModuleLogger
}
