/** The command `backup`: copies the database of a server, which may be running. */
import { resolve } from 'node:path'
import { loadRoom } from '../config/load-room.ts'
import type { LoadedConfig } from '../config/load.ts'
import { exitStatus, isFileError, textOfFileError } from '../process/process.ts'

/**
 * Copies `svc.db` as it is at this moment.
 * @param load reads the configuration; rejects with ConfigError
 * @param target the path of the copy, which must not exist
 * @returns the exit status: 0, 1 when it cannot be copied, 78 for a wrong configuration
 */
export async function backup(load: () => Promise<LoadedConfig>, target: string): Promise<number> {
  try {
    const { config, folder } = await load()
    const { backUp } = await loadRoom('svc backup', () => import('../data/inspect.ts'))
    const { DataError } = await loadRoom('svc backup', () => import('../data/sqlite.ts'))
    try {
      const copied = backUp(resolve(folder, config['paths.data']), resolve(target))
      process.stdout.write(`copied ${copied} to ${resolve(target)}\n`)
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      process.stderr.write(`${error.message}\n`)
      return exitStatus.failed
    }
    return exitStatus.ok
  } catch (error) {
    if (!isFileError(error)) throw error
    process.stderr.write(textOfFileError(error))
    return exitStatus.config
  }
}
