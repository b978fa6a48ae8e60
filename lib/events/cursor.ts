/**
 * The cursor of a client: the id of the last event that it has.
 */
import type { CoreContext as Context } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'

/**
 * Parses the cursor that a client has sent, a string or a number; undefined for anything but a whole number from 0. A
 * cursor beyond 2^53 is ahead of every id, which is a gap. It is sent back, so it is clamped to what JSON can hold.
 */
export function cursorOf(value: unknown): number | undefined {
  const id = typeof value === 'string' && /^\d+$/.test(value) ? Math.min(Number(value), Number.MAX_SAFE_INTEGER) : value
  return Number.isSafeInteger(id) && (id as number) >= 0 ? (id as number) : undefined
}

/**
 * Reads `since` from the query; undefined when it is missing.
 * @throws HttpError 400 `bad_cursor` when it is not a whole number from 0, or occurs twice
 */
export function readSince(ctx: Context): number | undefined {
  if (ctx.rawQuery === '') return undefined
  // `ctx.query` would stay in memory while the request waits.
  const [value, ...more] = new URLSearchParams(ctx.rawQuery).getAll('since')
  if (more.length > 0) throw badCursor('The query has "since" more than once: send it once')
  if (value === undefined) return undefined
  const cursor = cursorOf(value)
  if (cursor !== undefined) return cursor
  throw badCursor(`The query's "since" must be a whole number from 0: it is "${value.slice(0, 40)}"`)
}

/**
 * Reads the start of a stream: `Last-Event-ID`, which a browser sends when it connects again, or `lastEventId` of the
 * query, which polyfills that cannot set the field send in place of it; else the query's `since`. A last id that is not
 * a whole number from 0 is ignored: an error would stop an EventSource permanently.
 * @returns `cursor` undefined: send new events only; `isLost`: the last id was ignored, tell the client of a
 *   gap
 * @throws HttpError 400 `bad_cursor` for a wrong `since`
 */
export function readStreamStart(ctx: Context): { readonly cursor: number | undefined; readonly isLost: boolean } {
  const id = ctx.header('last-event-id') ?? lastEventIdOf(ctx.rawQuery)
  const cursor = cursorOf(id)
  if (cursor !== undefined) return { cursor, isLost: false }
  return { cursor: readSince(ctx), isLost: id !== undefined }
}

function lastEventIdOf(query: string): string | undefined {
  return query === '' ? undefined : (new URLSearchParams(query).get('lastEventId') ?? undefined)
}

function badCursor(message: string): HttpError {
  return new HttpError(400, 'bad_cursor', message)
}
