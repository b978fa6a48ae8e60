/**
 * Creates the function that verifies the tokens of `SVC_MwJwt`. The key is read and imported only here: a new key in
 * the file takes effect with the next reload.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { SettingsError } from '../chain/settings.ts'
import { isAtOrIn } from '../files/paths.ts'
import { readKey } from './keys.ts'
import { algorithmNames, isAlgorithm } from './settings.ts'
import type { Algorithm, JwtGroupOptions, JwtSettings, JwtVerifier } from './settings.ts'
import { algorithms, checkClaims, verifyJws } from './token.ts'

interface KeySource {
  readonly setting: 'setup.jwt.key' | 'setup.jwt.key_file'
  readonly text: string
}

/**
 * Creates the verifier, with warnings about the key; undefined when the settings name no key.
 * @throws SettingsError
 */
export function createVerifier(
  settings: JwtSettings,
  { folder, publicFolder, now }: JwtGroupOptions,
): { readonly verifier: JwtVerifier; readonly warnings: readonly string[] } | undefined {
  const names = algorithmsOf(settings)
  const source = keySourceOf(settings, folder, publicFolder)
  return source && verifierOf(source, names, settings, now)
}

/** Returns the algorithms, at least one, all for one kind of key. Throws SettingsError. */
function algorithmsOf(settings: JwtSettings): readonly [Algorithm, ...Algorithm[]] {
  const [first, ...others] = settings.algorithms.filter(isAlgorithm)
  if (first === undefined) {
    const problem = `setup.jwt.algorithms must name at least one of ${algorithmNames.join(', ')}: it is empty`
    throw new SettingsError([problem])
  }
  const other = others.find((name) => algorithms[name].kind !== algorithms[first].kind)
  if (other !== undefined) {
    const problem = `setup.jwt.algorithms must all use one kind of key: ${first} and ${other} take different keys`
    throw new SettingsError([problem])
  }
  return [first, ...others]
}

/** Returns the text of the key, if any. Throws SettingsError. */
function keySourceOf({ key, key_file: file }: JwtSettings, folder: string, open?: string): KeySource | undefined {
  if (key !== '' && file !== '') {
    throw new SettingsError(['setup.jwt must have key or key_file: it has both; leave one out'])
  }
  if (file !== '' && open !== undefined && isAtOrIn(open, resolve(folder, file))) {
    throw new SettingsError([`setup.jwt.key_file must not be in paths.public, which everybody may read: it is ${file}`])
  }
  if (file !== '') return { setting: 'setup.jwt.key_file', text: readKeyFile(resolve(folder, file)) }
  return key === '' ? undefined : { setting: 'setup.jwt.key', text: key }
}

function readKeyFile(path: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (cause) {
    const reason = reasonOf(cause)
    throw new SettingsError([`setup.jwt.key_file must be a file that can be read: ${reason}`])
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
  } catch {
    const advice = 'write a secret of other bytes as a JWK with kty oct'
    throw new SettingsError([`setup.jwt.key_file must be UTF-8 text: ${path} is not; ${advice}`])
  }
}

function verifierOf(
  { setting, text }: KeySource,
  names: readonly [Algorithm, ...Algorithm[]],
  settings: JwtSettings,
  now: () => number,
): { readonly verifier: JwtVerifier; readonly warnings: readonly string[] } {
  const reading = readKey(text, names)
  if ('problem' in reading) throw new SettingsError([`${setting} ${reading.problem}`])
  const { key } = reading
  const verifier: JwtVerifier = (token) => {
    const jws = verifyJws(token, names, key)
    if ('problem' in jws) return jws
    const problem = checkClaims(jws.payload, settings, now())
    return problem === undefined ? { claims: jws.payload } : { problem }
  }
  return { verifier, warnings: reading.warnings.map((warning) => `${setting} ${warning}`) }
}
