/**
 * Time-based one-time codes (TOTP, RFC 6238, over HOTP, RFC 4226), with the parameters that every authenticator app
 * knows: HMAC-SHA1, six digits, steps of 30 seconds.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { isEqual } from '../tokens/signature.ts'

/** What an authenticator app shows beside its codes. */
interface Account {
  /** The server: `svc on HOST`. */
  readonly issuer: string
  /** The admin's name. */
  readonly user: string
}

const stepMs = 30_000
const digits = 6
/** A code of the step before and after counts too: clocks differ, and typing takes time (RFC 6238, section 5.2). */
const toleratedSteps = 1
/** Of a new secret; RFC 4226, section 4 recommends 160 bits. */
const newSecretBytes = 20
/** RFC 4226, section 4 requires 128 bits. */
const leastSecretBytes = 16
/** RFC 4648, section 6. */
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const base32Pattern = /^[A-Z2-7]*$/
let sha1IsThere: boolean | undefined

/** Whether the crypto library of this Node has HMAC-SHA1. */
export function hasHmacSha1(): boolean {
  if (sha1IsThere !== undefined) return sha1IsThere
  try {
    createHmac('sha1', Buffer.alloc(newSecretBytes)).update('').digest()
    sha1IsThere = true
  } catch {
    sha1IsThere = false
  }
  return sha1IsThere
}

/** Makes a secret for `admin.totp`: 20 random bytes in base32. */
export function makeTotpSecret(): string {
  return toBase32(randomBytes(newSecretBytes))
}

/** Encodes bytes in base32 (RFC 4648, section 6), without padding. */
export function toBase32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += alphabet[(value >>> bits) & 31]
    }
    value &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + alphabet[(value << (5 - bits)) & 31]
}

/** Returns what `admin.totp` must be; undefined if it is valid. */
export function checkTotpSecret(text: string): string | undefined {
  if (text === '' || (base32Pattern.test(text) && fromBase32(text).length >= leastSecretBytes)) return undefined
  const rule = `at least ${leastSecretBytes} bytes in base32, which has A-Z and 2-7`
  return `must be empty, or ${rule}: set it with svc passwd --totp`
}

/** Returns the address that authenticator apps read, as a link or from a QR code (Key URI Format). */
export function otpauthAddress(secret: string, { issuer, user }: Account): string {
  const [from, name] = [encodeURIComponent(issuer), encodeURIComponent(user)]
  const parameters = `secret=${secret}&issuer=${from}&algorithm=SHA1&digits=${digits}&period=${stepMs / 1000}`
  return `otpauth://totp/${from}:${name}?${parameters}`
}

/** Returns the code of a time step, counted from 1970 (RFC 4226, section 5.3). */
export function codeOf(secret: string, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const hash = createHmac('sha1', fromBase32(secret)).update(counter).digest()
  const offset = (hash.at(-1) as number) & 15 // A hash is never empty.
  const number = hash.readUInt32BE(offset) & 0x7fffffff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/**
 * Returns the latest time step, among those that are valid now, whose code this is. Its duration does not reveal which.
 * @param nowMs milliseconds since 1970
 * @returns undefined for a wrong code
 */
export function stepOf(secret: string, code: string, nowMs: number): number | undefined {
  const current = Math.floor(nowMs / stepMs)
  let found: number | undefined
  for (let step = current - toleratedSteps; step <= current + toleratedSteps; step += 1) {
    if (step >= 0 && isEqual(codeOf(secret, step), code)) found = step
  }
  return found
}

/** Decodes base32, which `base32Pattern` matches. Bits that fill no byte are dropped. */
function fromBase32(text: string): Buffer {
  const bytes: number[] = []
  let bits = 0
  let value = 0
  for (const character of text) {
    value = (value << 5) | alphabet.indexOf(character)
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push(value >>> bits)
    value &= (1 << bits) - 1
  }
  return Buffer.from(bytes)
}
