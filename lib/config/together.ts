/** Checks that values are consistent: problems that prevent a start, and warnings. */
import { statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { allowWarning } from '../access/allow-list.ts'
import { isDerivedSecret } from '../access/credentials.ts'
import { hasMd5, hasScrypt } from '../access/key-derivation.ts'
import { hasHmacSha1 } from '../access/totp.ts'
import { isBoundToLoopback } from '../http/host.ts'
import { isAtOrIn, mayOthersRead } from '../files/paths.ts'
import { errorOfValues, fileToWrite, type LoadedConfig, type ValueProblem } from './load.ts'
import type { Config, ConfigKey } from './table.ts'

/** Paths that must not be inside the folder of static files, where everybody can read them. */
const privateKeys = [
  'paths.routes',
  'paths.jobs',
  'paths.middleware',
  'paths.errors',
  'paths.cache',
  'paths.log',
  'paths.temp',
  'paths.data',
  'server.tls.key',
] as const satisfies ConfigKey[]

/** Returns the absolute path of the folder of static files, if any. */
export function publicFolder({ config, folder }: Pick<LoadedConfig, 'config' | 'folder'>): string | undefined {
  return config['paths.public'] === '' ? undefined : resolve(folder, config['paths.public'])
}

/** @throws ConfigError when values are inconsistent */
export function refuseInconsistent(loaded: LoadedConfig): void {
  const problems = inconsistencies(loaded)
  if (problems.length > 0) throw errorOfValues(loaded, problems)
}

/** Returns the problems that prevent a start with these values. */
export function inconsistencies(loaded: LoadedConfig): ValueProblem[] {
  const { config } = loaded
  const problems: ValueProblem[] = []
  const published = publishedIn(loaded)
  if (published.length > 0) {
    const names = published.join(' and ')
    const text = `paths.public must contain nothing private, since everybody can read it: it contains ${names}`
    problems.push({ key: 'paths.public', text })
  }
  const fallback = config['static.fallback']
  if (fallback !== '' && !isFileIn(publicFolder(loaded), fallback)) {
    const text = `static.fallback must be a file in paths.public, relative to it: it is ${JSON.stringify(fallback)}`
    problems.push({ key: 'static.fallback', text })
  }
  if (config['shared.url'] !== '' && config['app.env'] === 'prod' && config.app_key === '') {
    const text = 'app_key must be set together with shared.url: otherwise each server makes its own'
    problems.push({ key: 'app_key', text })
  }
  problems.push(...[md5Problem(config), sha1Problem(config)].filter((problem) => problem !== undefined))
  for (const { text, path } of loaded.settings.problems) problems.push({ key: 'settings', text, path })
  return problems
}

/** Returns the problem where the crypto library refuses MD5, which the panel needs unless it is hardened. */
export function md5Problem({ 'admin.hardened': hardened }: Config): ValueProblem | undefined {
  if (hardened || hasMd5()) return undefined
  const text = 'admin.hardened must be true: the crypto library of this Node refuses MD5, as one in FIPS mode does'
  return { key: 'admin.hardened', text }
}

/** Returns the problem where the crypto library refuses HMAC-SHA1, which the codes of the second factor need. */
export function sha1Problem({ 'admin.totp': secret }: Config): ValueProblem | undefined {
  if (secret === '' || hasHmacSha1()) return undefined
  const text = 'admin.totp must be empty: the crypto library of this Node refuses HMAC-SHA1, which its codes need'
  return { key: 'admin.totp', text }
}

/** The warning about a password that cannot be checked. */
export const scryptRefused = 'admin.password was made with scrypt, which the crypto library of this Node refuses: '
  + 'set it again with "svc.js passwd"'

/** The warning about a second factor that does not protect. */
const secretDerived = 'admin.totp is set, but admin.secret looks like an MD5 made from the password: anyone who '
  + 'knows the password could sign in without a code; empty admin.secret, and the next sign-in makes a random one'

/** Returns warnings for the operator. */
export function inconsistencyWarnings({ config, folder }: LoadedConfig): string[] {
  const { 'server.host': host, 'server.tls.key': tlsKey, 'admin.password': password } = config
  const warnings: string[] = []
  if (config['app.env'] === 'dev' && !isBoundToLoopback(host)) {
    warnings.push(
      `app.env is dev and server.host is ${host}: the admin panel is open to everybody who reaches this machine`,
    )
  }
  const shutOut = allowWarning(config)
  if (shutOut !== undefined) warnings.push(shutOut)
  if (config['admin.hardened'] && /^[0-9a-f]{32}$/.test(password)) {
    warnings.push(
      'admin.hardened is true and admin.password is still an MD5: set the password again with "svc.js passwd"',
    )
  }
  if (config['admin.totp'] !== '' && isDerivedSecret(config['admin.secret'])) warnings.push(secretDerived)
  if (password.startsWith('scrypt') && !hasScrypt()) warnings.push(scryptRefused)
  if (tlsKey !== '' && mayOthersRead(resolve(folder, tlsKey))) {
    warnings.push(`server.tls.key: everybody on this machine can read ${tlsKey}: remove that permission (chmod o-r)`)
  }
  return warnings
}

/** Returns the number of processes in `server.processes`; `auto`: one for each core that this process may use. */
export function processCount(config: Config): number {
  const count = config['server.processes']
  return count === 'auto' ? availableParallelism() : count
}

function isFileIn(folder: string | undefined, name: string): boolean {
  return folder !== undefined && statSync(join(folder, name), { throwIfNoEntry: false })?.isFile() === true
}

function publishedIn(loaded: LoadedConfig): string[] {
  const { config, file, folder } = loaded
  const open = publicFolder(loaded)
  if (open === undefined) return []
  const places = privateKeys
    .map((key): [what: string, path: string] => [key, config[key]])
    .filter(([, path]) => path !== '')
  if (file !== undefined) places.unshift(['the configuration file', file])
  const target = file === undefined ? undefined : fileToWrite(file, config)
  if (target !== undefined && target !== file) places.unshift(['the local configuration file', target])
  return places.filter(([, path]) => isAtOrIn(open, resolve(folder, path))).map(([what]) => what)
}
