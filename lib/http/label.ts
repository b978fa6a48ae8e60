/**
 * The label of a request in log lines.
 */
import type { LoggedRequest } from '../base/ports.ts'

/** Returns method, path and, in parentheses, the matched route. */
export function label({ method, path, routeName }: LoggedRequest): string {
  return routeName === '' ? `${method} ${path}` : `${method} ${path} (${routeName})`
}
