/**
 * Checks of strings in the configuration. Each function returns undefined for a valid value, and else the rule that it
 * breaks (`must be ...`). The checks of proxies, hosts and origins are in the files that parse them.
 */
import { isIP } from 'node:net'

const controlCharacter = /[\u0000-\u001f\u007f]/
const hostPattern = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/
const rotatedLogName = /^svc_[0-9]{14}_[0-9]+\.log$/
const longestFileName = 200

/** A host name or an address to listen on, IPv6 without brackets. */
export function checkHostToBind(text: string): string | undefined {
  const looksLikeAddress = /^[0-9.]+$/.test(text)
  const right = isIP(text) !== 0 || (!looksLikeAddress && text.length <= 253 && hostPattern.test(text))
  return right ? undefined : 'must be a host name or an address, without port and brackets, such as 127.0.0.1 or ::1'
}

/** The name of a log file: no path, and not a name that rotation gives, since retention deletes such files. */
export function checkFileName(text: string): string | undefined {
  const path = text === '' || text === '.' || text === '..' || /[/\\]/.test(text)
  if (path || controlCharacter.test(text) || Buffer.byteLength(text) > longestFileName) {
    return `must be a file name without a path, of at most ${longestFileName} bytes`
  }
  return rotatedLogName.test(text) ? 'must not be a name that rotation gives, since old ones are deleted' : undefined
}

/** The path of a folder, absolute or relative. */
export function checkPath(text: string): string | undefined {
  const wrong = text === '' || controlCharacter.test(text)
  return wrong ? 'must be a path, not empty and without control characters' : undefined
}

/**
 * A stored password: empty, the MD5 as 32 lower-case hex digits, or a hash of the hardened kind, which begins `scrypt`.
 */
export function checkPasswordHash(text: string): string | undefined {
  return text === '' || /^[0-9a-f]{32}$/.test(text) || text.startsWith('scrypt')
    ? undefined
    : 'must be empty or a hash, the MD5 of the password as 32 lower-case hex digits'
}
