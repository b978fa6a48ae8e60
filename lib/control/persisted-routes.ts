/**
 * The routes added with `persist`: `admin.json` in the folder of the route files, an ordinary route file that the
 * server itself writes.
 */
import { join } from 'node:path'
import { RoutesUnsavedError } from './commands.ts'
import { readJson } from '../json/json-map.ts'
import { readJsonFile } from '../json/read-json.ts'
import { editFile } from '../files/edit-file.ts'
import type { RouteRecord } from '../routing/route.ts'

/** The name of the file. */
export const persistedFile = 'admin.json'

/** A change of the file: a record to keep, replacing one of the same name, or a name to remove. */
export type RouteFileChange = { readonly keep: RouteRecord } | { readonly forget: string }

/**
 * Changes the file.
 * @param folder `paths.routes`, absolute
 * @returns a function that undoes the change, and throws the same errors
 * @throws RoutesUnsavedError when the file cannot be read or written, or is not an array; it is then unchanged
 */
export function changeRouteFile(folder: string, change: RouteFileChange): () => void {
  const path = join(folder, persistedFile)
  const name = 'keep' in change ? change.keep.name : change.forget
  return orUnsaved(() => {
    const before = readRecords(path).filter((record) => nameOf(record) === name)
    if ('forget' in change && before.length === 0) return () => {}
    replace('keep' in change ? [change.keep] : [])
    return () => orUnsaved(() => replace(before))
  })

  /** Replaces the records of the name with others, at the end of the file. */
  function replace(records: readonly unknown[]): void {
    editFile(path, (text) => {
      const present = text === undefined ? [] : listOf(readJson(text).value)
      const all = [...present.filter((record) => nameOf(record) !== name), ...records]
      return `[\n${all.map((record) => `  ${JSON.stringify(record)}`).join(',\n')}\n]\n`
    })
  }
}

/**
 * Whether the file has a record of a name.
 * @throws RoutesUnsavedError when it cannot be read
 */
export function isPersisted(folder: string, name: string): boolean {
  return orUnsaved(() => readRecords(join(folder, persistedFile)).some((record) => nameOf(record) === name))
}

function orUnsaved<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw new RoutesUnsavedError((error as Error).message, { cause: error })
  }
}

function readRecords(path: string): readonly unknown[] {
  try {
    const found = readJsonFile(path, '[] for no routes')
    return found === undefined ? [] : listOf(found.value)
  } catch (error) {
    throw new Error(`Cannot load ${path}: ${(error as Error).message}`, { cause: error })
  }
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('it is not an array of route records: correct it or move it away')
  return value
}

function nameOf(record: unknown): unknown {
  return typeof record === 'object' && record !== null && 'name' in record ? record.name : undefined
}
