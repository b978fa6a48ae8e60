// Keeps notices and users across restarts, in one file that is always complete. A real application has a database.

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { changes } from './changes.js'
import { noticesToKeep, restoreNotices } from './notices.js'
import { restoreUsers, usersToKeep } from './users.js'

const delayMs = 1000

/**
 * Reads the file, and from then on writes it after changes, at most once a second; of several processes with the same
 * file, one `writes`. Returns a function that ends this and resolves when everything is written.
 */
export async function keepBoard(file, log, writes) {
  let timer
  let saving = Promise.resolve()
  const save = () => {
    clearTimeout(timer)
    timer = undefined
    saving = saving.then(() => write(file)).catch((error) => log.error(`cannot save the board to ${file}`, error))
  }
  const changed = () => {
    timer ??= setTimeout(save, delayMs)
  }
  await restore(file)
  if (!writes) return () => {}
  changes.on('notice', changed).on('user', changed)
  return () => {
    changes.off('notice', changed).off('user', changed)
    if (timer !== undefined) save()
    return saving
  }
}

async function restore(file) {
  try {
    const kept = JSON.parse(await readFile(file, 'utf8'))
    restoreNotices(kept.notices)
    restoreUsers(kept.users)
  } catch (error) {
    if (error.code === 'ENOENT') return
    const reason = `${error.message}: remove it to start over`
    throw new Error(`the board cannot be read from ${file}: ${reason}`, { cause: error })
  }
}

async function write(file) {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const text = JSON.stringify({ notices: noticesToKeep(), users: usersToKeep() })
  await writeFile(`${file}.tmp`, text, { mode: 0o600 })
  await rename(`${file}.tmp`, file)
}
