/**
 * What a route's `action` names, and the function behind it: `notes/list.js` (its default export), `notes.js@add` (a
 * named one), `notes/list.html` (a view).
 *
 * Surprise: a module that is not there or does not load makes no route fail to register. Its requests get 500. A file
 * that was missing is looked for at each request until it is there; one that failed stays so until it is resolved anew.
 */
import { stat } from 'node:fs/promises'
import { HttpError } from '../http/errors.ts'
import { actionPath, moduleEndings, namesTypeScript, parseAction, type ActionReference } from '../routing/action.ts'
import type { ModuleNamespace, Modules } from './modules.ts'

/** The handlers of a module that serves WebSockets; each may be missing. What they take is no matter here. */
export type WebSocketExport = Readonly<
  Partial<Record<(typeof websocketHandlers)[number], (...args: never[]) => unknown>>
>

/** An action's function. What it returns is the reply, or the promise of one. */
export type ActionFunction<Context = unknown> = (context: Context) => unknown

/** The actions of one application. */
export interface Actions<Context = unknown> {
  /**
   * Finds what an action runs. Does not reject for what is wrong with the file: see `state`.
   *
   * @throws RangeError when the action lies outside of the root
   */
  resolve(action: string): Promise<ResolvedAction<Context>>
}

/** What the server runs for a route. */
export interface ResolvedAction<Context = unknown> {
  readonly reference: ActionReference
  /** `missing`: no such file yet. `failed`: it did not load, or lacks the export. */
  readonly state: 'ready' | 'missing' | 'failed'
  /** Why the state is not `ready`. */
  readonly error: Error | undefined
  /** All exports of the module, once it is loaded. */
  readonly namespace: ModuleNamespace | undefined
  /** What the module exports as `websocket`; undefined for a view, and where it exports none. */
  readonly websocket: WebSocketExport | undefined
  /**
   * The module's own function when ready; so read this member anew for each request. Else one that throws an HttpError
   * 500 with the reason or, for a module file that was missing, looks for it first.
   */
  readonly run: ActionFunction<Context>
  /** Looks anew for a module file that was missing, and loads it when it is there. */
  lookAgain(): Promise<void>
}

const websocketHandlers = ['open', 'message', 'close'] as const
/**
 * @param options `root`: the absolute path of `paths.root`; `view`: the function that answers with the view in a file,
 *   which is given relative to the root
 */
export function createActions<Context = unknown>(options: {
  readonly root: string
  readonly modules: Modules
  readonly view: (file: string) => ActionFunction<Context>
}): Actions<Context> {
  const { root, modules, view } = options
  return {
    async resolve(action) {
      const reference = parseAction(action)
      const path = actionPath(root, reference)
      if (reference.kind === 'view') return viewAction(reference, view(reference.file), await isThere(path))
      const resolved = new ModuleAction<Context>(reference, path, modules)
      await resolved.load()
      return resolved
    },
  }
}

/** A view looks for its file by itself, each time: here a missing one only has to be known. */
function viewAction<Context>(
  reference: ActionReference,
  run: ActionFunction<Context>,
  found: boolean,
): ResolvedAction<Context> {
  const error = found ? undefined : new Error(`Cannot run ${reference.file}: there is no such file`)
  const state = found ? 'ready' : 'missing'
  return { reference, state, error, namespace: undefined, websocket: undefined, run, lookAgain: async () => {} }
}

class ModuleAction<Context> implements ResolvedAction<Context> {
  readonly reference: ActionReference
  state: 'ready' | 'missing' | 'failed' = 'missing'
  error: Error | undefined
  namespace: ModuleNamespace | undefined
  websocket: WebSocketExport | undefined
  run: ActionFunction<Context>
  readonly #path: string
  readonly #modules: Modules

  constructor(reference: ActionReference, path: string, modules: Modules) {
    this.reference = reference
    this.#path = path
    this.#modules = modules
    this.run = (context) => this.#retry(context)
  }

  /** Sets the state by what the module has. */
  async load(): Promise<void> {
    const { file, kind, exportName } = this.reference
    if (kind === 'unknown') {
      const reason = namesTypeScript(file)
        ? `Node ${process.versions.node} runs no TypeScript; Node 22.18 and later do`
        : `an action is a module (${moduleEndings}) or a view (.html)`
      this.#fail(new Error(`Cannot run ${file}: ${reason}`))
      return
    }
    try {
      this.namespace = await this.#modules.load(this.#path)
    } catch (error) {
      if (!(error instanceof Error)) throw error
      if ('missing' in error && error.missing === true) this.error = error
      else this.#fail(error)
      return
    }
    const websocket = exportOf(this.namespace, 'websocket')
    const wrong = websocket === undefined ? undefined : websocketProblem(websocket)
    if (wrong !== undefined) {
      this.#fail(new TypeError(`Cannot run ${file}: its export "websocket" ${wrong}`))
      return
    }
    const given = exportOf(this.namespace, exportName)
    const servesSocketsOnly = given === undefined && exportName === 'default' && websocket !== undefined
    const exported = servesSocketsOnly ? upgradeRequired : given
    if (typeof exported !== 'function') {
      const found = `it is ${exported === null ? 'null' : typeof exported}`
      this.#fail(new TypeError(`Cannot run ${file}: its export "${exportName}" must be a function: ${found}`))
      return
    }
    this.state = 'ready'
    this.error = undefined
    this.websocket = websocket as WebSocketExport | undefined // It has just been looked at.
    // Any function may be exported: whether it takes a context shows when it runs.
    this.run = exported as ActionFunction<Context>
  }

  #fail(error: Error): void {
    this.state = 'failed'
    this.error = error
    this.run = () => {
      throw internalError(error)
    }
  }

  async lookAgain(): Promise<void> {
    if (this.state === 'missing' && (await isThere(this.#path)) && this.state === 'missing') await this.load()
  }

  async #retry(context: Context): Promise<unknown> {
    await this.lookAgain()
    if (this.state === 'missing') throw internalError(this.error)
    return this.run(context)
  }
}

function exportOf(namespace: ModuleNamespace, name: string): unknown {
  return Object.hasOwn(namespace, name) ? namespace[name] : undefined
}

/** What is wrong with an export `websocket`, to follow its name; undefined when nothing is. */
function websocketProblem(value: unknown): string | undefined {
  const names = websocketHandlers.join(', ')
  if (typeof value !== 'object' || value === null) return `must be an object with the functions ${names}`
  for (const [name, member] of Object.entries(value)) {
    if (!websocketHandlers.some((known) => known === name)) return `has an unknown member ${name}: it may have ${names}`
    if (typeof member !== 'function') {
      return `must have a function ${name}: it is ${member === null ? 'null' : typeof member}`
    }
  }
  return undefined
}

/** What answers plain requests to a module that serves nothing but WebSockets. */
function upgradeRequired(): never {
  // Without `close` Node would keep a connection of HTTP/1.0 open.
  const headers = { Upgrade: 'websocket', Connection: 'close, Upgrade' }
  throw new HttpError(426, 'upgrade_required', 'This address serves WebSockets only', { headers })
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

function internalError(cause: Error | undefined): HttpError {
  return new HttpError(500, 'internal_error', cause?.message ?? 'The action is not loaded', { cause })
}
