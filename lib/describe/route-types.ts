/**
 * The types of an application's routes, `svc.routes.d.ts`: for each name the path, the parameters and the methods. They
 * come from the route files alone; no module is loaded.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readRouteFiles } from '../application/route-files.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { ReloadProblem } from '../control/commands.ts'
import { replaceFileSync } from '../files/replace-file.ts'
import type { Route } from '../routing/route.ts'
import { pathTemplate } from './path-template.ts'

/** The types, and the problems of the route files, whose routes are missing from them. */
interface RouteTypes {
  /** The absolute path of `svc.routes.d.ts`, beside the configuration. */
  readonly file: string
  readonly text: string
  readonly problems: readonly ReloadProblem[]
}

/** The name of the file. */
export const typesName = 'svc.routes.d.ts'

const head = `// Written by "svc types" from the route files, and by "svc --env dev" when they change. Do not edit it.
declare module 'svc' {
  interface Routes {
`

/** Reads the route files of an application and returns the types of its routes. */
export function routeTypesOf(loaded: LoadedConfig): RouteTypes {
  const { config, folder } = loaded
  const rules = { root: resolve(folder, config['paths.root']), middlewareKnown: () => true }
  const { files, problems } = readRouteFiles(resolve(folder, config['paths.routes']), rules)
  const lines = files.flatMap(({ records }) => records.map(typeOf))
  return { file: join(folder, typesName), text: `${head}${lines.join('')}  }\n}\n`, problems }
}

/**
 * Returns whether the file of the types has this text; undefined if there is no such file.
 * @throws the error of `node:fs` for a file that cannot be read
 */
export function isCurrent({ file, text }: RouteTypes): boolean | undefined {
  try {
    return readFileSync(file, 'utf8') === text
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

/**
 * Writes the file of the types.
 * @throws the error of `node:fs`
 */
export function writeRouteTypes({ file, text }: RouteTypes): void {
  replaceFileSync(file, (temporary) => writeFileSync(temporary, text))
}

/** A name may have any character but control characters, so it is quoted. */
function typeOf({ record: { name, method }, pattern }: Pick<Route<unknown>, 'record' | 'pattern'>): string {
  const params = pattern.names.map((parameter) => `readonly ${JSON.stringify(parameter)}: string`).join('; ')
  const methods = method === '*' ? 'string' : method.split(',').map((one) => JSON.stringify(one)).join(' | ')
  // The characters of an encoded literal end neither a string nor a template.
  const path = pathTemplate(pattern, () => '${string}')
  const members = [`path: \`${path}\``, `params: { ${params} }`, `methods: ${methods}`]
  return `    readonly ${JSON.stringify(name)}: { ${members.map((member) => `readonly ${member}`).join('; ')} }\n`
}
