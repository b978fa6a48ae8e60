/**
 * Moves uploaded files to their places: `moveTo` of a form file. Under its new name a file is complete or missing, also
 * after a crash, and between file systems: there it is copied to a hidden file beside its place, which is then renamed.
 */
import { chmod, copyFile, link, mkdir, open, rename, unlink, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { createdBeside } from './replace-file.ts'

/** An uploaded file, in memory or on disk. */
interface Upload {
  readonly path?: string | undefined
  readonly bytes?: Uint8Array | undefined
}

/** The options of `moveTo`. */
interface MoveOptions {
  /** Whether an existing file is replaced. Default: false, it is an error. */
  readonly replace?: boolean
}

/** The mode of a moved file, and of a folder that it needs. */
const fileMode = 0o640
const folderMode = 0o750
/** Errors of file systems without hard links. */
const withoutLinks = new Set(['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP'])

/**
 * Makes the function that moves uploads.
 * @param root the base of relative paths, absolute
 * @returns a function whose promise rejects with an Error with the path, the reason and the `code` of the system; the
 *   upload then stays where it was
 */
export function createFileMover(root: string): (upload: Upload, path: string, options?: MoveOptions) => Promise<void> {
  const moved = new WeakMap<Upload, string>()
  return async (upload, path, options = {}) => {
    checkArguments(path, options)
    const target = resolve(root, path)
    const earlier = moved.get(upload)
    if (earlier !== undefined) throw failure(target, `it has already been moved to ${earlier}`)
    moved.set(upload, target) // Before anything waits: two calls at once would move it twice.
    try {
      await makeFolder(dirname(target))
      await move(upload, target, options.replace === true)
    } catch (error) {
      moved.delete(upload)
      throw failure(target, reasonFor(error, options), error)
    }
  }
}

async function move({ path, bytes }: Upload, target: string, replace: boolean): Promise<void> {
  if (path === undefined) {
    return await createThere(target, replace, (file) => writeFile(file, bytes ?? '', { flag: 'wx' }))
  }
  await prepare(path)
  try {
    await place(path, target, replace)
  } catch (error) {
    if (codeOf(error) !== 'EXDEV') throw error
    await createThere(target, replace, (file) => copyFile(path, file))
    await unlink(path)
  }
}

/** Creates a file beside its place, and gives it its name when it is complete. */
function createThere(target: string, replace: boolean, write: (file: string) => Promise<void>): Promise<void> {
  return createdBeside(target, async (temporary) => {
    await write(temporary)
    await prepare(temporary)
    await place(temporary, target, replace)
  })
}

/** Sets the mode of a complete file, and waits until the disk has it. */
async function prepare(file: string): Promise<void> {
  await chmod(file, fileMode)
  const handle = await open(file, 'r+')
  try {
    await handle.sync()
  } catch (error) {
    if (codeOf(error) !== 'ERR_ACCESS_DENIED') throw error // Node's permission model has no fsync.
  } finally {
    await handle.close()
  }
}

/** Gives a file its name, at once. */
async function place(file: string, target: string, replace: boolean): Promise<void> {
  if (replace) return await rename(file, target)
  try {
    await link(file, target) // It refuses an existing name; `rename` would replace that file.
  } catch (error) {
    if (!withoutLinks.has(codeOf(error))) throw error
    await (await open(target, 'wx')).close() // Reserves the name.
    return await rename(file, target)
  }
  await unlink(file)
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: folderMode })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    throw Object.assign(new Error(`${folder} is not a folder`), { code: 'ENOTDIR' })
  }
}

function reasonFor(error: unknown, { replace = false }: MoveOptions): string {
  const code = codeOf(error)
  if (code === 'EEXIST' && !replace) return 'it exists: choose another name, or pass { replace: true }'
  if (code === 'EISDIR' || code === 'EEXIST' || code === 'ENOTEMPTY') return 'it is a folder: name a file in it'
  return (error as Error).message // Only the functions above throw.
}

function failure(target: string, reason: string, cause?: unknown): Error {
  const error = new Error(`Cannot move an uploaded file to ${target}: ${reason}`, { cause })
  return Object.assign(error, { code: codeOf(cause) })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

function checkArguments(path: unknown, options: object): void {
  const cannot = 'Cannot move an uploaded file'
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new TypeError(`${cannot}: its path must be a text that is not empty: it is ${JSON.stringify(path)}`)
  }
  const unknown = Object.keys(options).find((key) => key !== 'replace')
  if (unknown !== undefined) throw new TypeError(`${cannot}: there is no option "${unknown}": there is replace`)
}
