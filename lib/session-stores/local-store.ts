/**
 * The session stores of one machine: in memory, or in files.
 */
import { problemOfFields } from '../session/fields.ts'
import type { SessionStore, StorePlace } from '../session/store.ts'
import { FileStore } from './file-store.ts'
import { createMemoryStore } from './memory-store.ts'

/**
 * Opens a store. Throws nothing: a problem with a folder shows when the store is used.
 * @param onProblem called with what the operator should know
 */
export function openLocalStore(place: StorePlace, onProblem: (message: string) => void): SessionStore {
  if (place.store === 'memory') {
    const { max } = place
    const full = `${max} sessions are there, as many as setup.session.max allows`
    return createMemoryStore({ max, onFull: () => onProblem(`${full}: from now on the longest unused one goes`) })
  }
  return new FileStore({ folder: place.folder, problemOf: problemOfFields, onProblem })
}
