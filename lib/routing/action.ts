/**
 * Reads a route's `action`: `notes/list.js` (the default export of a module), `notes.js@add` (a named export),
 * `notes/list.html` (a view).
 */
import { isAbsolute, posix, resolve, sep } from 'node:path'

/** The file and the export of an action. */
export interface ActionReference {
  /** Relative to `paths.root`, with `/`, without `.`, and without `..` except at its beginning. */
  readonly file: string
  /** `unknown`: a file that this server does not run. */
  readonly kind: 'view' | 'module' | 'unknown'
  /** `default`, or the name after `@`. */
  readonly exportName: string
}

const views = /\.html$/
const modules = /\.[cm]?js$/
const typeScriptModules = /\.[cm]?ts$/
const withExport = /^(.*\.[cm]?[jt]s)@([$_\p{ID_Start}][$\p{ID_Continue}]*)$/u
/** When this file itself runs as TypeScript, Node or a loader such as tsx runs TypeScript. */
const runsTypeScript = import.meta.url.endsWith('.ts') || Boolean(Reflect.get(process.features, 'typescript'))
/** The endings of module files, for messages. */
export const moduleEndings = `.js, .mjs, .cjs${runsTypeScript ? ', .ts, .mts, .cts' : ''}`

/** Reads an action. Never throws: an action that cannot be run has the kind `unknown`. */
export function parseAction(action: string): ActionReference {
  const [, path = action, exportName = 'default'] = (action.includes('@') && withExport.exec(action)) || []
  const file = posix.normalize(path)
  if (isModule(file)) return { file, kind: 'module', exportName }
  return { file, kind: views.test(file) ? 'view' : 'unknown', exportName: 'default' }
}

/**
 * The absolute path of an action's file.
 *
 * @param root the absolute path of `paths.root`
 * @throws RangeError when it lies outside of the root; symbolic links are not followed
 */
export function actionPath(root: string, reference: ActionReference): string {
  const { file } = reference
  const path = resolve(root, file)
  const folder = root.endsWith(sep) ? root : root + sep
  if (!isAbsolute(file) && path !== root && path.startsWith(folder) && !path.includes('\0')) return path
  throw new RangeError(`An action must be a file below paths.root (${root}): it is ${JSON.stringify(file)}`)
}

/** Whether a file has the ending of a TypeScript module. */
export function namesTypeScript(file: string): boolean {
  return typeScriptModules.test(file)
}

function isModule(file: string): boolean {
  return modules.test(file) || (runsTypeScript && typeScriptModules.test(file))
}
