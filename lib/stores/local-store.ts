/**
 * The session stores of one machine: in memory, or in files.
 */
import { problemOfFields } from '../session/fields.ts'
import type { SessionStore, StorePlace, StoreReports } from '../session/store.ts'
import { FileStore } from './file-store.ts'
import { createMemoryStore } from './memory-store.ts'

/** Opens a store. Throws nothing: a problem with a folder shows when the store is used. */
export function openLocalStore(place: StorePlace, { onFull, onProblem }: StoreReports): SessionStore {
  if (place.store === 'memory') return createMemoryStore({ max: place.max, onFull })
  return new FileStore({ folder: place.folder, problemOf: problemOfFields, onProblem })
}
