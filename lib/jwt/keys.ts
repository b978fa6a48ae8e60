/**
 * The key of `SVC_MwJwt`: a PEM, a JSON Web Key (RFC 7517), or the secret itself.
 *
 * A public key is never used as a secret, whatever its format: anyone could create an HMAC with it (RFC 8725, section
 * 2.1).
 */
import { createPublicKey, createSecretKey, X509Certificate, type JsonWebKey, type KeyObject } from 'node:crypto'
import { reasonOf } from '../base/reason.ts'
import type { Algorithm } from './settings.ts'
import { algorithms, decodeBase64url } from './token.ts'

type KeyKind = (typeof algorithms)[Algorithm]['kind']

/** A key that fits every algorithm, or a problem, phrased to follow the setting's name and without any secret. */
type KeyReading =
  | { readonly key: KeyObject; readonly warnings: readonly string[] }
  | { readonly problem: string }

const minRsaBits = 2048
const pemLine = /-{4} ?(?:BEGIN|END) /
const sshLine = /\b(?:ssh|ecdsa-sha2|sk)-\S+\s+AAAA/
/** An SSH key begins with the length and the first letters of its type (RFC 4253, section 6.6). */
const sshBytes = /^\0{3}.(?:sk-)?(?:ssh|ecdsa)-/s
const publicJwk = /"kty"\s*:\s*"(?!oct")/
const jwkTypes: Readonly<Record<KeyKind, string>> = { secret: 'oct', RSA: 'RSA', 'P-256': 'EC', Ed25519: 'OKP' }

/**
 * Reads a key.
 * @param names the algorithms to use it with; at least one, all of one kind
 */
export function readKey(text: string, names: readonly [Algorithm, ...Algorithm[]]): KeyReading {
  const { kind } = algorithms[names[0]]
  if (pemLine.test(text)) return kind === 'secret' ? notSecret('a PEM') : readPem(text, kind)
  if (text.trimStart().startsWith('{')) return readJwk(text, kind, names)
  if (kind !== 'secret') return { problem: `must be a public key for ${names[0]}: it is neither a PEM nor a JWK` }
  if (/^\s*["[]/.test(text)) return { problem: 'must be one JWK, or a secret: it begins like other JSON' }
  if (decodings(text).some(isPublicKey)) return notSecret('a public key')
  return secretOf(Buffer.from(text), names)
}

function notSecret(form: string): KeyReading {
  const advice = 'name the algorithm of that key in setup.jwt.algorithms'
  return { problem: `must be a secret for an HMAC: it is ${form}; ${advice}` }
}

function readPem(text: string, kind: KeyKind): KeyReading {
  const isPrivate = /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)
  return publicKeyOf(() => createPublicKey(text), 'PEM', kind, isPrivate)
}

function readJwk(text: string, kind: KeyKind, names: readonly Algorithm[]): KeyReading {
  const jwk = parseJson(text)
  if (jwk === undefined) return { problem: 'must be a JWK, since it begins with {: it is not valid JSON' }
  if ('keys' in jwk) return { problem: 'must be one key: it is a set of keys; give one of its members' }
  const { kty, use, alg, n, e, crv, x, y, k } = jwk
  if (kty !== jwkTypes[kind]) return wrongJwk('kty', kty, jwkTypes[kind], names)
  if (use !== undefined && use !== 'sig') return wrongJwk('use', use, 'sig', names)
  const other = names.find((name) => alg !== undefined && name !== alg)
  if (other !== undefined) return wrongJwk('alg', alg, other, names)
  if (kind === 'secret') {
    const secret = typeof k === 'string' ? decodeBase64url(k) : undefined
    return secret === undefined ? { problem: 'must have its secret as base64url in k' } : secretOf(secret, names)
  }
  const members = kind === 'RSA' ? { kty, n, e } : kind === 'P-256' ? { kty, crv, x, y } : { kty, crv, x }
  // createPublicKey checks the members, and throws when they are not a key.
  return publicKeyOf(() => createPublicKey({ key: members as JsonWebKey, format: 'jwk' }), 'JWK', kind, 'd' in jwk)
}

function wrongJwk(member: string, found: unknown, wanted: string, names: readonly Algorithm[]): KeyReading {
  const shown = typeof found === 'string' ? found.slice(0, 40) : `of type ${typeof found}`
  return { problem: `must be a JWK with ${member} ${wanted} for ${names.join(', ')}: its ${member} is ${shown}` }
}

function secretOf(bytes: Buffer, names: readonly Algorithm[]): KeyReading {
  if (bytes.length === 0) return { problem: 'must be a secret: it is empty' }
  if (isPublicKey(bytes)) return notSecret('a public key')
  const name = names.find((one) => bytes.length < algorithms[one].secretBytes)
  const warning =
    name && `has ${bytes.length} bytes: ${name} needs at least ${algorithms[name].secretBytes} (RFC 7518, section 3.2)`
  return { key: createSecretKey(bytes), warnings: warning === undefined ? [] : [warning] }
}

function publicKeyOf(make: () => KeyObject, form: string, kind: KeyKind, isPrivate: boolean): KeyReading {
  let key: KeyObject
  try {
    key = make()
  } catch (error) {
    const reason = reasonOf(error)
    return { problem: `must be a readable key without a passphrase: this ${form} cannot be read (${reason})` }
  }
  const found = kindOf(key)
  if (found !== kind) return { problem: `must be a key of kind ${kind}: it is of kind ${found}` }
  const bits = key.asymmetricKeyDetails?.modulusLength
  if (bits !== undefined && bits < minRsaBits) {
    return { problem: `must be an RSA key of at least ${minRsaBits} bits (RFC 7518, section 3.3): it has ${bits}` }
  }
  const warning = 'is a private key: its public half is used; keep the private one with the issuer only'
  return { key, warnings: isPrivate ? [warning] : [] }
}

/** Returns the kind of a public key; Node's name of its type if no algorithm here uses it. */
function kindOf(key: KeyObject): string {
  const type = key.asymmetricKeyType
  if (type === 'rsa') return 'RSA'
  if (type === 'ed25519') return 'Ed25519'
  if (type !== 'ec') return String(type)
  const curve = key.asymmetricKeyDetails?.namedCurve
  return curve === 'prime256v1' ? 'P-256' : `EC ${String(curve)}`
}

/** Decodes a text as base64 or base64url, and as hex; other characters are skipped. */
function decodings(text: string): readonly Buffer[] {
  return [Buffer.from(text, 'base64'), Buffer.from(text.replace(/0x|[^\da-f]/gi, ''), 'hex')]
}

/** Returns whether bytes are a public key in a file format: DER, PEM, JWK, or the line or blob of an SSH key. */
function isPublicKey(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  if ([sshBytes, sshLine, pemLine, publicJwk].some((shape) => shape.test(text))) return true
  const parsers = [
    () => createPublicKey({ key: bytes, format: 'der', type: 'spki' }),
    () => createPublicKey({ key: bytes, format: 'der', type: 'pkcs1' }),
    () => new X509Certificate(bytes),
  ]
  return parsers.some((parse) => {
    try {
      return parse() !== undefined
    } catch {
      return false // not a key in this format
    }
  })
}

function parseJson(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>> // it begins with {, so it is an object
  } catch {
    return undefined
  }
}
