/**
 * Reads the JSON files of a folder that contain records, of routes or of jobs: every `*.json` directly in it, in name
 * order. Collects their problems with positions, and throws for none of them.
 *
 * Names are sorted by UTF-16 code units, so that the order is the same on every machine: `10.json` comes before
 * `2.json`.
 */
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { didYouMean } from '../base/nearest.ts'
import { reasonOf } from '../base/reason.ts'
import type { ReloadProblem } from '../control/commands.ts'
import type { JsonNode } from '../json/json-map.ts'
import { readJsonFile, type JsonFile } from '../json/read-json.ts'
import { quote } from '../routing/pattern.ts'

/** A line and a column, both from 1; empty if unknown. */
type FilePlace = Pick<ReloadProblem, 'line' | 'column'>

/** What is wrong with the files of a folder, and where their records are. */
export class RecordFiles {
  readonly problems: ReloadProblem[] = []
  readonly warnings: ReloadProblem[] = []
  /** Whether the folder is missing. */
  readonly missing: boolean
  readonly #folder: string
  /** Job files are named with their folder, since a route file may have the same name. */
  readonly #prefix: string
  /** What the records are: the name of the list in a file that is an object, and the key of the folder. */
  readonly #kind: 'routes' | 'jobs'
  /** Where each name was first given. */
  readonly #places = new Map<string, { readonly file: string; readonly index: number }>()
  readonly #texts = new Map<string, Pick<JsonFile, 'root' | 'placeOf'>>()

  /** @param folder absolute */
  constructor(folder: string, kind: 'routes' | 'jobs') {
    this.#folder = folder
    this.#kind = kind
    this.#prefix = kind === 'routes' ? '' : `${basename(folder)}/`
    this.missing = !existsSync(folder)
  }

  /** The names of the files. Folders and files whose name begins with a dot are skipped; a link is followed. */
  list(): string[] {
    if (this.missing) return []
    try {
      return readdirSync(this.#folder, { withFileTypes: true })
        .filter((entry) => entry.name.endsWith('.json') && !entry.name.startsWith('.') && !entry.isDirectory())
        .map((entry) => `${this.#prefix}${entry.name}`)
        .sort()
    } catch (error) {
      const folder = `the folder of ${this.#kind.slice(0, -1)} files`
      this.refuseFile(this.#folder, `${folder} cannot be read: ${reasonOf(error)}: check paths.${this.#kind}`)
      return []
    }
  }

  /** Reads a file. Returns undefined, with a problem, when it cannot be read. */
  read(file: string): unknown {
    try {
      const base = this.#prefix === '' ? this.#folder : dirname(this.#folder)
      const read = readJsonFile(join(base, file), `[] for no ${this.#kind}`)
      if (read === undefined) throw new Error('there is no such file')
      this.#texts.set(file, read)
      return read.value
    } catch (error) {
      this.refuseFile(file, reasonOf(error))
      return undefined
    }
  }

  /** Adds a problem with a file as a whole. */
  refuseFile(file: string, error: string): void {
    this.problems.push({ file, index: null, name: '', error })
  }

  /** Takes the name of a record. Returns false, with a problem, when another record has it. */
  takeName(file: string, index: number, name: string): boolean {
    const place = this.#places.get(name)
    if (place === undefined) {
      this.#places.set(name, { file, index })
      return true
    }
    const taken = `name ${quote(name)} is taken by ${place.file}, index ${place.index}: names are unique`
    this.note(this.problems, { file, index, name, error: taken })
    return false
  }

  /**
   * Adds a problem or warning with the position of its field.
   * @param error begins with the name of the field that it is about
   */
  note(list: ReloadProblem[], problem: Omit<ReloadProblem, 'line' | 'column'> & { readonly index: number }): void {
    const { file, index, error } = problem
    const field = error.startsWith('bad pattern') ? 'url' : (/^(?:field )?"?(\w+)/.exec(error)?.[1] ?? '')
    list.push({ ...problem, ...this.placeOf(file, index, field) })
  }

  /** Returns the position of a field of a record, or of the record if it lacks the field. */
  placeOf(file: string, index: number, field: string): FilePlace {
    const found = this.#texts.get(file)
    if (found === undefined) return {}
    const { root, placeOf } = found
    const member = (node: JsonNode | undefined, name: string) => node?.members?.find((one) => one.name === name)
    const record = (root.items ?? member(root, this.#kind)?.value.items)?.[index]
    const alias = field === 'url' ? 'pattern' : field
    const given = member(record, field) ?? member(record, alias) ?? member(member(root, 'defaults')?.value, field)
    const start = given?.start ?? record?.start
    return start === undefined ? {} : placeOf(start)
  }
}

/** Returns the message for a member that a file or an object in it must not have. */
export function unknownMember(where: string, name: string, known: readonly string[]): string {
  return `${where} has an unknown member ${quote(name)}${didYouMean(name, known, quote)}`
}
