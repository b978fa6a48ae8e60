/**
 * The parts of the server that sign-in, setup and guard use. `panel/table.ts` puts them together.
 */
import type { Change, LogPort } from '../base/ports.ts'
import type { CoreContext } from '../http/context.ts'
import type { RouteRecord } from '../routing/route.ts'
import type { AdminCredentials } from './credentials.ts'

/** The configuration keys that decide who may use the panel. */
interface AdminSettings {
  /** In `dev` the panel asks for no sign-in. */
  readonly 'app.env': string
  readonly 'admin.enabled': boolean
  readonly 'admin.hardened': boolean
  /** Lets programs read the metrics; empty: none. */
  readonly 'admin.metrics_token': string
  /** When a setup asks for the token: `on`, `off`, or `auto`, from elsewhere than this machine. */
  readonly 'admin.setup_token': string
  /** Minutes that a sign-in lasts; 0: no end. */
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
   * @throws ViewError when the page is missing or wrong
   */
  render(file: string, data: Readonly<Record<string, unknown>>, scope: Readonly<Record<string, unknown>>): string
}

/** The optional parts of an audit record. */
export interface AuditDetails extends Pick<Change, 'user' | 'from' | 'to'> {
  /** Completes the line of the general log: `WHAT by ADDRESS: DETAIL`. */
  readonly detail?: string
  /** Whether it failed: within a minute, the same failures of a client are one record that counts. */
  readonly failed?: boolean
}

/** The server, as far as sign-in, setup and guard use it. */
export interface AccessPort {
  readonly config: AdminSettings
  /** The present name, password hash and secret. */
  credentials(): AdminCredentials
  /** Sets the first credentials in all processes of the server. False when there are some already. */
  setUp(user: string, password: string): Promise<boolean>
  /** Makes a secret for all processes of the server when there is none. */
  ensureSecret(): Promise<{ readonly secret: string; readonly made: boolean }>
  /** The one-time token that a setup from elsewhere needs. */
  readonly setupToken: string
  readonly pages: PageRenderer
  /** The route that would answer, or the methods that the path takes. Throws HttpError 400 as a request would. */
  match(method: string, path: string): { readonly record: RouteRecord } | readonly string[]
  /** The log of module `server`. */
  readonly log: LogPort
  /** Writes what a client has changed to the general log and to the audit log. */
  audit(ctx: CoreContext, what: string, details?: AuditDetails): void
}
