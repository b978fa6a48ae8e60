/**
 * The cursor of a client: the id of the last event it has seen.
 */
import type { Context } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'

/** A whole number from 0; what is beyond 2^53 is ahead of every id, and so a gap rather than an error. */
const shape = /^\d+$/

/**
 * The query's `since`; undefined when there is none.
 * @throws HttpError 400 `bad_cursor` when it is no whole number from 0, or is there twice
 */
export function readSince(ctx: Context): number | undefined {
  if (ctx.rawQuery === '') return undefined
  // Not `ctx.query`, which would be kept as long as the request waits.
  const values = new URLSearchParams(ctx.rawQuery).getAll('since')
  if (values.length > 1) throw badCursor('The query has "since" more than once: send it once')
  return values[0] === undefined ? undefined : parse('The query\'s "since"', values[0])
}

/**
 * The cursor of a stream: the `Last-Event-ID`, which a browser sends when it connects again, else the query's `since`.
 * @throws HttpError 400 `bad_cursor` as above
 */
export function readLastEventId(ctx: Context): number | undefined {
  const value = ctx.header('last-event-id')
  return value === undefined ? readSince(ctx) : parse('Last-Event-ID', value)
}

function parse(name: string, value: string): number {
  if (!shape.test(value)) throw badCursor(`${name} must be a whole number from 0: it is "${value.slice(0, 40)}"`)
  return Number(value)
}

function badCursor(message: string): HttpError {
  return new HttpError(400, 'bad_cursor', message)
}
