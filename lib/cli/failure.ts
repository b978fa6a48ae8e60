/**
 * What the command line says when files of the application are wrong.
 *
 * Surprise: the errors are told by their names. In a build `check` and its like are files of their own beside
 * `dist/bundle/`, so that a configuration that was refused there has an error of another class than theirs.
 */
import type { ConfigError } from '../config/load.ts'
import type { ReloadError } from '../control/commands.ts'
import type { MiddlewareError } from '../middleware/config-file.ts'

/** A configuration, route or middleware file that cannot be used: exit status 78. */
export type FileError = ConfigError | MiddlewareError | ReloadError

/** Whether an error says that a file is wrong, rather than that something failed. */
export function isFileError(error: unknown): error is FileError {
  return error instanceof Error && ['ConfigError', 'MiddlewareError', 'ReloadError'].includes(error.name)
}

/** Whether an error says that the configuration is wrong. */
export function isConfigError(error: unknown): error is ConfigError {
  return error instanceof Error && error.name === 'ConfigError'
}

/** The message, after a line for each unknown key of the configuration. */
export function textOfFileError(error: FileError): string {
  const warnings = isConfigError(error) ? error.warnings : []
  return `${warnings.map((warning) => `warning: ${warning}\n`).join('')}${error.message}\n`
}
