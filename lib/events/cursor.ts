/**
 * The cursor of a client: the id of the last event it has seen.
 */
import type { CoreContext as Context } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'

/** A whole number from 0. */
const shape = /^\d+$/

/** Where a stream begins. */
export interface StreamStart {
  /** The last event that the client has; undefined: only new events are sent. */
  readonly cursor: number | undefined
  /** Whether the client has lost its place: its `Last-Event-ID` is none of ours. It is told of a gap. */
  readonly isLost: boolean
}

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
 * Where a stream begins: behind the `Last-Event-ID`, which a browser sends when it connects again, else behind the
 * query's `since`. A `Last-Event-ID` that is no whole number from 0 is passed over: refused, it would end an
 * EventSource for good.
 * @throws HttpError 400 `bad_cursor` for a wrong `since`
 */
export function readStreamStart(ctx: Context): StreamStart {
  const id = ctx.header('last-event-id')
  if (id !== undefined && shape.test(id)) return { cursor: numberOf(id), isLost: false }
  return { cursor: readSince(ctx), isLost: id !== undefined }
}

function parse(name: string, value: string): number {
  if (!shape.test(value)) throw badCursor(`${name} must be a whole number from 0: it is "${value.slice(0, 40)}"`)
  return numberOf(value)
}

/**
 * What is beyond 2^53 is ahead of every id: a gap. The number goes back to the client, so it must be one that JSON
 * holds.
 */
function numberOf(digits: string): number {
  return Math.min(Number(digits), Number.MAX_SAFE_INTEGER)
}

function badCursor(message: string): HttpError {
  return new HttpError(400, 'bad_cursor', message)
}
