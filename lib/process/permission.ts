/**
 * Gives up the rights of this process, under Node's permission model, that only the start needs.
 *
 * Surprise: a right to files can be given up only by the path with which it was granted, so `svc permissions` gets its
 * paths from here.
 */
import { basename, dirname, join, resolve } from 'node:path'
import { startRights } from '../config/checks.ts'
import { fileToWrite, type LoadedConfig } from '../config/load.ts'
import { realPathOf } from '../files/paths.ts'
import { dropRight } from '../files/rights.ts'

/** Returns the file that the server saves to, and the pattern of its temporary files. @param file the configuration */
export function savedNames(file: string, config: LoadedConfig['config']): readonly string[] {
  const saved = realPathOf(fileToWrite(file, config))
  return [saved, join(dirname(saved), `.${basename(saved)}.*`)]
}

/**
 * Gives up what the server needs no more once it listens: programs, threads, addons, WASI, foreign functions, the
 * credentials of the service manager, and the configuration file, unless something may still be saved in it. Without
 * the permission model it does nothing.
 * @param file the configuration file; undefined: none
 * @param keep rights that this process needs, beside those of `permission.keep`
 */
export function dropPermissions(loaded: LoadedConfig, file: string | undefined, keep: readonly string[] = []): void {
  const kept = [...loaded.config['permission.keep'], ...keep]
  for (const right of startRights) if (!kept.includes(right)) dropRight(right)
  const { CREDENTIALS_DIRECTORY: credentials = '' } = process.env
  if (credentials !== '') dropRight('fs.read', join(resolve(credentials), '*'))
  if (file === undefined || mayStillSave(loaded)) return
  for (const name of savedNames(file, loaded.config)) dropRight('fs.write', name)
}

/**
 * Whether setup, a sign-in or other nodes may make credentials, which are then saved, or a sign-in may use a recovery
 * code, which is then removed.
 */
function mayStillSave({ config }: LoadedConfig): boolean {
  const keys = ['admin.user', 'admin.password', 'admin.secret'] as const
  const hasCodes = config['admin.totp'] !== '' && config['admin.recovery_codes'].length > 0
  return config['admin.enabled'] && (hasCodes || keys.some((key) => config[key] === '') || config['shared.url'] !== '')
}
