/**
 * `testApp`: the application of a folder for its tests. It has the configuration of the folder without its local file,
 * writes only to a temporary folder, and sends requests without a port.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context, TestAppOptions, TestJobs } from 'svc'
import { createApp, type App } from '../app.ts'
import { compose, type Action, type Middleware } from '../chain/compose.ts'
import type { ApplicationParts } from '../composition/application-parts.ts'
import { requireRooms } from '../composition/rooms.ts'
import { sessionPathOf } from '../composition/written-folders.ts'
import { loadWithLayers, type LoadedConfig } from '../config/load.ts'
import type { CoreContext } from '../http/context.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { pathBelow } from '../http/prefix.ts'
import { parsePattern } from '../routing/pattern.ts'
import { TestClient, type TestHost } from './test-client.ts'

/** An application under test. */
export type TestApp = App & {
  /** Creates a client with its own cookies. */
  readonly client: () => TestClient
  readonly jobs: TestJobs
  /** Stops the application and removes everything that it has written. */
  readonly close: () => Promise<void>
}

/**
 * Loads the application of a folder for its tests.
 * @param folder the folder of `svc.json`: a path, or a `file:` URL as of `new URL('..', import.meta.url)`
 * @throws ConfigError, MiddlewareError, ReloadError, as a rejection, when it cannot be loaded
 */
export async function testApp(folder: string | URL, options: TestAppOptions = {}): Promise<TestApp> {
  const root = folder instanceof URL ? fileURLToPath(folder) : resolve(folder)
  const written = mkdtempSync(join(tmpdir(), 'svc-test-app-'))
  const remove = (): void => rmSync(written, { recursive: true, force: true })
  try {
    const loaded = loadedFor(join(root, 'svc.json'), options, written)
    const routes = new ClientRoutes()
    const clock = { nowMs: Date.now() }
    const app = createApp({
      now: () => clock.nowMs,
      loaded,
      warnsOfNode: false,
      appKey: randomBytes(32).toString('base64url'),
      rooms: requireRooms(loaded.config),
      addRoutes: (parts) => routes.add(parts),
    })
    const close = async (): Promise<void> => {
      await app.stop()
      app.closeLogs()
      remove()
    }
    try {
      await app.request('/svc-ping') // The first request loads the application.
    } catch (error) {
      await close()
      throw error
    }
    const { 'server.prefix': prefix } = loaded.config
    const jobs = createTestJobs(() => routes.parts.jobs.current, clock)
    const request: TestHost['request'] = async (url, init) => {
      const response = await app.request(url, init)
      await jobs.idle()
      return response
    }
    const enqueue: App['enqueue'] = async (...args) => {
      const id = await routes.parts.jobs.enqueue(...args)
      await jobs.idle()
      return id
    }
    const members = { jobs, enqueue, client: () => new TestClient(routes.host(request, prefix)), close }
    // `enqueue` replaces a getter of the class, which Object.assign cannot.
    return Object.defineProperties(app, Object.getOwnPropertyDescriptors(members)) as TestApp
  } catch (error) {
    remove()
    throw error
  }
}

/** Loads the configuration so that nothing is shared with other servers, or written elsewhere. */
function loadedFor(file: string, { config = {}, setup, settings }: TestAppOptions, written: string): LoadedConfig {
  const isolated = {
    'app.env': 'prod',
    'log.console': false,
    'server.port': 0,
    'server.processes': 1,
    'server.allowed_hosts': [],
    'server.tls.cert': '',
    'server.tls.key': '',
    'shared.url': '',
    'paths.log': join(written, 'logs'),
    'paths.cache': join(written, 'cache'),
    'paths.temp': join(written, 'temp'),
    'paths.data': join(written, 'data'),
  }
  const layers = [isolated, config, { setup, settings }]
  const loaded = loadWithLayers(file, layers)
  if (sessionPathOf(loaded) === undefined) return loaded
  return loadWithLayers(file, [...layers, { setup: { session: { path: join(written, 'sessions') } } }])
}

/** @param find returns the jobs, if the application has any */
function createTestJobs(find: () => Jobs | undefined, clock: { nowMs: number }): TestJobs {
  const idle = async (): Promise<void> => find()?.idle()
  return {
    idle,
    advance: async (seconds) => {
      if (!Number.isFinite(seconds) || seconds < 0) {
        throw new RangeError(`Cannot advance the clock: the seconds must be 0 or more: they are ${seconds}`)
      }
      clock.nowMs += seconds * 1000
      await idle()
    },
    list: async () => (await find()?.list({ name: null, state: null, offset: 0, count: -1 })) ?? [],
  }
}

/** The context has every feature. */
type FullContext = CoreContext & Pick<Context, 'signIn' | 'signOut' | 'csrf_token' | 'csrfInput'>

/** The routes with which clients sign in and get tokens, under a random path. */
class ClientRoutes {
  readonly #prefix = `/svc-test-${randomBytes(16).toString('hex')}`
  #parts: ApplicationParts | undefined = undefined

  /** The parts of the application, once it has been loaded. */
  get parts(): ApplicationParts {
    return this.#parts as ApplicationParts // `add` is called first.
  }

  /** Adds the routes to those of the application. */
  add(parts: ApplicationParts): void {
    this.#parts = parts
    const known = new Map(parts.builtIn.groups.flatMap(({ middleware }) => [...middleware]))
    const add = (method: string, name: string, middleware: readonly string[], action: Action): void => {
      const layers = middleware.map((each) => ({ name: each, run: known.get(each) as Middleware })) // It is built in.
      const url = `${this.#prefix}/${name}`
      parts.registry.add({
        record: { name: `svc.test.${name}`, url, method, action: '', middleware: '', scope: '' },
        pattern: parsePattern(url),
        system: true,
        target: compose(layers, action, parts.reports),
      })
    }
    add('POST', 'sign-in', ['SVC_MwSession'], async (ctx: FullContext) => {
      ctx.signIn(((await ctx.readJson()) as { user: unknown }).user)
    })
    add('POST', 'sign-out', ['SVC_MwSession'], (ctx: FullContext) => ctx.signOut())
    add('GET', 'session-token', ['SVC_MwSession', 'SVC_MwCsrf'], (ctx: FullContext) => ctx.text(ctx.csrf_token))
    add('GET', 'signed-token', [], (ctx: FullContext) => ctx.text(/ value="([^"]+)"/.exec(ctx.csrfInput())?.[1] ?? ''))
  }

  /** Returns what a client uses of the application. @param prefix `server.prefix` */
  host(request: TestHost['request'], prefix: string): TestHost {
    const { registry, builtIn } = this.parts
    return {
      request,
      tokenField: builtIn.csrf.header,
      prefix,
      signInPath: `${this.#prefix}/sign-in`,
      signOutPath: `${this.#prefix}/sign-out`,
      tokenPathFor: (method, path) => {
        const names = registry.find(method, pathBelow(prefix, path))?.route.record.middleware.split(',') ?? []
        if (method === 'GET') return undefined
        if (names.includes('SVC_MwCsrf')) return `${this.#prefix}/session-token`
        return names.includes('SVC_MwCsrfCheck') ? `${this.#prefix}/signed-token` : undefined
      },
    }
  }
}
