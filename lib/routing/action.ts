/**
 * Parses a route's `action`: `notes/list.js` (the default export of a module), `notes.js@add` (a named export),
 * `notes/list.html` (a view), `svc:openapi` (the description of the routes).
 */
import { isAbsolute, posix, resolve, sep } from 'node:path'

/** The file and the export of an action. */
export interface ActionReference {
  /** Relative to `paths.root`, with `/`, without `.`, and without `..` except at the beginning. */
  readonly file: string
  /** `description`: no file but `svc:openapi`. `unknown`: a file that this server cannot run. */
  readonly kind: 'view' | 'module' | 'description' | 'unknown'
  /** `default`, or the name after `@`. */
  readonly exportName: string
}

const description = 'svc:openapi'
const views = /\.html$/
const modules = /\.[cm]?js$/
const typeScriptModules = /\.[cm]?ts$/
const withExport = /^(.*\.[cm]?[jt]s)@([$_\p{ID_Start}][$\p{ID_Continue}]*)$/u
/** If this file itself runs as TypeScript, Node or a loader such as tsx supports TypeScript. */
const runsTypeScript = import.meta.url.endsWith('.ts') || Boolean(Reflect.get(process.features, 'typescript'))
/** The extensions of module files, for messages. */
export const moduleEndings = `.js, .mjs, .cjs${runsTypeScript ? ', .ts, .mts, .cts' : ''}`

/** Parses an action. Never throws: an action that cannot run has the kind `unknown`. */
export function parseAction(action: string): ActionReference {
  const [, path = action, exportName = 'default'] = (action.includes('@') && withExport.exec(action)) || []
  const file = posix.normalize(path)
  if (file === description) return { file, kind: 'description', exportName }
  if (isModule(file)) return { file, kind: 'module', exportName }
  return { file, kind: views.test(file) ? 'view' : 'unknown', exportName: 'default' }
}

/**
 * Returns the absolute path of an action's file.
 *
 * @param root the absolute path of `paths.root`
 * @throws RangeError if it is outside the root; symbolic links are not resolved
 */
export function actionPath(root: string, reference: ActionReference): string {
  const { file } = reference
  const path = resolve(root, file)
  const folder = root.endsWith(sep) ? root : root + sep
  if (!isAbsolute(file) && path !== root && path.startsWith(folder) && !path.includes('\0')) return path
  throw new RangeError(`An action must be a file below paths.root (${root}): it is ${JSON.stringify(file)}`)
}

/** Whether a file has the extension of a TypeScript module. */
export function namesTypeScript(file: string): boolean {
  return typeScriptModules.test(file)
}

function isModule(file: string): boolean {
  return modules.test(file) || (runsTypeScript && typeScriptModules.test(file))
}
