/**
 * The parts of the server that sign-in, setup and guard use. `panel/table.ts` assembles them.
 */
import type { Change, LogPort } from '../base/ports.ts'
import type { CoreContext } from '../http/context.ts'
import type { RouteRecord } from '../routing/route.ts'
import type { AdminCredentials } from './credentials.ts'
import type { CodeToUse } from './used-codes.ts'

/** The configuration keys that control access to the panel. */
interface AdminSettings {
  /** In `dev` the panel requires no sign-in. */
  readonly 'app.env': string
  readonly 'admin.enabled': boolean
  readonly 'admin.hardened': boolean
  /** Lets programs read the metrics; empty: disabled. */
  readonly 'admin.metrics_token': string
  /** When a setup requires the token: `on`, `off`, or `auto`: from other machines. */
  readonly 'admin.setup_token': string
  /** Minutes that a sign-in lasts; 0: unlimited. */
  readonly 'session.lifetime': number
  readonly 'server.host': string
  readonly 'server.allowed_hosts': readonly string[]
  readonly 'server.trusted_origins': readonly string[]
}

/** Renders the pages of the panel; `views/` implements it. */
interface PageRenderer {
  /**
   * @param file relative to `lib/panel/pages`
   * @param data the values of the names in the page
   * @param scope more names; the panel has none
   * @throws ViewError if the page is missing or invalid
   */
  render(file: string, data: Readonly<Record<string, unknown>>, scope: Readonly<Record<string, unknown>>): string
}

/** The optional parts of an audit record. */
export interface AuditDetails extends Pick<Change, 'user' | 'from' | 'to'> {
  /** Completes the line in the general log: `WHAT by ADDRESS: DETAIL`. */
  readonly detail?: string
  /** Whether it failed: within a minute, equal failures of a client are one record with a count. */
  readonly failed?: boolean
}

/** The parts of the server that sign-in, setup and guard use. */
export interface AccessPort {
  readonly config: AdminSettings
  /** Returns the current name, password hash, secret and second factor. */
  credentials(): AdminCredentials
  /** Sets the first credentials in all processes of the server. Returns false if there are some already. */
  setUp(user: string, password: string): Promise<boolean>
  /** Makes a secret for all processes of the server if there is none. */
  ensureSecret(): Promise<{ readonly secret: string; readonly made: boolean }>
  /**
   * Uses a code of the second factor, or a recovery code, in all processes and nodes. `accepted` is false if it was
   * used before; `left` counts the recovery codes that were not. Rejects with HttpError 503 while a shared engine is
   * away.
   */
  useCode(code: CodeToUse): Promise<{ readonly accepted: boolean; readonly left: number }>
  /** The one-time token that a setup from another machine requires. */
  readonly setupToken: string
  /** The name of the application, for those who are signed in. */
  readonly application: string
  readonly pages: PageRenderer
  /** Returns the matching route, or the allowed methods of the path. Throws HttpError 400 as a request would. */
  match(method: string, path: string): { readonly record: RouteRecord } | readonly string[]
  /** The log of module `server`. */
  readonly log: LogPort
  /** Records a client's change in the general log and in the audit log. */
  audit(ctx: CoreContext, what: string, details?: AuditDetails): void
}
