/** The server's name and version, as shown by the command line, the logs and the ping endpoint. */

/** The version; a test ensures that `package.json` has the same. */
export const version = '1.0.0'

/** Name and version: `svc/1.0.0`. */
export const serverName = `svc/${version}`

/** The parts of a loaded configuration that the first log line shows. */
interface Started {
  readonly config: { readonly 'app.env': string }
  readonly file?: string | undefined
  readonly localFile?: string | undefined
}

/**
 * Returns the first line of the log.
 * @param digest of the running code
 * @param more more about the process, ending with `, `
 */
export function startLine({ config, file, localFile }: Started, digest: string, more = ''): string {
  const started = `${serverName} on Node ${process.versions.node}, ${config['app.env']}, process ${process.pid}`
  const files = [file, localFile].filter((name) => name !== undefined)
  const configuration = files.length === 0 ? 'without a file' : files.join(' and ')
  return `${started}, ${more}code ${digest}, configuration ${configuration}`
}
