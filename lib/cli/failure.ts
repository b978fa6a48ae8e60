/**
 * What the command line says when files of the application are wrong.
 */
import { ConfigError } from '../config/load.ts'
import { ReloadError } from '../application/commands.ts'
import { MiddlewareError } from '../application/middleware-config.ts'

/** A configuration, route or middleware file that cannot be used: exit status 78. */
export type FileError = ConfigError | MiddlewareError | ReloadError

/** Whether an error says that a file is wrong, rather than that something failed. */
export function isFileError(error: unknown): error is FileError {
  return error instanceof ConfigError || error instanceof MiddlewareError || error instanceof ReloadError
}

/** The message, after a line for each unknown key of the configuration. */
export function textOfFileError(error: FileError): string {
  const warnings = error instanceof ConfigError ? error.warnings : []
  return `${warnings.map((warning) => `warning: ${warning}\n`).join('')}${error.message}\n`
}
