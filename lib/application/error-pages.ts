/**
 * Error pages: the application's pages are views in `paths.errors`, by status. If a page fails, the error is logged
 * once, and the built-in page is sent until the file changes.
 */
import { join, relative } from 'node:path'
import type { CoreContext } from '../http/context.ts'
import type { ErrorPage, PageForError } from '../http/error-reply.ts'
import { STATUS_CODES } from '../http/node-http.ts'
import type { ProtectionMembers } from '../protection/protection.ts'
import { formHelpers } from '../validation/form.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Views } from '../views/cache.ts'
import { versionOf } from '../views/view-files.ts'

type ErrorData = Readonly<Record<string, unknown>>

const noErrors = { errors: {}, input: {} }

/**
 * Creates the function that renders the view of an error: `404.html`, else `4xx.html`, else `error.html`.
 * @param folder `paths.errors`, absolute
 * @param root `paths.root`, absolute
 * @param log of module `error`
 */
export function createErrorPages(folder: string, root: string, views: Views, log: ModuleLogger): PageForError {
  /** The versions of the files that failed, by path. */
  const failed = new Map<string, string>()

  /** @returns undefined for a missing file, null for one that has failed */
  function render(path: string, ctx: CoreContext, data: ErrorData): ErrorPage | undefined | null {
    let version = ''
    try {
      const found = versionOf(path)
      if (found === undefined) return undefined
      version = JSON.stringify(found)
      if (failed.get(path) === version) return null
      const html = views.render(relative(root, path), data, {})
      failed.delete(path)
      return { html }
    } catch (error) {
      if (failed.get(path) === version) return null
      failed.set(path, version)
      const what = `Cannot show the error page ${relative(root, path)}`
      log.error(`${what}; the built-in page is shown until it changes`, { thrown: error, request: ctx })
      return null
    }
  }

  return (ctx, { status, code, invalid = noErrors }, detail = '') => {
    if (ctx.isOfPanel || code === 'overloaded') return undefined
    const data = {
      status,
      code,
      title: STATUS_CODES[status] ?? 'Error',
      detail,
      get id() {
        return ctx.id // Created, and sent back, only if a page uses it.
      },
      get csp_nonce() {
        return (ctx as CoreContext & ProtectionMembers).cspNonce // Every context of a server has it.
      },
      ...invalid,
      ...formHelpers(() => invalid),
    }
    for (const name of [status, status < 500 ? '4xx' : '5xx', 'error']) {
      const page = render(join(folder, `${name}.html`), ctx, data)
      if (page !== undefined) return page ?? undefined
    }
    return undefined
  }
}
