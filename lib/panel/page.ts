/**
 * Pages of the panel behind its guard: with the number of errors in the navigation, and the result of the button that
 * led here.
 */
import { MissingRoomError } from '../config/load-room.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import type { Reply } from '../http/reply.ts'
import { page } from '../access/isolated-page.ts'
import type { AdminPort } from './admin-port.ts'
import { takeResult } from './result.ts'

/** The part of the panel's port that every page uses. */
export type PagePort = Pick<AdminPort, 'application' | 'config' | 'pages' | 'errors' | 'jobs'>

/**
 * Replies with a page; its data includes the `result` with the typed fields.
 * @param file relative to `lib/panel/pages`
 * @throws ViewError when the page is missing or wrong
 */
export async function panelPage(
  ctx: CoreContext,
  port: PagePort,
  file: string,
  data: Readonly<Record<string, unknown>> & { readonly title: string },
): Promise<Reply> {
  const errorCount = (await port.errors()).length
  const isWhole = !ctx.query.has('part')
  const result = isWhole ? takeResult(ctx) : undefined
  return page(ctx, port, file, { signedIn: true, errorCount, hasJobs: port.jobs() !== undefined, result, ...data })
}

/** Whether a page is requested as JSON. */
export function asksForJson(ctx: CoreContext): boolean {
  return ctx.query.get('format') === 'json'
}

/**
 * Awaits a part from an optional room.
 * @throws HttpError 404 when the room is missing; any other error unchanged
 */
export async function ofRoom<Part>(part: Promise<Part>): Promise<Part> {
  try {
    return await part
  } catch (error) {
    if (!(error instanceof MissingRoomError)) throw error
    throw new HttpError(404, 'not_found', error.message, { cause: error })
  }
}
