/**
 * Removes the upload folders of processes that were killed; the next start calls it.
 *
 * Surprise: servers on several machines may share the folder that these are in, and know nothing of each other's
 * processes. So folders of another host are removed when they are a day old, which no upload gets.
 *
 * The folder may be one that everybody writes to, such as `/tmp`. Another user's folder is not removed: that user could
 * swap a folder in it for a link meanwhile, and this process would remove what the link leads to.
 */
import type { Stats } from 'node:fs'
import { lstat, readdir, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { uploadFolderName } from '../http/multipart-form.ts'

const dayMs = 86_400_000

/**
 * Removes folders of processes that are gone. Call it before this process takes uploads.
 * @returns the number of removed folders; rejects with the errors of the file system, except that there is no folder,
 *   and, once all others are removed, with an Error that names a folder of another user
 */
export async function sweepUploads(parent: string): Promise<number> {
  const names = await readdir(parent).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  let removed = 0
  let foreign: string | undefined
  for (const name of names) {
    const [, pid, host = hostname()] = uploadFolderName.exec(name) ?? []
    if (pid === undefined) continue
    const path = join(parent, name)
    const stats = await lstat(path).catch(() => undefined) // Its server may have removed it meanwhile.
    if (stats === undefined) continue
    const isLeft = host === hostname() ? !isAnother(Number(pid)) : isOlderThanADay(stats)
    if (!isLeft) continue
    if (stats.uid !== (process.geteuid?.() ?? stats.uid)) {
      foreign = path
      continue
    }
    await rm(path, { recursive: true, force: true })
    removed += 1
  }
  if (foreign !== undefined) throw new Error(`${foreign} belongs to another user: remove it, unless it is in use`)
  return removed
}

/** Whether another process with that id runs. A folder with the id of this one was left by an earlier one. */
function isAnother(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // It runs, for another user.
  }
}

function isOlderThanADay({ mtimeMs }: Stats): boolean {
  return Date.now() - mtimeMs > dayMs
}
