/**
 * Removes the upload folders of processes that were killed; the next start calls it.
 *
 * Surprise: servers on several machines may share the folder that these are in, and know nothing of each other's
 * processes. So folders of another host are removed when they are a day old, which no upload gets.
 */
import { readdir, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { uploadFolderName } from '../http/multipart-form.ts'

const dayMs = 86_400_000

/**
 * Removes folders of processes that are gone. Call it before this process takes uploads.
 * @returns the number of removed folders; rejects with the errors of the file system, except that there is no folder
 */
export async function sweepUploads(parent: string): Promise<number> {
  const names = await readdir(parent).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  let removed = 0
  for (const name of names) {
    const [, pid, host = hostname()] = uploadFolderName.exec(name) ?? []
    if (pid === undefined) continue
    const path = join(parent, name)
    const isLeft = host === hostname() ? !isAnother(Number(pid)) : await isOlderThanADay(path)
    if (!isLeft) continue
    await rm(path, { recursive: true, force: true })
    removed += 1
  }
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

async function isOlderThanADay(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined) // Its server may have removed it meanwhile.
  return stats !== undefined && Date.now() - stats.mtimeMs > dayMs
}
