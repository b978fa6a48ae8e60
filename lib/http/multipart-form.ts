/**
 * Assembles a multipart form: fields and small files in memory, files above 64 KiB in a temporary folder of the request
 * (folder mode 0700, file mode 0600, names that the client cannot influence).
 *
 * Surprise: it does not remove files automatically, not even after an error. Call `discard()` when the request has
 * ended, for whatever reason.
 */
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { ByteCollector } from './byte-collector.ts'
import { decodeText } from './charset.ts'
import { HttpError } from './errors.ts'
import { addField, Form, formFile, type FormFile, type MoveFile } from './form.ts'
import { MultipartParser, type MultipartEvent } from './multipart.ts'
import { parsePartHeader, type PartHeader } from './part-header.ts'

/** Files up to this size stay in memory; larger ones are written to a temporary file in pieces of this size. */
const maxFileBytesInMemory = 65_536

/**
 * The name of the upload folder of one request, with process and host, so that `left-uploads.ts` can remove it. A name
 * without a host belongs to this host.
 */
export const uploadFolderName = /^svc-upload-(\d+)-(?:(.+)-.{6}$)?/

/** A file that is being received. It is open only while written, since the client may be slow. */
interface IncomingFile {
  readonly path: string
  written: number
}

/** A form that is being received. Each call must have settled before the next one, `discard()` included. */
export class MultipartForm {
  readonly #parser: MultipartParser
  readonly #parentFolder: string
  readonly #move: MoveFile
  readonly #fields = new Map<string, string[]>()
  readonly #files: FormFile[] = []
  readonly #held = new ByteCollector()
  /** The bytes of the fields and files that stay in memory. */
  #keptBytes = 0
  #folder: string | undefined
  #part: PartHeader | undefined
  #file: IncomingFile | undefined

  /**
   * @param boundary from Content-Type
   * @param parentFolder the parent of the temporary folder, created on demand
   * @param move moves the files
   * @throws HttpError 400 `bad_form` for an invalid boundary
   */
  constructor(boundary: string, parentFolder: string, move: MoveFile) {
    this.#parser = new MultipartParser(boundary)
    this.#parentFolder = parentFolder
    this.#move = move
  }

  /** The bytes of the form that are in memory. */
  get heldBytes(): number {
    return this.#keptBytes + this.#held.length
  }

  /**
   * Processes the next chunk.
   * @returns a promise only when writing to disk, since a client may send one-byte chunks
   * @throws HttpError 400 `bad_form`, 415 `unsupported_media_type`; a promise rejects with these, and with 500
   *   `internal_error` if writing fails
   */
  write(chunk: Buffer): Promise<void> | undefined {
    const events = this.#parser.push(chunk)
    for (let at = 0; at < events.length; at += 1) {
      const accepting = this.#accept(events[at] as MultipartEvent)
      if (accepting !== undefined) return this.#acceptRest(accepting, events.slice(at + 1))
    }
    return undefined
  }

  /**
   * Call when the body is complete. Returns the form.
   * @throws HttpError 400 `bad_form` if the closing delimiter is missing
   */
  end(): Form {
    this.#parser.end()
    return new Form(this.#fields, this.#files)
  }

  /** Removes the temporary files. May be called again. Rejects if a file cannot be removed. */
  async discard(): Promise<void> {
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true })
    this.#folder = undefined
  }

  async #acceptRest(accepting: Promise<void>, events: readonly MultipartEvent[]): Promise<void> {
    await accepting
    for (const event of events) await this.#accept(event)
  }

  #accept(event: MultipartEvent): Promise<void> | undefined {
    if (event.kind === 'end') return this.#endPart(this.#part as PartHeader) // The end of a part follows its header.
    if (event.kind === 'part') {
      this.#part = parsePartHeader(event.header)
      return undefined
    }
    this.#held.add(event.bytes)
    const isFull = this.#part?.filename !== undefined && this.#held.length > maxFileBytesInMemory
    return isFull ? this.#writeHeld() : undefined
  }

  #endPart(part: PartHeader): Promise<void> | undefined {
    if (this.#file !== undefined) return this.#endFile(part, this.#file)
    const bytes = this.#held.take()
    this.#keptBytes += bytes.length
    const { name, filename, type } = part
    if (filename === undefined) {
      const value = decodeText(bytes, part.charset)
      if (value === undefined) {
        throw new HttpError(400, 'bad_form', 'Cannot read the multipart form: the value of a field is not UTF-8')
      }
      addField(this.#fields, name, value)
    } else if (filename !== '' || bytes.length > 0) {
      this.#files.push(formFile({ name, filename, type, size: bytes.length, bytes }, this.#move))
    }
    return undefined
  }

  async #endFile(part: PartHeader, file: IncomingFile): Promise<void> {
    await this.#writeHeld()
    this.#file = undefined
    const { name, type, filename = '' } = part
    this.#files.push(formFile({ name, filename, type, size: file.written, path: file.path }, this.#move))
  }

  #writeHeld(): Promise<void> {
    const bytes = this.#held.take()
    return onDisk(this.#parentFolder, async () => {
      const isNew = this.#file === undefined
      const folder = (this.#folder ??= await makeUploadFolder(this.#parentFolder))
      const file = (this.#file ??= { path: join(folder, String(this.#files.length)), written: 0 })
      const handle = await open(file.path, isNew ? 'ax' : 'a', 0o600)
      try {
        await handle.appendFile(bytes)
      } finally {
        await handle.close()
      }
      file.written += bytes.length
    })
  }
}

/** Creates the upload folder of one request, accessible only to this user. Rejects with file system errors. */
export async function makeUploadFolder(parent: string): Promise<string> {
  await mkdir(parent, { recursive: true, mode: 0o700 })
  return mkdtemp(join(parent, `svc-upload-${process.pid}-${hostname()}-`))
}

async function onDisk(folder: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (cause) {
    const reason = reasonOf(cause)
    throw new HttpError(500, 'internal_error', `Cannot store an uploaded file in ${folder}: ${reason}`, { cause })
  }
}
