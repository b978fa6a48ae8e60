/**
 * Lets one process hold several generations of the application's modules. Node keeps every module by its URL for good,
 * so a changed module is imported under a new URL, `notes.js?svc=1-3` (application 1, generation 3), and a resolve hook
 * gives what such a module imports the URL that belongs to its generation.
 *
 * Surprise: this file is loaded twice where Node has no `module.registerHooks` (before 22.15): in the main thread, and
 * in the thread in which Node then runs hooks, which is told the generations by message. And it keeps state at module
 * level, against the habit of the house: hooks belong to the process and cannot be taken out of it.
 */
import * as nodeModule from 'node:module'
import { fileURLToPath } from 'node:url'
import type { MessagePort } from 'node:worker_threads'

/** Files, by their real paths, of which application `application` has new instances from `generation` (from 1) on. */
export interface Announcement {
  readonly application: number
  readonly generation: number
  readonly files: readonly string[]
}

interface Context {
  readonly parentURL?: string | undefined
  readonly conditions?: readonly string[]
}
interface Resolved {
  readonly url: string
}
type Resolve<Result> = (specifier: string, context: Context) => Result
type RegisterHooks = (hooks: {
  resolve: (specifier: string, context: Context, next: Resolve<Resolved>) => Resolved
}) => void

const tag = /[?&]svc=(\d+)-(\d+)$/
const announced = new Map<string, { application: number; generation: number }[]>()
let applications = 0
let tell: Promise<(announcement: Announcement) => Promise<void>> | undefined

/** A number that no other application of this process has. */
export function nextApplication(): number {
  return ++applications
}

/** The query that marks a module as of one generation, such as `svc=1-3`. */
export function generationQuery(application: number, generation: number): string {
  return `svc=${application}-${generation}`
}

/**
 * Makes imports below the announced generation see the announced files anew. Installs the hook when called first.
 * Resolves when the hook knows; an import begun before may still see the old ones.
 *
 * @throws Error when Node refuses the hook
 */
export async function announce(announcement: Announcement): Promise<void> {
  tell ??= installHook()
  await (await tell)(announcement)
}

/** For Node: called in the thread of the hooks, with the port over which {@link announce} speaks to it. */
export function initialize({ port }: { readonly port: MessagePort }): void {
  port.on('message', (announcement: Announcement) => {
    remember(announcement)
    port.postMessage('known')
  })
  port.unref()
}

/** For Node: the resolve hook, in the thread of the hooks. */
export async function resolve(
  specifier: string,
  context: Context,
  next: Resolve<Promise<Resolved>>,
): Promise<Resolved> {
  return withGeneration(await next(specifier, context), context)
}

/** Gives a file the generation of the module that imports it; where that has none, the newest there is. */
function withGeneration(resolved: Resolved, { parentURL = '', conditions = [] }: Context): Resolved {
  // What require() loads is kept by file name: a query means nothing to it.
  if (conditions.includes('require') || !resolved.url.startsWith('file:') || tag.test(resolved.url)) return resolved
  const instances = announced.get(fileURLToPath(resolved.url))
  if (instances === undefined) return resolved
  const parent = tag.exec(parentURL)
  // A module without a generation is CommonJS, whose one instance is the newest, or imports late what it needs now.
  const instance =
    parent === null
      ? instances.at(-1)
      : instances.findLast((one) => one.application === Number(parent[1]) && one.generation <= Number(parent[2]))
  if (instance === undefined) return resolved
  const query = generationQuery(instance.application, instance.generation)
  return { ...resolved, url: `${resolved.url}${resolved.url.includes('?') ? '&' : '?'}${query}` }
}

function remember({ application, generation, files }: Announcement): void {
  for (const file of files) {
    const instances = announced.get(file)
    if (instances === undefined) announced.set(file, [{ application, generation }])
    else instances.push({ application, generation })
  }
}

async function installHook(): Promise<(announcement: Announcement) => Promise<void>> {
  // The types are those of the oldest Node that is served, which has no registerHooks.
  const { registerHooks } = nodeModule as { registerHooks?: RegisterHooks }
  if (registerHooks === undefined) return installHookThread()
  registerHooks({ resolve: (specifier, context, next) => withGeneration(next(specifier, context), context) })
  return async (announcement) => remember(announcement)
}

function installHookThread(): (announcement: Announcement) => Promise<void> {
  const { port1: port, port2 } = new MessageChannel()
  nodeModule.register(import.meta.url, { data: { port: port2 }, transferList: [port2] })
  const waiting: (() => void)[] = []
  port.on('message', () => {
    waiting.shift()?.()
    if (waiting.length === 0) port.unref()
  })
  port.unref()
  return (announcement) =>
    new Promise((resolve) => {
      waiting.push(resolve)
      port.ref()
      port.postMessage(announcement)
    })
}
