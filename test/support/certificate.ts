import { generateKeyPairSync, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The options of a certificate. */
interface CertificateOptions {
  /** An elliptic curve key by default. */
  readonly rsa?: boolean
  /** 2020 by default. */
  readonly from?: Date
  /** 2049 by default. */
  readonly to?: Date
}

/**
 * Makes a self-signed X.509 certificate for 127.0.0.1 with no other program.
 * @param name the files are `NAME.pem` and `NAME.key` in the folder, and the certificate's common name is NAME
 */
export function makeCertificate(
  folder: string,
  name: string,
  { rsa = false, from = new Date('2020-01-01'), to = new Date('2049-01-01') }: CertificateOptions = {},
): { cert: string; key: string } {
  const { publicKey, privateKey } = rsa
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  // sha256WithRSAEncryption, ecdsa-with-SHA256
  const algorithm = der(0x30, hex(rsa ? '06092a864886f70d01010b0500' : '06082a8648ce3d040302'))
  const commonName = der(0x30, der(0x31, der(0x30, hex('0603550403'), der(0x0c, Buffer.from(name)))))
  const validity = der(0x30, ...[from, to].map((time) => der(0x17, Buffer.from(utcTime(time)))))
  const spki = publicKey.export({ format: 'der', type: 'spki' })
  const alternativeName = der(0x30, hex('0603551d11'), der(0x04, der(0x30, der(0x87, Buffer.of(127, 0, 0, 1)))))
  const versionAndSerial = Buffer.concat([der(0xa0, hex('020102')), hex('020101')])
  const extensions = der(0xa3, der(0x30, alternativeName))
  const body = der(0x30, versionAndSerial, algorithm, commonName, validity, commonName, spki, extensions)
  const signature = der(0x03, Buffer.of(0), sign('sha256', body, privateKey))
  const base64 = der(0x30, body, algorithm, signature).toString('base64').match(/.{1,64}/g)?.join('\n')
  const files = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  writeFileSync(files.cert, `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`)
  writeFileSync(files.key, privateKey.export({ format: 'pem', type: 'pkcs8' }))
  return files
}

/** An element of DER (X.690): tag, length, content. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const head = length < 128 ? [tag, length] : length < 256 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from(head), content])
}

/** `YYMMDDhhmmssZ` (X.680). */
function utcTime(time: Date): string {
  return time.toISOString().replaceAll(/[-:T]|\.\d+/g, '').slice(2)
}

function hex(digits: string): Buffer {
  return Buffer.from(digits, 'hex')
}
