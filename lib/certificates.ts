/**
 * The certificate of an HTTPS server: `server.tls.cert` and `server.tls.key`, files in PEM, both or none.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError, type LoadedConfig } from './config/load.ts'

/** A certificate, with its chain, and its private key: the content of the files. */
export interface Certificates {
  readonly cert: Buffer
  readonly key: Buffer
}

/**
 * Reads the files that the configuration names and tries them out.
 * @returns undefined when it names none: plain HTTP
 * @throws ConfigError when only one is named, when one cannot be read, or when they cannot be used together
 */
export function readCertificates({ config, folder, file }: LoadedConfig): Certificates | undefined {
  const { 'server.tls.cert': cert, 'server.tls.key': key } = config
  if (cert === '' && key === '') return undefined
  const source = file ?? 'the configuration'
  if (cert === '' || key === '') {
    throw new ConfigError(source, ['server.tls.cert and server.tls.key must both be set, or none of them'])
  }
  const certificates = { cert: read('server.tls.cert', cert), key: read('server.tls.key', key) }
  try {
    process.getBuiltinModule('node:tls').createSecureContext(certificates) // Loaded where it is used: most run behind a proxy.
    return certificates
  } catch (error) {
    const pair = `server.tls.cert ${JSON.stringify(cert)} cannot be used with server.tls.key ${JSON.stringify(key)}`
    throw new ConfigError(source, [`${pair}: ${messageOf(error)}`], { cause: error })
  }

  function read(name: string, path: string): Buffer {
    try {
      return readFileSync(resolve(folder, path))
    } catch (error) {
      throw new ConfigError(source, [`${name} cannot be read: ${messageOf(error)}`], { cause: error })
    }
  }
}

function messageOf(error: unknown): string {
  return (error as Error).message // What node:fs and node:tls throw is an Error.
}
