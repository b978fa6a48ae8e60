/**
 * Where a state stands in the order of changes.
 */
import { integerIn, textIn, type Reply } from '../redis/reply.ts'

/** The number of the last change, and a random text that it alone has: two states of one number may not be the same. */
export interface Position {
  /** From 0, where nothing was ever changed. */
  readonly seq: number
  readonly stamp: string
}

/** Before the first change. */
export const beginning: Position = { seq: 0, stamp: '' }

/** The position in a script's reply. Throws RedisProtocolError for anything else. */
export function positionIn(seq: Reply | undefined, stamp: Reply | undefined): Position {
  if (seq === null || seq === undefined) return beginning
  return { seq: integerIn(seq), stamp: stamp === null ? '' : textIn(stamp) }
}

/** Whether two are of one state. */
export function isSame(a: Position, b: Position): boolean {
  return a.seq === b.seq && a.stamp === b.stamp
}
