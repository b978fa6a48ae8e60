/**
 * What `readForm()` gives: the fields of a form and its files, whether it came urlencoded or as multipart.
 *
 * Surprise: a name that was not sent gives `undefined`, not an empty text: a browser sends empty inputs too, and an
 * unticked checkbox not at all.
 */

/** A file of a multipart form. Exactly one of `path` and `bytes` is there. */
export interface FormFile {
  /** The name of the input. */
  readonly name: string
  /**
   * The file's name as the client says: its last path component without control characters; empty when nothing is left.
   * It is the client's word: make a name of your own to store it under.
   */
  readonly filename: string
  /** The media type as the client says, in lower case, without parameters; `application/octet-stream` for none. */
  readonly type: string
  /** Bytes. */
  readonly size: number
  /** A temporary file of mode 0600, for files above 64 KiB. It goes when the request ends: move or copy it before. */
  readonly path?: string
  /** The content, for files up to 64 KiB. */
  readonly bytes?: Buffer
}

/** A form that was read. Names are plain keys: `__proto__` is one like any other. */
export class Form {
  /** The files in the order sent. A file input left empty gives none. */
  readonly files: readonly FormFile[]
  readonly #fields: ReadonlyMap<string, readonly string[]>

  /**
   * @param fields the values of each name in the order sent, at least one each
   * @param files the files in the order sent
   */
  constructor(fields: ReadonlyMap<string, readonly string[]>, files: readonly FormFile[]) {
    this.#fields = fields
    this.files = files
  }

  /** The first value of this name, `undefined` when it was not sent. */
  get(name: string): string | undefined {
    return this.#fields.get(name)?.[0]
  }

  /** Every value of this name in the order sent; a new array, empty when it was not sent. */
  getAll(name: string): string[] {
    return [...(this.#fields.get(name) ?? [])]
  }

  /** Whether a field of this name was sent. Files do not count. */
  has(name: string): boolean {
    return this.#fields.has(name)
  }

  /** The names of the fields, each once, in the order in which they first came. */
  keys(): IterableIterator<string> {
    return this.#fields.keys()
  }

  /** Name and value of every field, those of one name together, names in the order in which they first came. */
  *entries(): IterableIterator<[string, string]> {
    for (const [name, values] of this.#fields) {
      for (const value of values) yield [name, value]
    }
  }
}

/** Adds a value to a name, in the shape that {@link Form} takes. */
export function addField(fields: Map<string, string[]>, name: string, value: string): void {
  const values = fields.get(name)
  if (values === undefined) fields.set(name, [value])
  else values.push(value)
}
