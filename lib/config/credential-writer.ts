/** Reads and writes the admin credentials in the configuration files, for `access/credential-store.ts`. */
import { existsSync } from 'node:fs'
import type { CredentialWriter } from '../access/credential-store.ts'
import { fileToWrite, loadConfig, localFileOf } from './load.ts'
import { saveConfig } from './save.ts'
import type { Config } from './table.ts'

/**
 * Creates the writer for a configuration file, or the local file beside it (`fileToWrite`).
 * @param onSaved called with the keys that were written, and the file
 */
export function createCredentialWriter(
  file: string,
  config: Config,
  onSaved: (keys: readonly string[], file: string) => void,
): CredentialWriter {
  return {
    read: () => (existsSync(file) || existsSync(localFileOf(file)) ? loadConfig(file).config : undefined),
    write: (changes) => {
      const target = fileToWrite(file, config)
      saveConfig(target, changes)
      onSaved(Object.keys(changes), target)
    },
  }
}
