/**
 * Reads the route files of a folder: every `*.json` directly in it, an array of route records each, in name order.
 *
 * It throws and registers nothing. Good records and problems are returned side by side, since a start leaves out a
 * wrong record, and a reload accepts none. The problem of a file as a whole has `index: null`. Names are compared by
 * UTF-16 code units, so that the order is the same on every machine: `10.json` comes before `2.json`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import type { ReloadProblem } from './commands.ts'
import { parseJson } from '../json/json-map.ts'
import { quote } from '../routing/pattern.ts'
import { parseRecord } from './record.ts'
import type { GoodRecord, RecordRules } from './record.ts'

/** A route file and its good records, each with its index in the file's array, from 0. */
interface RouteFile {
  /** The file's name, without its folder. */
  readonly file: string
  readonly records: readonly (GoodRecord & { readonly index: number })[]
}

/** The content of a folder of route files. A folder that cannot be read is the file of its problem. */
interface RouteFiles {
  readonly files: readonly RouteFile[]
  readonly problems: readonly ReloadProblem[]
  readonly warnings: readonly ReloadProblem[]
  /** Whether the folder is missing, which is no problem by itself: there are no routes then. */
  readonly missing: boolean
}

/**
 * Reads a folder of route files. Folders and files whose name begins with a dot are skipped; a link is followed.
 * @param folder `paths.routes`, absolute
 */
export function readRouteFiles(folder: string, rules: RecordRules): RouteFiles {
  const found = new Findings()
  const missing = !existsSync(folder)
  for (const file of missing ? [] : listFiles(folder, found)) {
    const values = readArray(folder, file, found)
    if (values !== undefined) readRecords(file, values, rules, found)
  }
  return { missing, files: found.files, problems: found.problems, warnings: found.warnings }
}

class Findings {
  readonly files: RouteFile[] = []
  readonly problems: ReloadProblem[] = []
  readonly warnings: ReloadProblem[] = []
  /** Where each name was first given. */
  readonly places = new Map<string, { readonly file: string; readonly index: number }>()

  refuseFile(file: string, error: string): void {
    this.problems.push({ file, index: null, name: '', error })
  }
}

function listFiles(folder: string, found: Findings): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.name.endsWith('.json') && !entry.name.startsWith('.') && !entry.isDirectory())
      .map((entry) => entry.name)
      .sort()
  } catch (error) {
    found.refuseFile(folder, `the folder of route files cannot be read: ${reasonOf(error)}: check paths.routes`)
    return []
  }
}

function readArray(folder: string, file: string, found: Findings): readonly unknown[] | undefined {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(join(folder, file)))
  } catch (error) {
    const wrongEncoding = error instanceof TypeError
    const problem = wrongEncoding ? 'is not UTF-8 text: save it as UTF-8' : `cannot be read: ${reasonOf(error)}`
    found.refuseFile(file, `the file ${problem}`)
    return undefined
  }
  if (text.trim() === '') {
    found.refuseFile(file, 'the file is empty: write [] for no routes')
    return undefined
  }
  try {
    const value = parseJson(text)
    if (Array.isArray(value)) return value
    found.refuseFile(file, 'a route file is a JSON array of route records: put [ and ] around them')
  } catch (error) {
    found.refuseFile(file, reasonOf(error))
  }
  return undefined
}

function readRecords(file: string, values: readonly unknown[], rules: RecordRules, found: Findings): void {
  const records: RouteFile['records'][number][] = []
  for (const [index, value] of values.entries()) {
    const parsed = parseRecord(value, rules)
    if (!('record' in parsed)) {
      for (const error of parsed.problems) found.problems.push({ file, index, name: parsed.name, error })
      continue
    }
    const { name } = parsed.record
    const place = found.places.get(name)
    if (place !== undefined) {
      const taken = `name ${quote(name)} is taken by ${place.file}, index ${place.index}: names are unique`
      found.problems.push({ file, index, name, error: taken })
      continue
    }
    found.places.set(name, { file, index })
    const { record, pattern, warnings } = parsed
    records.push({ index, record, pattern, warnings })
    for (const error of warnings) found.warnings.push({ file, index, name, error })
  }
  found.files.push({ file, records })
}
