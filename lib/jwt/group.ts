/**
 * The settings of `SVC_MwJwt`, `setup.jwt`, which are prepared with their key file and then put into use as a whole.
 * The key is read and imported here only: a new key in the file takes effect with the next reload.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { type BuiltInGroup, readSettings, SettingsError, type SettingsOf, settingsTable } from '../chain/settings.ts'
import { isAtOrIn } from '../storage/paths.ts'
import { readKey } from './keys.ts'
import { createJwtMiddleware, type JwtVerifier } from './middleware.ts'
import { algorithms, checkClaims, isAlgorithm, verifyJws, type Algorithm } from './token.ts'

interface JwtGroupOptions {
  /** The folder of a relative `key_file`, absolute. */
  readonly folder: string
  /** `paths.public`, absolute; undefined when there is none. */
  readonly publicFolder?: string | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly log: (module: string) => ModuleLogger
}

const algorithmNames = Object.keys(algorithms).join(', ')

const table = settingsTable({
  algorithms: {
    kind: 'list', default: ['HS256'], check: checkAlgorithm,
    meaning: `The algorithms that a token may be signed with, of ${algorithmNames}; all of one kind of key.`,
  },
  key: {
    kind: 'string', default: '', secret: true,
    meaning: 'The key: a PEM, a JWK, or the secret of an HMAC as it is.',
  },
  key_file: {
    kind: 'string', default: '', check: checkFile,
    meaning: 'Instead of `key`, a file that holds it, relative to the folder of `svc.json`. '
      + 'One line break at its end is not part of the key.',
  },
  issuer: {
    kind: 'string', default: '',
    meaning: 'What the claim `iss` must be; empty: it does not matter.',
  },
  audience: {
    kind: 'string', default: '',
    meaning: 'What the claim `aud` must be or hold; empty: it does not matter.',
  },
  leeway_s: {
    kind: 'integer', min: 0, max: 3600, default: 0,
    meaning: 'Seconds by which the clock of the issuer may differ from this one.',
  },
})

type JwtSettings = SettingsOf<typeof table>

interface KeySource {
  readonly setting: 'setup.jwt.key' | 'setup.jwt.key_file'
  readonly text: string
}

/** Makes the group `jwt` with its middleware `SVC_MwJwt`. */
export function createJwtGroup({ folder, publicFolder, now, log }: JwtGroupOptions): BuiltInGroup {
  let current: JwtVerifier | undefined
  return {
    name: 'jwt',
    table,
    middleware: new Map([['SVC_MwJwt', createJwtMiddleware(() => current, log('worker_http'))]]),
    prepare(given) {
      const { settings, warnings } = readSettings('jwt', table, given)
      const names = algorithmsOf(settings)
      const source = keySourceOf(settings, folder, publicFolder)
      const made = source === undefined ? undefined : verifierOf(source, names, settings, now)
      return {
        warnings: [...warnings, ...(made?.warnings ?? [])],
        unready: made === undefined ? 'setup.jwt has no key and no key_file' : undefined,
        commit() {
          current = made?.verifier
        },
        abandon() {},
      }
    },
  }
}

function checkAlgorithm(text: string): string | undefined {
  return isAlgorithm(text) ? undefined : `must be one of ${algorithmNames}`
}

function checkFile(text: string): string | undefined {
  return /[\u0000-\u001f\u007f]/.test(text) ? 'must be a path without control characters' : undefined
}

/** The algorithms, at least one and of one kind of key. Throws SettingsError. */
function algorithmsOf(settings: JwtSettings): readonly [Algorithm, ...Algorithm[]] {
  const [first, ...others] = settings.algorithms.filter(isAlgorithm)
  if (first === undefined) {
    const problem = `setup.jwt.algorithms must name at least one of ${algorithmNames}: it is empty`
    throw new SettingsError([problem])
  }
  const other = others.find((name) => algorithms[name].kind !== algorithms[first].kind)
  if (other !== undefined) {
    const problem = `setup.jwt.algorithms must all use one kind of key: ${first} and ${other} take different keys`
    throw new SettingsError([problem])
  }
  return [first, ...others]
}

/** The text of the key; undefined when there is none. Throws SettingsError. */
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
  const rules = { issuer: settings.issuer, audience: settings.audience, leewayS: settings.leeway_s }
  const verifier: JwtVerifier = (token) => {
    const jws = verifyJws(token, names, key)
    if ('problem' in jws) return jws
    const problem = checkClaims(jws.payload, rules, now())
    return problem === undefined ? { claims: jws.payload } : { problem }
  }
  return { verifier, warnings: reading.warnings.map((warning) => `${setting} ${warning}`) }
}
