/**
 * The server's name and version, as the command line, the logs and the ping endpoint tell them.
 */

/** The version, the same as in `package.json`; a test holds them together. */
export const version = '0.1.0'

/** Name and version: `svc/0.1.0`. */
export const serverName = `svc/${version}`
