/**
 * Checks of strings in the configuration. Each function returns undefined for a valid value, otherwise the rule that it
 * breaks (`must be ...`). The checks of proxies, hosts and origins are in the files that parse them.
 */
import { isIP } from 'node:net'
import { isPlainPath } from '../static/static-path.ts'

const controlCharacter = /[\u0000-\u001f\u007f]/
const hostPattern = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/
const rotatedLogName = /^svc_[0-9]{14}_[0-9]+\.log$/
const longestFileName = 200
/** A type with parameters (RFC 9110, section 8.3.1), of visible ASCII. */
const mediaType = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:;[\x20-\x7e]+)?$/

/** Checks a host name or address to listen on, IPv6 without brackets. */
export function checkHostToBind(text: string): string | undefined {
  const looksLikeAddress = /^[0-9.]+$/.test(text)
  const right = isIP(text) !== 0 || (!looksLikeAddress && text.length <= 253 && hostPattern.test(text))
  return right ? undefined : 'must be a host name or an address, without port and brackets, such as 127.0.0.1 or ::1'
}

/** Checks the name of a log file: no path, and no name that rotation uses, since retention deletes such files. */
export function checkFileName(text: string): string | undefined {
  const path = text === '' || text === '.' || text === '..' || /[/\\]/.test(text)
  if (path || controlCharacter.test(text) || Buffer.byteLength(text) > longestFileName) {
    return `must be a file name without a path, of at most ${longestFileName} bytes`
  }
  return rotatedLogName.test(text) ? 'must not be a name that rotation uses, since old ones are deleted' : undefined
}

/** Checks the path of a folder, absolute or relative. */
export function checkPath(text: string): string | undefined {
  const wrong = text === '' || controlCharacter.test(text)
  return wrong ? 'must be a path, not empty and without control characters' : undefined
}

/** Checks the path of a static file, relative to their folder; empty for none. */
export function checkFallback(text: string): string | undefined {
  const right = text === '' || (isPlainPath(`/${text}`) && !controlCharacter.test(text))
  return right ? undefined : 'must be a path below paths.public, such as index.html, and no dot file'
}

/** Checks types of files by their endings. */
export function checkTypes(types: Readonly<Record<string, unknown>>): string | undefined {
  const wrong = Object.entries(types).find(([ending, type]) => {
    return !/^\.?[\w+-]+$/.test(ending) || typeof type !== 'string' || !mediaType.test(type)
  })
  const example = 'must have endings with their types, such as {"glb": "model/gltf-binary"}'
  return wrong && `${example}: it has ${JSON.stringify(Object.fromEntries([wrong]))}`
}

/**
 * Checks a stored password: empty, an MD5 of 32 lower-case hex digits, or a hardened hash, which begins with its
 * function.
 */
export function checkPasswordHash(text: string): string | undefined {
  return text === '' || /^[0-9a-f]{32}$/.test(text) || /^scrypt|^\$pbkdf2-sha256\$/.test(text)
    ? undefined
    : 'must be empty or a hash, the MD5 of the password as 32 lower-case hex digits'
}

/** The rights of Node's permission model that the server gives up when it listens, in Node's words. */
export const startRights = ['child', 'worker', 'addon', 'wasi', 'ffi'] as const

/** Checks an entry of `permission.keep`. */
export function checkRight(right: string): string | undefined {
  return startRights.some((known) => known === right) ? undefined : `must be ${startRights.join(', ')}`
}
