/**
 * The certificate of an HTTPS server: `server.tls.cert` and `server.tls.key`, files in PEM, both or none.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { errorOfValues, type LoadedConfig } from '../config/load.ts'

/** The contents of the files: a certificate with its chain, and its private key. */
export interface Certificates {
  readonly cert: Buffer
  readonly key: Buffer
}

/**
 * Reads the files that the configuration names, and checks that they can be used.
 * @returns undefined when it names none: plain HTTP
 * @throws ConfigError when only one is named, one cannot be read, or they do not belong together
 */
export function readCertificates(loaded: LoadedConfig): Certificates | undefined {
  const { 'server.tls.cert': cert, 'server.tls.key': key } = loaded.config
  if (cert === '' && key === '') return undefined
  if (cert === '' || key === '') {
    const [set, empty] =
      cert === '' ? (['server.tls.key', 'server.tls.cert'] as const) : (['server.tls.cert', 'server.tls.key'] as const)
    const text = `${set} is ${JSON.stringify(cert || key)} and ${empty} is empty: set both, or none of them`
    throw errorOfValues(loaded, [{ key: set, text }])
  }
  const certificates = { cert: read('server.tls.cert', cert), key: read('server.tls.key', key) }
  try {
    // Loaded where it is used: most servers run behind a proxy.
    process.getBuiltinModule('node:tls').createSecureContext(certificates)
    return certificates
  } catch (error) {
    const pair = `server.tls.cert ${JSON.stringify(cert)} cannot be used with server.tls.key ${JSON.stringify(key)}`
    throw errorOfValues(loaded, [{ key: 'server.tls.cert', text: `${pair}: ${reasonOf(error)}` }], error)
  }

  function read(name: 'server.tls.cert' | 'server.tls.key', path: string): Buffer {
    try {
      return readFileSync(resolve(loaded.folder, path))
    } catch (error) {
      throw errorOfValues(loaded, [{ key: name, text: `${name} cannot be read: ${reasonOf(error)}` }], error)
    }
  }
}
