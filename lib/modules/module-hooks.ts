/**
 * The resolve hook, which does two things. It resolves imports of `svc` to this server, never to another instance. And
 * it allows several generations of the application's modules in one process: Node caches every module by its URL
 * forever, so a changed module is imported with a new URL, `notes.js?svc=1-3` (application 1, generation 3), and the
 * hook resolves the imports of such a module to URLs of its generation.
 *
 * Surprise: where Node has no `module.registerHooks` (before 22.15), this file is loaded twice: in the main thread, and
 * in the thread where Node runs hooks, which receives the generations by message. It keeps state at module level,
 * unlike other files, because hooks belong to the process and cannot be removed.
 */
import * as nodeModule from 'node:module'
import { fileURLToPath } from 'node:url'
import type { MessagePort } from 'node:worker_threads'

/** Files, by real path, that an application loads anew in this and later generations; `generation` counts from 1. */
interface Announcement {
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
  readonly shortCircuit?: boolean
}
type Resolve<Result> = (specifier: string, context: Context) => Result
type RegisterHooks = (hooks: {
  resolve: (specifier: string, context: Context, next: Resolve<Resolved>) => Resolved
}) => void

/** The name by which modules import the server. */
export const serverName = 'svc'
/** The module they get: `lib/index.ts`, or `dist/index.js`. */
const server = new URL(import.meta.url.endsWith('.js') ? '../index.js' : '../index.ts', import.meta.url).href
const tag = /[?&]svc=(\d+)-(\d+)$/
const announced = new Map<string, { application: number; generation: number }[]>()
let applications = 0
let announcer: Promise<(announcement: Announcement) => Promise<void>> | undefined

/** Returns a number that is unique among the applications of this process. */
export function nextApplication(): number {
  return ++applications
}

/** The query that marks a module of one generation, such as `svc=1-3`. */
export function generationQuery(application: number, generation: number): string {
  return `svc=${application}-${generation}`
}

/**
 * Resolves `svc` to this server in all modules of the process; packages get their own installed `svc`, if any. It
 * installs the hook, so call it only when a module needs it.
 *
 * @throws Error when Node refuses the hook
 */
export async function provideServer(): Promise<void> {
  await (announcer ??= installHook())
}

/**
 * Makes imports of the announced generation load new instances of the announced files. The first call installs the
 * hook. Resolves when the hook has the announcement; an import that began earlier may still get old instances.
 *
 * @throws Error when Node refuses the hook
 */
export async function announce(announcement: Announcement): Promise<void> {
  announcer ??= installHook()
  await (await announcer)(announcement)
}

/** Called by Node in the hooks thread, with the port on which {@link announce} sends. */
export function initialize({ port }: { readonly port: MessagePort }): void {
  port.on('message', (announcement: Announcement) => {
    remember(announcement)
    port.postMessage('known')
  })
  port.unref()
}

/** The resolve hook, called by Node in the hooks thread. */
export async function resolve(
  specifier: string,
  context: Context,
  next: Resolve<Promise<Resolved>>,
): Promise<Resolved> {
  if (specifier !== serverName) return withGeneration(await next(specifier, context), context)
  if (!isOfPackage(context)) return next(server, context)
  return next(specifier, context).catch(() => next(server, context))
}

/** The same for the main thread. */
function resolveHere(specifier: string, context: Context, next: Resolve<Resolved>): Resolved {
  if (specifier !== serverName) return withGeneration(next(specifier, context), context)
  // For require(), the next hook takes a path, not a URL.
  const answer = isRequire(context) ? { url: server, shortCircuit: true } : undefined
  if (!isOfPackage(context)) return answer ?? next(server, context)
  try {
    return next(specifier, context)
  } catch {
    return answer ?? next(server, context)
  }
}

/** Whether require() is resolving. */
function isRequire({ conditions = [] }: Context): boolean {
  return conditions.includes('require')
}

function isOfPackage({ parentURL = '' }: Context): boolean {
  return parentURL.includes('/node_modules/')
}

/** Adds the generation of the importing module to a file; the newest one if that has none. */
function withGeneration(resolved: Resolved, context: Context): Resolved {
  const { parentURL = '' } = context
  // require() caches modules by file name and ignores a query.
  if (isRequire(context) || !resolved.url.startsWith('file:') || tag.test(resolved.url)) return resolved
  const instances = announced.get(fileURLToPath(resolved.url))
  if (instances === undefined) return resolved
  const parent = tag.exec(parentURL)
  // A parent without a generation is CommonJS, whose only instance is the newest, or a first instance importing late.
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
  // The types are those of the oldest supported Node, which has no registerHooks.
  const { registerHooks } = nodeModule as { registerHooks?: RegisterHooks }
  if (registerHooks === undefined) return installHookThread()
  registerHooks({ resolve: resolveHere })
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
