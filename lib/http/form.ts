/**
 * The form that `readForm()` returns: fields and files, urlencoded or multipart.
 */

/** A file of a multipart form: up to 64 KiB it has `bytes`, above that `path`. */
export type FormFile = FileContent & {
  /**
   * Moves the file to its place, also to another file system. Rejects, and changes nothing, when it exists.
   * @param path absolute or relative to `paths.root`
   */
  readonly moveTo: (path: string, options?: MoveOptions) => Promise<void>
}

/** A file as it was received. */
export type FileContent = FileInfo & (FileInMemory | FileOnDisk)

interface MoveOptions {
  /** Whether an existing file is replaced. */
  readonly replace?: boolean
}

/** Moves uploaded files; `files/move-file.ts` implements it. */
export type MoveFile = (file: FileContent, path: string, options?: MoveOptions) => Promise<void>

interface FileInfo {
  /** The name of the input. */
  readonly name: string
  /**
   * The file name from the client: the last path component without control characters; may be empty. Do not trust it:
   * store the file under your own name.
   */
  readonly filename: string
  /** The media type from the client, in lower case, without parameters; default: `application/octet-stream`. */
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
  /** A temporary file. It is deleted when the request ends: move or copy it. */
  readonly path: string
  readonly bytes?: undefined
}

/** A form. Names are keys of a map, so `__proto__` is a name like any other. */
export class Form {
  /** The files in the order sent, without empty file inputs. */
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

  /** Returns the first value of a name; `undefined` if none was sent, as for an unchecked checkbox. */
  get(name: string): string | undefined {
    return this.#fields.get(name)?.[0]
  }

  /** Returns every value of a name in the order sent; a new array, empty if none was sent. */
  getAll(name: string): string[] {
    return [...(this.#fields.get(name) ?? [])]
  }

  /** Returns the internal array of values, for the server's own code; undefined if none was sent. */
  valuesOf(name: string): readonly string[] | undefined {
    return this.#fields.get(name)
  }

  /** Whether a field of this name was sent. Files do not count. */
  has(name: string): boolean {
    return this.#fields.has(name)
  }

  /** Returns the names of the fields, each once, in order of first appearance. */
  keys(): IterableIterator<string> {
    return this.#fields.keys()
  }

  /** Returns name and value of every field, grouped by name, names in order of first appearance. */
  *entries(): IterableIterator<[string, string]> {
    for (const [name, values] of this.#fields) {
      for (const value of values) yield [name, value]
    }
  }
}

/** Adds `moveTo` to a received file; it is not enumerable. */
export function formFile(content: FileContent, move: MoveFile): FormFile {
  const moveTo: FormFile['moveTo'] = (path, options) => move(content, path, options)
  return Object.defineProperty(content, 'moveTo', { value: moveTo }) as FormFile
}

/** Adds a value to a name, in the shape that {@link Form} accepts. */
export function addField(fields: Map<string, string[]>, name: string, value: string): void {
  const values = fields.get(name)
  if (values === undefined) fields.set(name, [value])
  else values.push(value)
}
