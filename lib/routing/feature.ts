/**
 * The context member of routing: `url(name, params)`, the path of a named route.
 */
import type { Feature } from '../http/features.ts'
import { buildPath } from './pattern.ts'
import type { Registry } from './registry.ts'

/**
 * Makes the feature for a server's routes. `url` percent-encodes the parameters; it throws an Error when no route has
 * the name, or a parameter is missing.
 */
export function routingFeature(registry: Registry<unknown>): Feature {
  const url = (name: string, params: Readonly<Record<string, string | number>> = {}): string => {
    const route = registry.get(name)
    if (route === undefined) throw new Error(`Cannot make the path of route "${name}": no route has that name`)
    return buildPath(route.pattern, params)
  }
  return { name: 'routing', members: [{ name: 'url', inViews: 'name', make: () => url }] }
}
