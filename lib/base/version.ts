/**
 * The server's name and version, as the command line, the logs and the ping endpoint tell them.
 */

import type { LoadedConfig } from '../config/load.ts'

/** The version, the same as in `package.json`; a test holds them together. */
export const version = '0.1.0'

/** Name and version: `svc/0.1.0`. */
export const serverName = `svc/${version}`

/**
 * The first line of the log.
 * @param more what else there is to say of the process, with `, ` behind it
 */
export function startLine({ config, file }: Pick<LoadedConfig, 'config' | 'file'>, more = ''): string {
  const started = `${serverName} on Node ${process.versions.node}, ${config['app.env']}, process ${process.pid}`
  return `${started}, ${more}configuration ${file ?? 'without a file'}`
}
