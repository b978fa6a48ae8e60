/**
 * The routes that the admin panel was asked to keep: `admin.json` in the folder of the route files, an ordinary route
 * file that the server itself writes.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { RoutesUnsavedError } from '../control/commands.ts'
import { parseJson } from '../json/json-map.ts'
import { editFile } from '../storage/edit-file.ts'
import type { RouteRecord } from '../routing/route.ts'

/** The name of the file. */
export const persistedFile = 'admin.json'

/**
 * Writes a record to the file, in place of one of the same name.
 * @param folder `paths.routes`, absolute
 * @throws RoutesUnsavedError when the file cannot be written or is no array of records; it is unchanged then
 */
export function persistRoute(folder: string, record: RouteRecord): void {
  edit(folder, (records) => [...records.filter((other) => nameOf(other) !== record.name), record])
}

/**
 * Removes a record from the file. Returns whether it was there. Throws as `persistRoute` does.
 */
export function forgetRoute(folder: string, name: string): boolean {
  let found = false
  edit(folder, (records) => {
    found = records.some((record) => nameOf(record) === name)
    return found ? records.filter((record) => nameOf(record) !== name) : undefined
  })
  return found
}

/** Changes the records; undefined leaves the file alone. */
function edit(folder: string, change: (records: readonly unknown[]) => readonly unknown[] | undefined): void {
  const path = join(folder, persistedFile)
  try {
    if (change(readRecords(path)) === undefined) return
    editFile(path, (text) => {
      const records = recordsOf(text)
      const changed = change(records) ?? records
      return `[\n${changed.map((record) => `  ${JSON.stringify(record)}`).join(',\n')}\n]\n`
    })
  } catch (error) {
    throw new RoutesUnsavedError((error as Error).message, { cause: error })
  }
}

function readRecords(path: string): readonly unknown[] {
  try {
    return recordsOf(readIfThere(path))
  } catch (error) {
    throw new Error(`Cannot read ${path}: ${(error as Error).message}`, { cause: error })
  }
}

function recordsOf(text: string | undefined): readonly unknown[] {
  if (text === undefined) return []
  const value = parseJson(text)
  if (!Array.isArray(value)) throw new Error('it is no array of route records: mend it or move it away')
  return value
}

function nameOf(record: unknown): unknown {
  return typeof record === 'object' && record !== null && 'name' in record ? record.name : undefined
}

function readIfThere(path: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
