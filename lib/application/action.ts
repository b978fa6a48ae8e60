/**
 * The function behind a route's `action`: `notes/list.js` (the default export of a module), `notes.js@add` (a named
 * export), `notes/list.html` (a view), `svc:openapi` (the description of the routes).
 *
 * A route with a missing or broken module is registered too: its requests get 500. A missing file is retried at each
 * request; a broken one stays broken until a reload resolves the action again.
 */
import { stat } from 'node:fs/promises'
import { isToken } from '../base/token.ts'
import { MissingRoomError } from '../config/load-room.ts'
import { HttpError } from '../http/errors.ts'
import { actionPath, moduleEndings, namesTypeScript, parseAction, type ActionReference } from '../routing/action.ts'
import type { ModuleNamespace, Modules } from '../modules/modules.ts'

/** The export of a module that serves WebSockets; each member is optional. Parameters do not matter here. */
export type WebSocketExport = Readonly<
  Partial<Record<(typeof websocketHandlers)[number], (...args: never[]) => unknown>>
> & { readonly protocols?: readonly string[] }

/** An action's function. It returns the reply, or a promise of one. */
type ActionFunction<Context> = (context: Context) => unknown

/** Where actions come from. */
interface ActionSources<Context> {
  /** The absolute path of `paths.root`. */
  readonly root: string
  readonly modules: Pick<Modules, 'load'>
  /** Returns the function that answers with the view in a file, which is relative to the root. */
  readonly view: (file: string) => ActionFunction<Context>
  /** Loads the function that answers with the OpenAPI description. Rejects with MissingRoomError. */
  readonly description: () => Promise<ActionFunction<Context>>
}

const websocketHandlers = ['open', 'message', 'close'] as const

/**
 * Finds the function of an action. Does not reject for problems with the file: see `state`.
 * @throws RangeError when the action lies outside the root
 */
export async function resolveAction<Context>(
  action: string,
  sources: ActionSources<Context>,
): Promise<ResolvedAction<Context>> {
  const resolved = new ResolvedAction<Context>(parseAction(action), sources)
  await resolved.load()
  return resolved
}

/** An action with its function. A request may load a missing action, so read the members each time. */
export class ResolvedAction<Context> {
  readonly reference: ActionReference
  /** `missing`: the file does not exist yet. `failed`: it did not load, or lacks the export. */
  state: 'ready' | 'missing' | 'failed' = 'missing'
  /** Why the state is not `ready`. */
  error: Error | undefined
  /** All exports of the module, once loaded. */
  namespace: ModuleNamespace | undefined
  /** The module's export `websocket`, if any. */
  websocket: WebSocketExport | undefined
  /**
   * The module's function when ready. Otherwise throws an HttpError 500 with the reason, after retrying a missing
   * module.
   */
  run: ActionFunction<Context>
  readonly #path: string
  readonly #sources: ActionSources<Context>

  /** @throws RangeError when the file lies outside the root */
  constructor(reference: ActionReference, sources: ActionSources<Context>) {
    this.reference = reference
    this.#path = actionPath(sources.root, reference)
    this.#sources = sources
    this.run = (context) => this.#retry(context)
  }

  /** Loads the file and sets the members. */
  async load(): Promise<void> {
    const { file, kind } = this.reference
    if (kind === 'module') return this.#loadModule()
    if (kind === 'description') return this.#loadDescription()
    if (kind === 'view') {
      this.run = this.#sources.view(file) // A view checks its file at each request.
      const found = await stat(this.#path).catch(() => undefined)
      if (found?.isFile() === true) this.state = 'ready'
      else this.error = new Error(`Cannot run ${file}: ${found ? 'it is not a file' : 'there is no such file'}`)
      return
    }
    const reason = namesTypeScript(file)
      ? `Node ${process.versions.node} runs no TypeScript; Node 22.18 and later do`
      : `an action is a module (${moduleEndings}) or a view (.html)`
    this.#fail(new Error(`Cannot run ${file}: ${reason}`))
  }

  /** The function, if it is ready. */
  get ready(): ActionFunction<Context> | undefined {
    return this.state === 'ready' ? this.run : undefined
  }

  /** Loads a module file that was missing, if it exists now. */
  async retryMissing(): Promise<void> {
    if (this.reference.kind === 'view' || this.state !== 'missing') return
    if ((await exists(this.#path)) && this.state === 'missing') await this.load()
  }

  async #loadDescription(): Promise<void> {
    try {
      this.run = await this.#sources.description()
      this.state = 'ready'
    } catch (error) {
      if (!(error instanceof MissingRoomError)) throw error
      this.#fail(error)
    }
  }

  async #loadModule(): Promise<void> {
    const { file, exportName } = this.reference
    try {
      this.namespace = await this.#sources.modules.load(this.#path)
    } catch (error) {
      if (!(error instanceof Error)) throw error
      if ('missing' in error && error.missing === true) this.error = error
      else this.#fail(error)
      return
    }
    const websocket = exportOf(this.namespace, 'websocket')
    const problem = websocket === undefined ? undefined : websocketProblem(websocket)
    if (problem !== undefined) {
      this.#fail(new TypeError(`Cannot run ${file}: its export "websocket" ${problem}`))
      return
    }
    const found = exportOf(this.namespace, exportName)
    const isForSockets = found === undefined && exportName === 'default' && websocket !== undefined
    const exported = isForSockets ? upgradeRequired : found
    if (typeof exported !== 'function') {
      const actual = `it is ${exported === null ? 'null' : typeof exported}`
      this.#fail(new TypeError(`Cannot run ${file}: its export "${exportName}" must be a function: ${actual}`))
      return
    }
    this.state = 'ready'
    this.error = undefined
    this.websocket = websocket as WebSocketExport | undefined // checked above
    // Any function may be exported; only a call shows whether it accepts a context.
    this.run = exported as ActionFunction<Context>
  }

  #fail(error: Error): void {
    this.state = 'failed'
    this.error = error
    this.run = () => {
      throw internalError(error)
    }
  }

  async #retry(context: Context): Promise<unknown> {
    await this.retryMissing()
    if (this.state === 'missing') throw internalError(this.error)
    return this.run(context)
  }
}

/** Whether the function of an action only tells plain requests that its module serves WebSockets. */
export function servesSocketsOnly(run: unknown): boolean {
  return run === upgradeRequired
}

function exportOf(namespace: ModuleNamespace, name: string): unknown {
  return Object.hasOwn(namespace, name) ? namespace[name] : undefined
}

/** Returns the problem with an export `websocket`, phrased to follow its name, if any. */
function websocketProblem(value: unknown): string | undefined {
  const names = websocketHandlers.join(', ')
  if (typeof value !== 'object' || value === null) return `must be an object with the functions ${names}`
  for (const [name, member] of Object.entries(value)) {
    if (name === 'protocols') continue
    if (!websocketHandlers.some((known) => known === name)) {
      return `has an unknown member ${name}: it may have ${names}, protocols`
    }
    if (typeof member !== 'function') {
      return `must have a function ${name}: it is ${member === null ? 'null' : typeof member}`
    }
  }
  return 'protocols' in value && value.protocols !== undefined ? protocolsProblem(value.protocols) : undefined
}

/** Returns the problem with the subprotocol names (RFC 6455, section 11.3.4), phrased to follow the export's name. */
function protocolsProblem(value: unknown): string | undefined {
  if (!Array.isArray(value)) {
    return `must have a list of names as protocols: it is ${value === null ? 'null' : typeof value}`
  }
  const seen = new Set<string>()
  for (const name of value as readonly unknown[]) { // isArray makes it any[].
    if (typeof name !== 'string' || !isToken(name)) {
      const found = typeof name === 'string' ? JSON.stringify(name) : typeof name
      return `must have names of letters, digits and any of !#$%&'*+-.^_\`|~ as protocols: one is ${found}`
    }
    if (seen.has(name)) return `must name each of its protocols once: "${name}" is listed twice`
    seen.add(name)
  }
  return undefined
}

/** Answers plain requests to a module that serves only WebSockets. */
function upgradeRequired(): never {
  // Without `close`, Node would keep an HTTP/1.0 connection open.
  const headers = { Upgrade: 'websocket', Connection: 'close, Upgrade' }
  throw new HttpError(426, 'upgrade_required', 'This address serves WebSockets only', { headers })
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

function internalError(cause: Error | undefined): HttpError {
  return new HttpError(500, 'internal_error', cause?.message ?? 'The action is not loaded', { cause })
}
