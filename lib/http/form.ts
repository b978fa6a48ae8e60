/**
 * The form that `readForm()` returns: fields and files, sent urlencoded or as multipart.
 */

/** A file of a multipart form: one of up to 64 KiB has `bytes`, a larger one `path`. */
export type FormFile = FileFacts & (FileInMemory | FileOnDisk)

interface FileFacts {
  /** The name of the input. */
  readonly name: string
  /**
   * The name that the client sent: its last path component without control characters; may be empty. Do not trust it:
   * store the file under a name of your own.
   */
  readonly filename: string
  /** The media type that the client sent, in lower case, without parameters; `application/octet-stream` for none. */
  readonly type: string
  /** Bytes. */
  readonly size: number
}

interface FileInMemory {
  /** The content. */
  readonly bytes: Buffer
  readonly path?: undefined
}

interface FileOnDisk {
  /** A temporary file of mode 0600. It is deleted when the request ends: move or copy it. */
  readonly path: string
  readonly bytes?: undefined
}

/** A form that was read. Names are keys of a map, so `__proto__` is one like any other. */
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

  /** The first value of this name; `undefined` when none was sent, as for an unchecked checkbox. */
  get(name: string): string | undefined {
    return this.#fields.get(name)?.[0]
  }

  /** Every value of this name in the order sent; a new array, empty when it was not sent. */
  getAll(name: string): string[] {
    return [...(this.#fields.get(name) ?? [])]
  }

  /** The values of this name as they are kept, for the server's own parts; undefined when it was not sent. */
  valuesOf(name: string): readonly string[] | undefined {
    return this.#fields.get(name)
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
