/**
 * Reads and writes the admin credentials in the configuration file, for `admin/credential-store.ts`.
 */
import { existsSync } from 'node:fs'
import type { CredentialWriter } from '../admin/credential-store.ts'
import { loadConfig } from './load.ts'
import { saveConfig } from './save.ts'

/**
 * Makes the writer of a configuration file.
 * @param onSaved called with the keys that were written
 */
export function createCredentialWriter(file: string, onSaved: (keys: readonly string[]) => void): CredentialWriter {
  return {
    read: () => (existsSync(file) ? loadConfig(file).config : undefined),
    write: (changes) => {
      saveConfig(file, changes)
      onSaved(Object.keys(changes))
    },
  }
}
