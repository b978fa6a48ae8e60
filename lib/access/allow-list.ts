/**
 * `admin.allow`: which clients may reach the paths of the panel. Any other client gets the 404 of a path that does not
 * exist, for every method and for every path that begins with `/svc-`, so that it cannot find out whether there is a
 * panel.
 *
 * Health checks, and the script of live pages, are for everybody.
 */
import { createAddressList } from '../http/address-list.ts'
import type { CoreContext } from '../http/context.ts'
import { isBoundToLoopback } from '../http/host.ts'
import { canonicalPath } from '../routing/pattern.ts'

/** The configuration keys that decide who reaches the panel. */
interface AllowSettings {
  readonly 'admin.allow': readonly string[]
  readonly 'server.host': string
  readonly 'server.trusted_proxies': readonly string[]
}

const prefix = '/svc-'
/** Without a trailing slash. */
const openPaths: ReadonlySet<string> = new Set(['/svc-ping', '/svc-slow', '/svc-ready', '/svc-live.js'])

/**
 * Makes the check of a request.
 * @param allowed addresses and blocks that `checkAddressEntry` accepts
 * @returns whether the path of a request must not exist for its client; undefined if everybody may reach the panel
 */
export function createPanelFilter(
  allowed: readonly string[],
): ((ctx: Pick<CoreContext, 'path' | 'ip'>) => boolean) | undefined {
  if (allowed.length === 0) return undefined
  const isAllowed = createAddressList(allowed)
  return (ctx) => {
    const path = canonicalPath(ctx.path)
    return path.startsWith(prefix) && !openPaths.has(path.replace(/\/$/, '')) && !isAllowed(ctx.ip)
  }
}

/** Returns the warning about a list that nobody can be on; undefined if there is nothing to warn of. */
export function allowWarning(config: AllowSettings): string | undefined {
  const { 'admin.allow': allowed, 'server.host': host, 'server.trusted_proxies': proxies } = config
  if (allowed.length === 0 || proxies.length > 0 || !isBoundToLoopback(host)) return undefined
  const isAllowed = createAddressList(allowed)
  if (isAllowed('127.0.0.1') || isAllowed('::1')) return undefined
  return `admin.allow has no loopback address, and server.host is ${host} without server.trusted_proxies: nobody can `
    + 'reach the panel; add 127.0.0.1 and ::1, or name the proxy in server.trusted_proxies'
}
