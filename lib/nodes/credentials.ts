/**
 * Whose credentials a node goes by: its own, where its configuration has them, else those that all nodes share.
 */
import type { SharedAdmin } from './state.ts'

/** What to do with the credentials that a node has of its own and those that are shared. */
export type Judgement =
  /** Nothing: they are the same, or there are none. */
  | 'same'
  /** The node takes the shared ones. */
  | 'take'
  /** The node's own are to be shared. */
  | 'give'
  /** Both are there, and are not the same: the node keeps its own. */
  | 'differ'

/**
 * Compares.
 * @param own those of the configuration; empty texts where it has none
 * @param shared undefined where none are shared
 */
export function judge(own: SharedAdmin, shared: SharedAdmin | undefined): Judgement {
  const hasOwn = own.user !== '' && own.password !== ''
  if (shared === undefined) return hasOwn ? 'give' : 'same'
  if (!hasOwn) return 'take'
  if (own.user !== shared.user || own.password !== shared.password) return 'differ'
  if (own.secret === shared.secret) return 'same'
  if (own.secret === '') return 'take'
  return shared.secret === '' ? 'give' : 'differ'
}
