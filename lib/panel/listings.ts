/**
 * The listings: the index, from which routes can be opened, and the tables of the routes, with forms that add, delete
 * and match routes.
 */
import { redirectTo } from '../access/isolated-page.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import type { Reply } from '../http/reply.ts'
import type { Action } from '../chain/compose.ts'
import { buildPath, parsePattern, type Pattern } from '../routing/pattern.ts'
import type { RouteRecord } from '../routing/route.ts'
import { asksForJson, panelPage, type PagePort } from './page.ts'
import { cut, search } from './paging.ts'
import type { AdminPort, ListedRoute } from './admin-port.ts'
import { explainMatch, type MatchAnswer } from './route-endpoints.ts'

/** The part of the panel's port that the listings use. */
type ListingsPort = PagePort & Pick<AdminPort, 'match' | 'routes'>

/** The text in the empty filter. */
const filterHint = 'name, pattern, action'
/** The methods that the forms offer. */
const formMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
/** The prefix of a route's parameter in the query of the index: `in.id`. */
const parameterPrefix = 'in.'

/**
 * Makes the handlers, by the names of their rows in `table.ts`.
 * @param consequences by name, the effect of opening a route that changes something: the index asks for confirmation
 */
export function createListings(port: ListingsPort, consequences: ReadonlyMap<string, string>) {
  const table = (title: string, all: boolean): Action => (ctx) => {
    const routes = port.routes().filter((route) => all || !route.system)
    const found = search(ctx, routes, textOf)
    if (asksForJson(ctx)) return ctx.json(found.map(({ record }) => record))
    const shown = cut(ctx, found, routes.length, 'route')
    const rows = shown.items.map(({ record, system }) => {
      return { ...record, system, query: new URLSearchParams({ record: record.name }).toString() }
    })
    const match = dryMatch(port, ctx)
    const forms = { ...match, ...requestedRecord(routes, ctx), methods: [...new Set([...formMethods, match.method])] }
    return panelPage(ctx, port, fileFor(ctx, 'list'), { title, all, filterHint, ...shown, rows, ...forms })
  }

  return {
    /**
     * All routes, the application's first, with a button for those that take GET. With
     * `?open=<name>&in.<parameter>=<value>` it redirects to the route.
     */
    async 'svc.index'(ctx: CoreContext): Promise<Reply> {
      const routes = applicationFirst(port.routes())
      const name = ctx.query.get('open')
      if (name !== null) return redirectTo(ctx, pathTo(port, routes, name, ctx))
      const shown = cut(ctx, search(ctx, routes, textOf), routes.length, 'route')
      const rows = shown.items.map(({ record }) => {
        const pattern = parsePattern(record.url)
        const path = pattern.names.length === 0 ? buildPath(pattern) : ''
        const consequence = consequences.get(record.name) ?? ''
        return { ...record, opens: takesGet(record), names: pattern.names, path, consequence }
      })
      const data = { title: 'Index', filterHint, ...shown, rows, parameterPrefix }
      return panelPage(ctx, port, fileFor(ctx, 'index'), data)
    },

    /** The application's routes, as a table or with `?format=json`. */
    'svc.routes.list': table('Application routes', false),

    /** All routes, including system routes. */
    'svc.routes.listall': table('All routes', true),
  }
}

/** The dry match requested by the query, with the typed values; without a path, there is no answer. */
function dryMatch(
  port: ListingsPort,
  ctx: CoreContext,
): { method: string; asked: string; answer: MatchAnswer | undefined } {
  const method = (ctx.query.get('method') ?? 'GET').toUpperCase()
  const asked = ctx.query.get('path') ?? ''
  if (asked === '') return { method, asked, answer: undefined }
  return { method, asked, answer: explainMatch(port.match, method, asked.startsWith('/') ? asked : `/${asked}`) }
}

/** The file of the page, or of its results only, which the page's script requests with `?part=`. */
function fileFor(ctx: CoreContext, listing: 'index' | 'list'): string {
  return ctx.query.has('part') ? `listings/${listing}-results.html` : `${listing}.html`
}

function applicationFirst(routes: readonly ListedRoute[]): readonly ListedRoute[] {
  return [...routes].sort((a, b) => Number(a.system) - Number(b.system))
}

/** The fields that the filter searches. */
function textOf({ record: { name, method, url, action, middleware, scope } }: ListedRoute): string {
  return `${name}\n${method}\n${url}\n${action}\n${middleware}\n${scope}`
}

/** The record requested by the query, as text for a route file, without empty fields. */
function requestedRecord(routes: readonly ListedRoute[], ctx: CoreContext): { recordName: string; record: string } {
  const recordName = ctx.query.get('record') ?? ''
  const found = routes.find(({ record, system }) => !system && record.name.toWellFormed() === recordName)
  const withoutEmpty = (_: string, value: unknown): unknown => (value === '' ? undefined : value)
  return { recordName, record: found === undefined ? '' : JSON.stringify(found.record, withoutEmpty, 2) }
}

function takesGet({ method }: RouteRecord): boolean {
  return method === '*' || method.split(',').includes('GET')
}

/** The path of a route with the parameters typed into the index. */
function pathTo(port: ListingsPort, routes: readonly ListedRoute[], name: string, ctx: CoreContext): string {
  const route = routes.find(({ record }) => record.name === name)
  if (route === undefined) refuse(name, ': there is no route of this name')
  const pattern = parsePattern(route.record.url)
  const params = Object.create(null) as Record<string, string>
  for (const parameter of pattern.names) params[parameter] = ctx.query.get(parameterPrefix + parameter) ?? ''
  // Otherwise a link to the index could disguise a link to /svc-stop.
  if (pattern.names.length === 0) refuse(name, ' this way: it has no parameters')
  const path = builtPath(pattern, params)
  const match = port.match('GET', ctx.withoutPrefix(path))
  if ('record' in match && match.record.name.startsWith('svc.')) refuse(name, ' this way: its path is a panel path')
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
