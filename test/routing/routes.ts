import { parsePattern } from '../../lib/routing/pattern.ts'
import type { Route } from '../../lib/routing/route.ts'

/**
 * Makes a route for a test from `'GET,POST /a/:id'`; the default name is the same text. The target is the name.
 */
export function route(text: string, name = text, system = false): Route<string> {
  const [method = '', url = ''] = text.split(' ')
  const record = { name, url, action: 'a.js', method, middleware: '', scope: '' }
  return { record, pattern: parsePattern(url), system, target: name }
}
