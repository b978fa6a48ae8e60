/**
 * The listings: the index, from which routes can be opened, and the tables of the routes, with forms that add, delete
 * and match routes.
 *
 * The server filters and divides into pages of at most 200 routes, so everything works without a script. The script of
 * the page only requests the same address while the user types.
 */
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import type { Reply } from '../http/reply.ts'
import type { Action } from '../chain/compose.ts'
import { buildPath, parsePattern, type Pattern } from '../routing/pattern.ts'
import type { RouteRecord } from '../routing/route.ts'
import { asksForJson, panelPage } from './page.ts'
import type { AdminPort, ListedRoute } from './port.ts'
import { explainMatch, type MatchAnswer } from './route-endpoints.ts'

/** The part of the panel's port that the listings use. */
type ListingsPort = Pick<AdminPort, 'config' | 'errors' | 'match' | 'pages' | 'routes'>

/** The most routes on one page. */
const pageSize = 200
/** A filter is cut to this many characters. */
const maxFilterLength = 200
/** The methods that the forms offer. */
const formMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
/** Stands before the name of a route's parameter in the query of the index: `in.id`. */
const parameterPrefix = 'in.'

/**
 * Makes the handlers, by the names of their rows in `table.ts`.
 * @param consequences the effect of opening a route, by its name, for routes that change something: the index asks
 *   first
 */
export function createListings(port: ListingsPort, consequences: ReadonlyMap<string, string>) {
  const table = (title: string, all: boolean): Action => (ctx) => {
    const routes = port.routes().filter((route) => all || !route.system)
    const found = search(routes, filterOf(ctx))
    if (asksForJson(ctx)) return ctx.json(found.map(({ record }) => record))
    const shown = cut(ctx, found, routes.length)
    const rows = shown.routes.map(({ record, system }) => {
      return { ...record, system, query: new URLSearchParams({ record: record.name }).toString() }
    })
    const match = dryMatch(port, ctx)
    const forms = { ...match, ...askedRecord(routes, ctx), methods: [...new Set([...formMethods, match.method])] }
    return panelPage(ctx, port, fileFor(ctx, 'list'), { title, all, ...shown, rows, ...forms })
  }

  return {
    /**
     * All routes, the application's first, with a button for those that take GET. With
     * `?open=<name>&in.<parameter>=<value>` it redirects to the route.
     */
    async 'svc.index'(ctx: CoreContext): Promise<Reply> {
      const routes = applicationFirst(port.routes())
      const name = ctx.query.get('open')
      if (name !== null) return ctx.redirect(pathTo(port, routes, name, ctx.query))
      const shown = cut(ctx, search(routes, filterOf(ctx)), routes.length)
      const rows = shown.routes.map(({ record }) => {
        const pattern = parsePattern(record.url)
        const path = pattern.names.length === 0 ? buildPath(pattern) : ''
        const consequence = consequences.get(record.name) ?? ''
        return { ...record, opens: takesGet(record), names: pattern.names, path, consequence }
      })
      return panelPage(ctx, port, fileFor(ctx, 'index'), { title: 'Index', ...shown, rows, parameterPrefix })
    },

    /** The application's routes, as a table or with `?format=json`. */
    'svc.routes.list': table('Application routes', false),

    /** All routes, those of the system too. */
    'svc.routes.listall': table('All routes', true),
  }
}

/** The dry match that the query asks for, with what was typed; no answer when it asks for none. */
function dryMatch(
  port: ListingsPort,
  ctx: CoreContext,
): { method: string; asked: string; answer: MatchAnswer | undefined } {
  const method = (ctx.query.get('method') ?? 'GET').toUpperCase()
  const asked = ctx.query.get('path') ?? ''
  if (asked === '') return { method, asked, answer: undefined }
  return { method, asked, answer: explainMatch(port.match, method, asked.startsWith('/') ? asked : `/${asked}`) }
}

/** The file of the page, or of its results alone, which the script of the page requests with `?part=`. */
function fileFor(ctx: CoreContext, listing: 'index' | 'list'): string {
  return ctx.query.has('part') ? `listings/${listing}-results.html` : `${listing}.html`
}

function applicationFirst(routes: readonly ListedRoute[]): readonly ListedRoute[] {
  return [...routes].sort((a, b) => Number(a.system) - Number(b.system))
}

function filterOf(ctx: CoreContext): string {
  return (ctx.query.get('q') ?? '').trim().slice(0, maxFilterLength)
}

/** The routes that have every word of the filter in one of their fields, in any case. */
function search(routes: readonly ListedRoute[], filter: string): readonly ListedRoute[] {
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== '')
  if (words.length === 0) return routes
  return routes.filter(({ record: { name, method, url, action, middleware, scope } }) => {
    const text = `${name}\n${method}\n${url}\n${action}\n${middleware}\n${scope}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

/** The routes on the page that the query asks for, and the addresses of the pages beside it; '' where there is none. */
function cut(ctx: CoreContext, found: readonly ListedRoute[], total: number) {
  const filter = filterOf(ctx)
  const last = Math.max(1, Math.ceil(found.length / pageSize))
  const asked = Number(ctx.query.get('page') ?? 1)
  const number = Number.isInteger(asked) ? Math.min(Math.max(asked, 1), last) : 1
  const first = (number - 1) * pageSize
  const routes = found.slice(first, first + pageSize)
  const address = (to: number): string => {
    if (to < 1 || to > last) return ''
    return `${ctx.path}?${new URLSearchParams({ ...(filter !== '' && { q: filter }), page: String(to) })}`
  }
  return {
    routes,
    filter,
    count: countText(found.length, total, filter),
    pageText: last === 1 ? '' : `${first + 1} to ${first + routes.length} of ${found.length}`,
    previous: address(number - 1),
    next: address(number + 1),
  }
}

function countText(found: number, total: number, filter: string): string {
  const routes = total === 1 ? '1 route' : `${total} routes`
  return filter === '' ? routes : `${found} of ${routes}`
}

/** The record that the query asks for, as text for a route file: without what is empty. */
function askedRecord(routes: readonly ListedRoute[], ctx: CoreContext): { recordName: string; record: string } {
  const recordName = ctx.query.get('record') ?? ''
  const found = routes.find(({ record, system }) => !system && record.name.toWellFormed() === recordName)
  const withoutEmpty = (_: string, value: unknown): unknown => (value === '' ? undefined : value)
  return { recordName, record: found === undefined ? '' : JSON.stringify(found.record, withoutEmpty, 2) }
}

function takesGet({ method }: RouteRecord): boolean {
  return method === '*' || method.split(',').includes('GET')
}

/** The path of a route with the parameters that were typed into the index. */
function pathTo(port: ListingsPort, routes: readonly ListedRoute[], name: string, query: URLSearchParams): string {
  const route = routes.find(({ record }) => record.name === name)
  if (route === undefined) refuse(name, ': there is none of that name')
  const pattern = parsePattern(route.record.url)
  const params = Object.create(null) as Record<string, string>
  for (const parameter of pattern.names) params[parameter] = query.get(parameterPrefix + parameter) ?? ''
  // Otherwise a link to the index could hide that it leads to /svc-stop.
  if (pattern.names.length === 0) refuse(name, ' so: it has no parameters')
  const path = builtPath(pattern, params)
  const match = port.match('GET', path)
  if ('record' in match && match.record.name.startsWith('svc.')) refuse(name, ' so: its path would be one of the panel')
  return path
}

function builtPath(pattern: Pattern, params: Readonly<Record<string, string>>): string {
  try {
    return buildPath(pattern, params)
  } catch (error) {
    throw new HttpError(400, 'bad_request', (error as Error).message, { cause: error })
  }
}

function refuse(name: string, reason: string): never {
  throw new HttpError(400, 'bad_request', `Cannot open route ${JSON.stringify(name)}${reason}`)
}
