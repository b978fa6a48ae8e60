/**
 * The context member `url(name, params)`, which builds the path of a named route, with the prefix of the request.
 */
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import { buildPath } from './pattern.ts'
import type { Registry } from './registry.ts'
import type { UrlBuilder } from './route.ts'

/**
 * Makes the builder for the routes of a server. It throws an Error if the route does not exist, and a TypeError if the
 * parameters are not those of its pattern.
 * @param prefix precedes the path
 */
export function createUrlBuilder(registry: Pick<Registry<unknown>, 'get'>, prefix = ''): UrlBuilder {
  return (name, params = {}) => {
    const route = registry.get(name)
    if (route === undefined) throw new Error(`Cannot build the path of route "${name}": no route has that name`)
    return prefix + buildPath(route.pattern, params)
  }
}

/** Makes the feature for the routes of a server. */
export function routingFeature(registry: Pick<Registry<unknown>, 'get'>): Feature {
  const plain = createUrlBuilder(registry)
  const make = ({ prefix }: CoreContext): UrlBuilder => (prefix === '' ? plain : createUrlBuilder(registry, prefix))
  return { name: 'routing', members: [{ name: 'url', inViews: 'name', make }] }
}
