/**
 * The session stores on one machine: in memory, or in files.
 */
import { problemOfFields } from '../session/fields.ts'
import type { SessionStore, StoreSettings } from '../session/store.ts'
import { FileStore } from './file-store.ts'
import { createMemoryStore } from './memory-store.ts'

/**
 * Opens a store. A problem with a folder shows when the store is used.
 * @param onProblem called with messages for the operator
 * @throws Error for the store `data`, which `LocalData` opens
 */
export function openLocalStore(settings: StoreSettings, onProblem: (message: string) => void): SessionStore {
  if (settings.store === 'memory') {
    const { max } = settings
    const full = `the session store is full (setup.session.max is ${max})`
    const onFull = (): void => onProblem(`${full}: from now on the least recently used session is dropped`)
    return createMemoryStore({ max, onFull })
  }
  if (settings.store === 'data') throw new Error('The session store data needs a database')
  return new FileStore({ folder: settings.folder, problemOf: problemOfFields, onProblem })
}
