/** Checks of values that belong together: problems that keep a server from starting, and warnings. */
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { isBoundToLoopback } from '../http/host.ts'
import { isAtOrIn, mayOthersRead } from '../files/paths.ts'
import { errorOfValues, fileToWrite, type LoadedConfig, type ValueProblem } from './load.ts'
import type { Config, ConfigKey } from './table.ts'

/** Paths that must not be inside the folder of static files, where everybody can read them. */
const privateKeys = [
  'paths.routes',
  'paths.middleware',
  'paths.errors',
  'paths.cache',
  'paths.log',
  'paths.temp',
  'server.tls.key',
] as const satisfies ConfigKey[]

/** The absolute path of the folder of static files, or undefined. */
export function publicFolder({ config, folder }: Pick<LoadedConfig, 'config' | 'folder'>): string | undefined {
  return config['paths.public'] === '' ? undefined : resolve(folder, config['paths.public'])
}

/** @throws ConfigError when values do not go together */
export function refuseTogether(loaded: LoadedConfig): void {
  const problems = problemsTogether(loaded)
  if (problems.length > 0) throw errorOfValues(loaded, problems)
}

/** Problems that keep a server with these values from starting. */
export function problemsTogether(loaded: LoadedConfig): ValueProblem[] {
  const { config } = loaded
  const problems: ValueProblem[] = []
  const published = publishedIn(loaded)
  if (published.length > 0) {
    const held = published.join(' and ')
    const text = `paths.public must contain nothing private, since everybody can read it: it contains ${held}`
    problems.push({ key: 'paths.public', text })
  }
  if (config['shared.url'] !== '' && config['app.env'] === 'prod' && config.app_key === '') {
    const text = 'app_key must be set together with shared.url: otherwise each server makes its own'
    problems.push({ key: 'app_key', text })
  }
  return problems
}

/** Warnings for the operator. */
export function warningsTogether({ config, folder }: LoadedConfig): string[] {
  const { 'server.host': host, 'server.tls.key': tlsKey, 'admin.password': password } = config
  const warnings: string[] = []
  if (config['app.env'] === 'dev' && !isBoundToLoopback(host)) {
    warnings.push(
      `app.env is dev and server.host is ${host}: the admin panel is open to everybody who reaches this machine`,
    )
  }
  if (config['admin.hardened'] && /^[0-9a-f]{32}$/.test(password)) {
    warnings.push(
      'admin.hardened is true and admin.password is still an MD5: set the password again with "svc.js passwd"',
    )
  }
  if (tlsKey !== '' && mayOthersRead(resolve(folder, tlsKey))) {
    warnings.push(`server.tls.key: everybody on this machine can read ${tlsKey}: remove that permission (chmod o-r)`)
  }
  return warnings
}

/** The number of processes that `server.processes` asks for: `auto` is one for each core that this process may use. */
export function processCount(config: Config): number {
  const asked = config['server.processes']
  return asked === 'auto' ? availableParallelism() : asked
}

function publishedIn(loaded: LoadedConfig): string[] {
  const { config, file, folder } = loaded
  const open = publicFolder(loaded)
  if (open === undefined) return []
  const places = privateKeys
    .map((key): [what: string, path: string] => [key, config[key]])
    .filter(([, path]) => path !== '')
  if (file !== undefined) places.unshift(['the configuration file', file])
  const written = file === undefined ? undefined : fileToWrite(file, config)
  if (written !== undefined && written !== file) places.unshift(['the local configuration file', written])
  return places.filter(([, path]) => isAtOrIn(open, resolve(folder, path))).map(([what]) => what)
}
