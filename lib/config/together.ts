/**
 * What values of a configuration mean together: what keeps a server from starting, and what its operator should know.
 */
import { resolve } from 'node:path'
import { isBoundToLoopback } from '../http/host.ts'
import { isAtOrIn, mayOthersRead } from '../storage/paths.ts'
import type { LoadedConfig, ValueProblem } from './load.ts'
import type { Config, ConfigKey } from './table.ts'

/** What must not lie in the folder of static files, where everybody can read it. */
const privateKeys = [
  'paths.routes',
  'paths.middleware',
  'paths.cache',
  'paths.log',
  'paths.temp',
  'server.tls.key',
] as const satisfies ConfigKey[]

/** The absolute path of the folder of static files; undefined: there is none. */
export function publicFolder({
  config,
  folder,
}: {
  readonly config: Config
  readonly folder: string
}): string | undefined {
  return config['paths.public'] === '' ? undefined : resolve(folder, config['paths.public'])
}

/** What keeps a server with these values from starting. */
export function problemsTogether(loaded: LoadedConfig): ValueProblem[] {
  const { config } = loaded
  const problems: ValueProblem[] = []
  const published = publishedIn(loaded)
  if (published.length > 0) {
    const held = published.join(' and ')
    const text = `paths.public must be a folder of which everybody may read everything: it holds ${held}`
    problems.push({ key: 'paths.public', text })
  }
  if (config['shared.url'] !== '' && config['app.env'] === 'prod' && config.app_key === '') {
    problems.push({
      key: 'app_key',
      text: 'app_key must be set where shared.url is: each server would make one of its own',
    })
  }
  return problems
}

/** What an operator should know of these values. */
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
      'admin.hardened is true and admin.password is still an MD5: set the password anew with "svc.js passwd"',
    )
  }
  if (tlsKey !== '' && mayOthersRead(resolve(folder, tlsKey))) {
    warnings.push(`server.tls.key: everybody on this machine may read ${tlsKey}: take that right away (chmod o-r)`)
  }
  return warnings
}

function publishedIn(loaded: LoadedConfig): string[] {
  const { config, file, folder } = loaded
  const open = publicFolder(loaded)
  if (open === undefined) return []
  const places = privateKeys
    .map((key): [what: string, path: string] => [key, config[key]])
    .filter(([, path]) => path !== '')
  if (file !== undefined) places.unshift(['the configuration file', file])
  return places.filter(([, path]) => isAtOrIn(open, resolve(folder, path))).map(([what]) => what)
}
