/**
 * The listings of the routes: a table from which routes can be opened, with forms that add, delete and match routes. It
 * has the application's routes, or all; `/svc-index` is the latter, and opens routes with parameters.
 */
import { redirectTo } from '../access/isolated-page.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
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
/** The prefix of a route's parameter in the query of `/svc-index`: `in.id`. */
const parameterPrefix = 'in.'

/**
 * Makes the handlers, by the names of their rows in `table.ts`.
 * @param consequences by name, the effect of opening a route that changes something: the page asks for confirmation
 */
export function createListings(port: ListingsPort, consequences: ReadonlyMap<string, string>) {
  function rowOf({ record, system }: ListedRoute) {
    const pattern = parsePattern(record.url)
    const path = pattern.names.length === 0 ? buildPath(pattern) : ''
    const consequence = consequences.get(record.name) ?? ''
    const query = new URLSearchParams({ record: record.name }).toString()
    return { ...record, system, query, opens: takesGet(record), names: pattern.names, path, consequence }
  }

  const table = (all: boolean): Action => (ctx) => {
    const routes = port.routes().filter((route) => all || !route.system)
    if (asksForJson(ctx)) return ctx.json(search(ctx, routes, textOf).map(({ record }) => record))
    const shown = cut(ctx, search(ctx, applicationFirst(routes), textOf), routes.length, 'route')
    const match = dryMatch(port, ctx)
    const forms = { ...match, ...requestedRecord(routes, ctx), methods: [...new Set([...formMethods, match.method])] }
    const file = ctx.query.has('part') ? 'listings/list-results.html' : 'list.html'
    const rows = shown.items.map(rowOf)
    return panelPage(ctx, port, file, { title: 'Routes', all, filterHint, parameterPrefix, ...shown, rows, ...forms })
  }
  const allRoutes = table(true)
  const index: Action = (ctx) => {
    const name = ctx.query.get('open')
    return name === null ? allRoutes(ctx) : redirectTo(ctx, pathTo(port, port.routes(), name, ctx))
  }

  return {
    /** All routes; with `?open=<name>&in.<parameter>=<value>` it redirects to the route. */
    'svc.index': index,

    /** The application's routes, as a table or with `?format=json`. */
    'svc.routes.list': table(false),

    /** All routes, the application's first, including system routes. */
    'svc.routes.listall': allRoutes,
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

/** The path of a route with the typed parameters. */
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
