/**
 * How a log line names a request.
 */
import type { LoggedRequest } from '../base/ports.ts'

/** Method, path and, in parentheses, the route that answers. */
export function label({ method, path, routeName }: LoggedRequest): string {
  return routeName === '' ? `${method} ${path}` : `${method} ${path} (${routeName})`
}
