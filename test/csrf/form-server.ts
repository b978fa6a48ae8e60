/** A real server with the features and middleware of forms, and the routes of a test. */
import { OpenReplies } from '../../lib/session/open-replies.ts'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { createCsrfGroup, type CsrfGroup } from '../../lib/csrf/group.ts'
import { flashFeature } from '../../lib/flash/feature.ts'
import { createClientAddress } from '../../lib/http/client-address.ts'
import type { CoreContext } from '../../lib/http/context.ts'
import type { TestAction } from '../support/context.ts'
import { errorReply, toHttpError } from '../../lib/http/error-reply.ts'
import { createContextClass, type ContextParts } from '../../lib/http/features.ts'
import { Responder } from '../../lib/core/respond.ts'
import type { ReadyReply } from '../../lib/http/reply.ts'
import type { ModuleLogger } from '../../lib/log/logger.ts'
import { compose, type Middleware } from '../../lib/chain/compose.ts'
import { resourceIdFeature } from '../../lib/tokens/feature.ts'
import { createResourceTokens } from '../../lib/tokens/resource-id.ts'
import { runWithSession, sessionFeature } from '../../lib/session/feature.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { listen } from '../support/listen.ts'
import { keepingLogger } from '../support/log-lines.ts'
import type { Answer } from '../support/request.ts'

/** The options of a test server. */
export interface FormServerOptions {
  /** The keys of tokens; default: `test`. */
  readonly keys?: readonly string[]
  readonly trustedOrigins?: readonly string[]
  /** Where sessions are stored; default: in memory. */
  readonly store?: SessionStore
  /** `setup.csrf`. */
  readonly settings?: unknown
  /** By path: the names of the middleware, and the action. */
  readonly routes: Readonly<Record<string, readonly [middleware: readonly string[], action: TestAction]>>
}

export interface FormServer {
  readonly url: string
  readonly group: CsrfGroup
  /** The log lines so far: `error WARN text`. */
  readonly lines: string[]
  /** Whether the last chain returned no promise. */
  readonly wasSynchronous: () => boolean
  readonly viewScope: ContextParts['viewScope']
  /** A clock that a test may set: milliseconds since 1970. */
  readonly clock: { ms: number }
}

const bodyLimitBytes = 100_000

/** Starts a server on a free port; it is closed when the test ends. */
export async function serveForms(t: Pick<TestContext, 'after'>, options: FormServerOptions): Promise<FormServer> {
  const { keys = ['test'], trustedOrigins = [], routes } = options
  const lines: string[] = []
  let synchronous = false
  const clock = { ms: 1_700_000_000_000 }
  const now = (): number => clock.ms
  const log = (module: string): ModuleLogger => keepingLogger((line) => lines.push(`${module} ${line}`), 'warn')
  const group = createCsrfGroup({ keys, trustedOrigins, log, now })
  if (options.settings !== undefined) group.prepare(options.settings).commit()
  const { store = createMemoryStore({ max: 1000, onFull: () => {} }) } = options
  const session = { cookie: 'SVCSID', ttlS: 3600, store, saved: () => {}, openReplies: new OpenReplies() }
  const features = [
    sessionFeature(session),
    flashFeature(log),
    group.feature,
    resourceIdFeature(createResourceTokens({ keys, now })),
  ]
  const services = { bodyLimitBytes, clientAddress: createClientAddress([]) }
  const responder = new Responder()
  const { ContextClass, viewScope } = createContextClass(features, services)
  const middleware = new Map<string, Middleware>([...group.middleware, ['SVC_MwSession', runWithSession]])
  const refuseLate = (): never => {
    throw new Error('a middleware did not wait for next()')
  }
  const chains = new Map(
    Object.entries(routes).map(([path, [names, action]]) => {
      const layers = names.map((name) => ({ name, run: middleware.get(name) as Middleware })) // tests use only known names
      return [path, compose(layers, action, { late: refuseLate, misuse: refuseLate })]
    }),
  )

  const server = createServer((request, response) => {
    const ctx = new ContextClass(request, response)
    response.on('close', () => void ctx.close(response.writableFinished))
    ctx.route = { name: `route of ${ctx.path}`, url: ctx.path, action: '', method: '*', middleware: '', scope: '' }
    void answer(ctx)
  })
  async function answer(ctx: CoreContext): Promise<void> {
    try {
      const chain = chains.get(ctx.path)
      if (chain === undefined) throw new Error(`no route ${ctx.path}`)
      const outcome = chain(ctx)
      synchronous = !(outcome instanceof Promise)
      responder.respond(ctx, (await outcome) as ReadyReply, true)
    } catch (error) {
      responder.respond(ctx, errorReply(ctx, toHttpError(error), true), true)
    }
  }
  const port = await listen(t, server)
  return { url: `http://127.0.0.1:${port}`, group, lines, wasSynchronous: () => synchronous, viewScope, clock }
}

/** Returns the cookie that a response sets, as the next request sends it; undefined if it sets none. */
export function cookieOf(answer: Answer): string | undefined {
  return answer.headers['set-cookie']?.[0]?.split(';', 1)[0]
}

/** Returns the value of an input's attribute `value`. */
export function valueOf(html: string): string {
  return /value="([^"]*)"/.exec(html)?.[1] ?? ''
}

