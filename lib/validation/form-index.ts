/**
 * The names of a form, indexed for its schema: one look-up finds the values, files or rows of a path. Scanning all
 * names for each path would take quadratic time, and the client chooses the number of names.
 *
 * Names with the same prefix are adjacent in a sorted list, so the names below a path are one range of it.
 */
import type { Form, FormFile } from '../http/form.ts'

/** The number of a row: the text after `lines.` in `lines.0.name`. */
const rowNumber = /^(?:0|[1-9]\d{0,5})(?=\.|$)/

/** A form, as the kinds of fields search it. Each index is built on first use. */
export class FormIndex {
  readonly #form: Form
  #names: readonly string[] | undefined
  #filesByName: ReadonlyMap<string, readonly FormFile[]> | undefined
  #files: ReadonlySet<unknown> | undefined

  constructor(form: Form) {
    this.#form = form
  }

  /** Returns the values of a name in the order sent; undefined when it was not sent. */
  valuesOf(name: string): readonly string[] | undefined {
    return this.#form.valuesOf(name)
  }

  /** Returns the files of a name in the order sent; an empty list when it was not sent. */
  filesOf(name: string): readonly FormFile[] {
    this.#filesByName ??= filesByName(this.#form.files)
    return this.#filesByName.get(name) ?? []
  }

  /** Whether a value is one of the files. */
  isFile(value: unknown): value is FormFile {
    this.#files ??= new Set(this.#form.files)
    return this.#files.has(value)
  }

  /** Returns the row numbers below a path, ascending: 0 and 2 for `lines` with `lines.2.name` and `lines.0.name`. */
  rowsOf(path: string): readonly number[] {
    this.#names ??= [...this.#form.keys(), ...this.#form.files.map((file) => file.name)].sort()
    const start = `${path}.`
    const numbers = new Set<number>()
    for (let at = firstFrom(this.#names, start); this.#names[at]?.startsWith(start) === true; at += 1) {
      const digits = rowNumber.exec((this.#names[at] as string).slice(start.length))
      if (digits !== null) numbers.add(Number(digits[0]))
    }
    return [...numbers].sort((a, b) => a - b)
  }
}

function filesByName(files: readonly FormFile[]): Map<string, FormFile[]> {
  const byName = new Map<string, FormFile[]>()
  for (const file of files) {
    const same = byName.get(file.name)
    if (same === undefined) byName.set(file.name, [file])
    else same.push(file)
  }
  return byName
}

/** The index of the first name that is not less than a text; the length of the list if all are less. */
function firstFrom(names: readonly string[], text: string): number {
  let from = 0
  let to = names.length
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((names[middle] as string) < text) from = middle + 1
    else to = middle
  }
  return from
}
