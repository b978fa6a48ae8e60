/**
 * The stores of one machine: in memory, or in files.
 */
import { problemOfFields } from './fields.ts'
import { createFileStore } from './file-store.ts'
import { createMemoryStore } from './memory-store.ts'
import type { SessionStore } from './store.ts'

/** Which store: one in memory for so many sessions, or the one in a folder, whose path is absolute. */
export type StorePlace =
  | { readonly store: 'memory'; readonly max: number }
  | { readonly store: 'file'; readonly folder: string }

/** Who is told of what happens in a store. */
export interface StoreReports {
  /** A session was dropped to keep the bound of a store in memory, the first time. */
  readonly onFull: () => void
  /** What the operator should know of a store in files. */
  readonly onProblem: (message: string) => void
}

/** Opens a store. Throws nothing: what is wrong with a folder shows when it is used. */
export function openLocalStore(place: StorePlace, { onFull, onProblem }: StoreReports): SessionStore {
  if (place.store === 'memory') return createMemoryStore({ max: place.max, onFull })
  return createFileStore({ folder: place.folder, problemOf: problemOfFields, onProblem })
}
