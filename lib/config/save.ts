/**
 * Writes changes back to a configuration file. What does not change stays as it is, byte for byte: unknown keys, order,
 * nested or dotted form, indentation, line ends. What somebody else wrote since the start of the server is kept.
 */
import { editFile, type FileSteps } from '../storage/edit-file.ts'
import { editConfig } from './edit.ts'
import type { Config } from './table.ts'

/**
 * Writes changes to a file, which is made (mode 0600) when it is not there.
 * @param changes keys and their new values, `{'admin.user': 'ann'}`, which are checked as when loading
 * @throws Error that says what failed, why, and what to do; the file is the old one then (see `editFile`)
 */
export function saveConfig(file: string, changes: Partial<Config>, steps?: FileSteps): void {
  editFile(file, (text) => editConfig(text, changes), steps)
}
