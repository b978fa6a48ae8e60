import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { createClientAddress } from '../../lib/http/client-address.ts'
import type { TestAction } from '../support/context.ts'
import { errorReply, toHttpError } from '../../lib/http/error-reply.ts'
import { OpenReplies } from '../../lib/session/open-replies.ts'
import { createContextClass } from '../../lib/http/features.ts'
import { Responder } from '../../lib/core/respond.ts'
import type { ReadyReply } from '../../lib/http/reply.ts'
import { compose } from '../../lib/chain/compose.ts'
import { runWithSession, sessionFeature } from '../../lib/session/feature.ts'
import type { SessionGroup } from '../../lib/session/group.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import type { SessionServices } from '../../lib/session/session.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { listen } from '../support/listen.ts'
import { request, type Answer, type Question } from '../support/request.ts'

/** A server whose routes have sessions, without the rest of an application. */
export interface SessionServer {
  readonly url: string
  readonly store: SessionStore
  /** Errors thrown with status 500 or above, in order. */
  readonly failures: unknown[]
  /** How many sessions were written. */
  saves(): number
}

/** The actions. The name of a route without a session ends with `-bare`. */
export interface SessionServerOptions {
  readonly store?: SessionStore
  readonly ttlS?: number
  readonly cookie?: string
  /** Instead of the above: the sessions of a group. */
  readonly group?: SessionGroup
}

/** The shape of a session cookie's value. */
export const idShape = /^[A-Za-z0-9_-]{43}$/

/** Starts a server. Each action serves the path of its name: `count` serves `/count`. */
export async function serveSessions(
  t: Pick<TestContext, 'after'>,
  actions: Readonly<Record<string, TestAction>>,
  options: SessionServerOptions = {},
): Promise<SessionServer> {
  const { group, store = createMemoryStore({ max: 1000, onFull: () => {} }), ttlS = 3600, cookie = 'SVCSID' } = options
  const failures: unknown[] = []
  let saves = 0
  const services: SessionServices = {
    cookie,
    ttlS,
    store,
    saved: () => (saves += 1),
    openReplies: new OpenReplies(),
  }
  const { ContextClass } = createContextClass([group?.feature ?? sessionFeature(services)], {
    bodyLimitBytes: 1024,
    clientAddress: createClientAddress([]),
  })
  const middleware = { name: 'SVC_MwSession', run: group?.middleware.get('SVC_MwSession') ?? runWithSession }
  const reports = { late: (_ctx: unknown, error: unknown) => failures.push(error), misuse: () => {} }
  const chains = new Map(
    Object.entries(actions).map(([name, action]) => [
      name,
      compose(name.endsWith('-bare') ? [] : [middleware, middleware], action, reports),
    ]),
  )

  const responder = new Responder()
  const server = createServer(async (incoming, response) => {
    const ctx = new ContextClass(incoming, response)
    const name = ctx.path.slice(1)
    ctx.route = { name, url: ctx.path, action: '', method: '*', middleware: '', scope: '' }
    try {
      const chain = chains.get(name)
      if (chain === undefined) throw new Error(`No action has the name ${name}`)
      responder.respond(ctx, (await chain(ctx)) as ReadyReply, false)
    } catch (thrown) {
      const error = toHttpError(thrown)
      if (error.status >= 500) failures.push(error.cause ?? error)
      responder.respond(ctx, errorReply(ctx, error, false), false)
    }
  })
  const port = await listen(t, server)
  return { url: `http://127.0.0.1:${port}`, store, failures, saves: () => saves }
}

/** Starts a server and returns it with a visitor without a cookie. */
export async function visit(
  t: Pick<TestContext, 'after'>,
  actions: Readonly<Record<string, TestAction>>,
  options: SessionServerOptions = {},
) {
  const server = await serveSessions(t, actions, options)
  const visitor = Object.assign(new Visitor(server.url, options.cookie), { url: server.url })
  return { ...server, visitor }
}

/** A minimal browser with one cookie. */
export class Visitor {
  readonly #url: string
  readonly #name: string
  /** The session id; undefined if there is none. */
  id: string | undefined = undefined

  constructor(url: string, name = 'SVCSID') {
    this.#url = url
    this.#name = name
  }

  /** Requests a path with the cookie, and stores the cookie of the response. */
  async ask(path: string, question: Question = {}): Promise<Answer> {
    const cookie = this.id === undefined ? {} : { cookie: `${this.#name}=${this.id}` }
    const answer = await request(`${this.#url}/${path}`, { ...question, headers: { ...cookie, ...question.headers } })
    const set = sessionCookieOf(answer, this.#name)
    if (set !== undefined) this.id = set.value === '' ? undefined : set.value
    return answer
  }

  /** Like `ask`; returns the body as JSON. */
  async json(path: string): Promise<unknown> {
    return (await this.ask(path)).json()
  }
}

/** The session cookie that a response sets: its value, and its attributes as sent. */
export function sessionCookieOf(
  answer: Answer,
  name = 'SVCSID',
): { value: string; attributes: readonly string[] } | undefined {
  const fields = (answer.headers['set-cookie'] ?? []).filter((field) => field.startsWith(`${name}=`))
  if (fields.length > 1) throw new Error(`There are ${fields.length} session cookies: ${fields.join(' | ')}`)
  const [pair, ...attributes] = fields[0]?.split('; ') ?? []
  return pair === undefined ? undefined : { value: pair.slice(name.length + 1), attributes }
}
