/**
 * What every store does with the changes of a request.
 */
import type { FieldChanges, Fields } from './store.ts'

/** Fields with changes made, as a new map; the same when there are none. */
export function applyChanges(fields: Fields, changes: FieldChanges): Fields {
  if (changes.set.size === 0 && changes.removed.size === 0) return fields
  const changed = new Map(fields)
  for (const [name, text] of changes.set) changed.set(name, text)
  for (const name of changes.removed) changed.delete(name)
  return changed
}
