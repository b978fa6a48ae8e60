/**
 * Removes the upload folders of killed processes at the next start.
 *
 * Surprise: servers on several machines may share the parent folder, and do not know each other's processes. So folders
 * of another host are removed once they are a day old, which no upload reaches.
 *
 * The parent may be writable for everybody, such as `/tmp`. Another user's folder is not removed: that user could
 * replace a folder in it with a link meanwhile, and this process would remove the target of the link.
 */
import type { Stats } from 'node:fs'
import { lstat, readdir, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { uploadFolderName } from '../http/multipart-form.ts'
import type { ModuleLogger } from '../log/logger.ts'

const dayMs = 86_400_000

/** Removes the uploads of earlier processes. A failure is only a warning: they take up space and are harmless. */
export async function removeLeftUploads(folder: string, log: ModuleLogger): Promise<void> {
  try {
    const removed = await sweepUploads(folder)
    if (removed > 0) log.info(`removed the leftover uploads of ${removed} aborted requests from ${folder}`)
  } catch (error) {
    log.warn(`Cannot remove the leftover uploads in ${folder}: ${(error as Error).message}`)
  }
}

/**
 * Removes the folders of ended processes. Call it before this process accepts uploads.
 * @returns the number of removed folders; rejects with errors of the file system, except that the parent is missing,
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

/** Whether another process with that id runs. A folder with the id of this process is from an earlier one. */
function isAnother(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // It runs as another user.
  }
}

function isOlderThanADay({ mtimeMs }: Stats): boolean {
  return Date.now() - mtimeMs > dayMs
}
