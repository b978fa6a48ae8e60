/**
 * The folders in which uploads lie while their requests run, one for each request: `svc-upload-<pid>-<host>-<6
 * letters>`. A process that is killed leaves them, and the next start removes them.
 *
 * Surprise: servers on several machines may share the folder that these are in, and know nothing of each other's
 * processes. So what is left of another host is removed when it is a day old, which no upload gets.
 */
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'

const pattern = /^svc-upload-(\d+)-(.+)-.{6}$/
const dayMs = 86_400_000

/** Makes a folder for the uploads of a request, for this user alone. Rejects with the file system's errors. */
export async function makeUploadFolder(parent: string): Promise<string> {
  await mkdir(parent, { recursive: true, mode: 0o700 })
  return mkdtemp(join(parent, `svc-upload-${process.pid}-${hostname()}-`))
}

/**
 * Removes what processes that are gone have left. To be called before this process takes uploads.
 * @returns how many folders were removed; rejects with the file system's errors, but for a folder that is not there
 */
export async function sweepUploads(parent: string): Promise<number> {
  const names = await readdir(parent).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  let removed = 0
  for (const name of names) {
    const [, pid, host] = pattern.exec(name) ?? []
    if (pid === undefined) continue
    const path = join(parent, name)
    const isLeft = host === hostname() ? !isAnother(Number(pid)) : await isOlderThanADay(path)
    if (!isLeft) continue
    await rm(path, { recursive: true, force: true })
    removed += 1
  }
  return removed
}

/** Whether another process with that id is there. What has the id of this one was left by one before it. */
function isAnother(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // It is there, and somebody else's.
  }
}

async function isOlderThanADay(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined) // Its own server may have removed it meanwhile.
  return stats !== undefined && Date.now() - stats.mtimeMs > dayMs
}
