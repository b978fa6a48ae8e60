/**
 * The certificate of an HTTPS server: `server.tls.cert` and `server.tls.key`, PEM files, both or neither, and the TLS
 * settings to use with them.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { errorOfValues, type LoadedConfig } from '../config/load.ts'

/** The contents of the files, a certificate with its chain and its private key, and the options of `node:tls`. */
export interface Certificates {
  readonly cert: Buffer
  readonly key: Buffer
  readonly minVersion: 'TLSv1.2'
  readonly ciphers: string
}

/**
 * TLS 1.3, and only those ciphers of TLS 1.2 with forward secrecy and authenticated encryption (RFC 9325, 4.2). Node's
 * default also has static RSA and CBC.
 */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

const dayMs = 86_400_000
/** How long before the expiry of a certificate to warn. */
const noticeDays = 14
const renew = 'renew it, then reload'
/** PKCS #8 (RFC 5958) and the older form of OpenSSL. */
const encryptedKey = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m

/**
 * Reads the files that the configuration names, and checks that they can be used.
 * @returns undefined when neither is configured: plain HTTP
 * @throws ConfigError when only one is configured, one cannot be read, or they do not match
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
  const files = { cert: read('server.tls.cert', cert), key: read('server.tls.key', key) }
  if (encryptedKey.test(files.key.toString('latin1'))) {
    const advice = 'store it without one (openssl pkey -in OLD -out NEW), in a file that only the server can read'
    const text = `server.tls.key ${JSON.stringify(key)} is encrypted, and nobody can enter its passphrase: ${advice}`
    throw errorOfValues(loaded, [{ key: 'server.tls.key', text }])
  }
  const certificates: Certificates = { ...files, minVersion: 'TLSv1.2', ciphers }
  try {
    // Loaded only here: most servers run behind a proxy.
    process.getBuiltinModule('node:tls').createSecureContext(certificates)
    serverCertificateOf(certificates)
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

/** Returns the first certificate of the chain, the server's. */
export function serverCertificateOf({ cert }: Certificates): X509Certificate {
  return new X509Certificate(cert)
}

/**
 * Returns warnings about the validity of a certificate: it has expired, expires within 14 days, or is not valid yet.
 * @param nowMs milliseconds since 1970
 */
export function warningsOfTime({ validFrom, validTo }: X509Certificate, nowMs: number): string[] {
  const leftMs = Date.parse(validTo) - nowMs
  if (leftMs <= 0) return [`the certificate of server.tls.cert ended on ${dateOf(validTo)}: ${renew}`]
  if (leftMs <= noticeDays * dayMs) {
    const days = Math.floor(leftMs / dayMs)
    const left = days === 0 ? 'in less than a day' : days === 1 ? 'in 1 day' : `in ${days} days`
    return [`the certificate of server.tls.cert ends on ${dateOf(validTo)}, ${left}: ${renew}`]
  }
  if (Date.parse(validFrom) <= nowMs) return []
  return [`the certificate of server.tls.cert is not valid before ${dateOf(validFrom)}: is the clock right?`]
}

/** The certificate of a running server. */
export class CertificateInUse {
  readonly #loaded: LoadedConfig
  readonly #now: () => number
  #current: Certificates | undefined
  #parsed: X509Certificate | undefined
  #refusal: string | undefined
  #daily: NodeJS.Timeout | undefined

  /**
   * @param now milliseconds since 1970
   * @throws ConfigError as `readCertificates` does
   */
  constructor(loaded: LoadedConfig, now: () => number = Date.now) {
    this.#loaded = loaded
    this.#now = now
    this.#use(readCertificates(loaded))
  }

  /** The certificate; undefined for plain HTTP. */
  get current(): Certificates | undefined {
    return this.#current
  }

  /** Its end in milliseconds since 1970. */
  get endsMs(): number | undefined {
    return this.#parsed && Date.parse(this.#parsed.validTo)
  }

  /**
   * Reads the files again.
   * @throws ConfigError as `readCertificates` does; then the current one stays in use
   */
  renew(): Certificates | undefined {
    try {
      this.#use(readCertificates(this.#loaded))
      this.#refusal = undefined
      return this.#current
    } catch (error) {
      this.#refusal = reasonOf(error)
      throw error
    }
  }

  /** Whether the last reload could not read a new one. */
  get isReloadRefused(): boolean {
    return this.#refusal !== undefined
  }

  /** Returns warnings for the operator: about the validity, and that the last reload could not read a new one. */
  warnings(): string[] {
    const refused = this.#refusal === undefined ? [] : [`the old certificate stays in use: ${this.#refusal}`]
    return this.#parsed === undefined ? [] : [...refused, ...warningsOfTime(this.#parsed, this.#now())]
  }

  /** Logs the warnings now and once a day, until `close()`. */
  report(warn: (message: string) => void): void {
    if (this.#current === undefined) return
    const log = (): void => this.warnings().forEach((warning) => warn(warning))
    log()
    this.#daily = setInterval(log, dayMs).unref()
  }

  close(): void {
    clearInterval(this.#daily)
  }

  #use(certificates: Certificates | undefined): void {
    this.#current = certificates
    this.#parsed = certificates && serverCertificateOf(certificates)
  }
}

/** Formats the date of a certificate: `2026-12-01`. */
function dateOf(time: string): string {
  return new Date(time).toISOString().slice(0, 10)
}
