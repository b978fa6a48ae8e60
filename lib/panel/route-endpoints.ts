/**
 * Routes at run time: add, delete, reload, preview of a reload, and the dry match.
 */
import { ReloadError, RouteRefusedError, RoutesUnsavedError, type ReloadProblem } from '../control/commands.ts'
import type { CoreContext } from '../http/context.ts'
import { isHttpError } from '../http/errors.ts'
import type { Reply } from '../http/reply.ts'
import type { RouteRecord } from '../routing/route.ts'
import { readObject, refuse } from './json-body.ts'
import { asksForJson, panelPage } from './page.ts'
import type { AdminPort } from './admin-port.ts'

/** A problem as in the response: with the position in the text. */
function withPlace({ line, column, ...problem }: ReloadProblem): ReloadProblem {
  return line === undefined ? problem : { ...problem, error: `${problem.error} (line ${line}, column ${column})` }
}

/** Makes the handlers, by the names of their rows in `table.ts`. */
export function createRouteEndpoints(port: AdminPort) {
  const { audit, control, match, routes, log } = port
  function unsaved(ctx: CoreContext, error: RoutesUnsavedError, name: string): Reply {
    log.error(error.message, { request: ctx })
    return refuse(ctx, 500, error.message, { name })
  }

  return {
    /** Registers the route of the body; `persist: true` also writes it to the route files. */
    async 'svc.routes.add'(ctx: CoreContext): Promise<Reply> {
      const body = await readObject(ctx)
      if ('refusal' in body) return body.refusal
      const { persist = false, ...record } = body.value
      const name = typeof record['name'] === 'string' ? record['name'] : ''
      if (typeof persist !== 'boolean') {
        return refuse(ctx, 409, `persist must be true or false: it is ${JSON.stringify(persist)}`, { name })
      }
      try {
        const { warnings } = await control.apply({ type: 'routes.add', record, persist })
        const detail = `${JSON.stringify(record)}${persist ? ', persisted' : ''}`
        audit(ctx, `route "${name}" added`, { detail, to: persist ? { ...record, persist } : record })
        return ctx.json({ ok: true, name, ...(warnings.length > 0 && { warning: warnings.join('; ') }) })
      } catch (error) {
        if (error instanceof RoutesUnsavedError) return unsaved(ctx, error, name)
        if (!(error instanceof RouteRefusedError)) throw error
        if (error.reserved) return refuse(ctx, 400, error.message)
        return refuse(ctx, 409, error.message, { name: error.routeName })
      }
    },

    /** Removes the route that the body names. */
    async 'svc.routes.delete'(ctx: CoreContext): Promise<Reply> {
      const body = await readObject(ctx)
      if ('refusal' in body) return body.refusal
      const { name } = body.value
      if (typeof name !== 'string' || name === '') {
        return refuse(ctx, 400, 'name is missing: it must be the name of a route')
      }
      if (name.startsWith('svc.')) return refuse(ctx, 400, `"${name}" is a system route: it cannot be removed`)
      const before = routes().find(({ record }) => record.name === name)
      const was = before === undefined ? 'it was only in admin.json' : `it was ${JSON.stringify(before.record)}`
      try {
        const { deleted } = await control.apply({ type: 'routes.delete', name })
        const detail = deleted ? was : 'it did not exist'
        audit(ctx, `route "${name}" deleted`, { detail, ...(deleted && { from: before?.record }) })
        return ctx.json({ ok: true, name })
      } catch (error) {
        if (!(error instanceof RoutesUnsavedError)) throw error
        return unsaved(ctx, error, name)
      }
    },

    /** Reads the route files again. */
    async 'svc.routes.reload'(ctx: CoreContext): Promise<Reply> {
      try {
        const result = await control.apply({ type: 'routes.reload' })
        const { totalDeleted, totalLoaded, added, removed, changed, warnings } = result
        const detail = `${totalDeleted} removed, ${totalLoaded} loaded`
        audit(ctx, 'routes reloaded', { detail, to: { added, removed, changed } })
        return ctx.json({
          ok: true,
          total_deleted: totalDeleted,
          total_loaded: totalLoaded,
          added,
          removed,
          changed,
          ...(warnings.length > 0 && { warnings }),
        })
      } catch (error) {
        if (!(error instanceof ReloadError)) throw error
        log.warn(`reload by ${ctx.ip} refused: ${error.message}`, { request: ctx })
        port.auditLog.record({ by: ctx.ip, what: 'reload refused', to: error.message })
        return refuse(ctx, 409, error.message, { errors: error.problems.map(withPlace) })
      }
    },

    /** Reports which route would answer `?method=&path=`, with its parameters, or why none would. */
    'svc.routes.match'(ctx: CoreContext): Reply {
      const method = (ctx.query.get('method') ?? 'GET').toUpperCase()
      const path = ctx.query.get('path') ?? ''
      if (!path.startsWith('/')) return refuse(ctx, 400, `path must begin with /: it is ${JSON.stringify(path)}`)
      return ctx.json({ ok: true, ...explainMatch(match, method, path) })
    },

    /** What a reload would change, as a page or as JSON, or why it would be refused. */
    async 'svc.routes.diff'(ctx: CoreContext): Promise<Reply> {
      const { added, removed, changed, problems } = await port.preview()
      const errors = problems.map(withPlace)
      if (!asksForJson(ctx)) {
        const data = { title: 'What a reload would change', added, removed, changed, errors }
        return panelPage(ctx, port, 'diff.html', data)
      }
      const names = (records: readonly RouteRecord[]): string[] => records.map(({ name }) => name)
      return ctx.json({
        ok: errors.length === 0,
        added: names(added),
        removed: names(removed),
        changed: names(changed.map(({ to }) => to)),
        ...(errors.length > 0 && { errors }),
      })
    },
  }
}

/** The answer to a dry match. */
export type MatchAnswer =
  | { readonly matched: true; readonly route: RouteRecord; readonly params: Readonly<Record<string, string>> }
  | { readonly matched: false; readonly status: number; readonly reason: string; readonly allow?: readonly string[] }

/**
 * Returns which route would answer, or why none would.
 * @param method in upper case
 * @param path begins with `/`; a query is ignored
 */
export function explainMatch(match: AdminPort['match'], method: string, path: string): MatchAnswer {
  let found: ReturnType<AdminPort['match']>
  try {
    found = match(method, path.replace(/\?.*$/s, ''))
  } catch (error) {
    if (!isHttpError(error)) throw error
    return { matched: false, status: error.status, reason: error.message }
  }
  if ('record' in found) return { matched: true, route: found.record, params: found.params }
  const allow = [...found]
  if (allow.length === 0) return { matched: false, status: 404, reason: 'no pattern matches the path' }
  const status = method === 'OPTIONS' ? 204 : 405
  return { matched: false, status, reason: `the path takes ${allow.join(', ')}`, allow }
}
