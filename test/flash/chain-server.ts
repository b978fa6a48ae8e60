/** A small server for the tests of middleware: sessions, flash, sign-in check and JWT, combined as in an application. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { flashFeature } from '../../lib/flash/feature.ts'
import { createClientAddress } from '../../lib/http/client-address.ts'
import type { CoreContext } from '../../lib/http/context.ts'
import type { TestAction } from '../support/context.ts'
import { errorReply, toHttpError } from '../../lib/http/error-reply.ts'
import { createContextClass, type ViewScope } from '../../lib/http/features.ts'
import { Responder } from '../../lib/core/respond.ts'
import type { ReadyReply } from '../../lib/http/reply.ts'
import { createJwtGroup } from '../../lib/composition/jwt-group.ts'
import type { ModuleLogger } from '../../lib/log/logger.ts'
import type { PreparedSettings } from '../../lib/chain/settings.ts'
import { compose } from '../../lib/chain/compose.ts'
import { createSessionGroup } from '../../lib/session/group.ts'
import { OpenReplies } from '../../lib/session/open-replies.ts'
import { openLocalStore } from '../../lib/session-stores/local-store.ts'
import { createAuthGroup } from '../../lib/session/is-auth.ts'
import { keepingLogger } from '../support/log-lines.ts'
import { request, type Answer, type Question } from '../support/request.ts'

/** Actions by `path`, or `path middleware,middleware`. */
export type Actions = Readonly<Record<string, TestAction>>

/** The options of a test. */
export interface ChainOptions {
  /** The groups of `setup`. */
  readonly setup?: Readonly<Record<string, unknown>>
  /** The folder of a key file. */
  readonly folder?: string
  /** Milliseconds since 1970, for tokens. */
  readonly now?: () => number
}

/** A running server. */
export interface ChainServer {
  /** `LEVEL module message`, without INFO lines. */
  readonly lines: readonly string[]
  /** The names that a view sees in addition to its data. */
  viewScope(ctx: CoreContext): ViewScope
  /** Reads settings of a group without applying them. */
  prepare(group: string, given: unknown): PreparedSettings
  /** Applies new settings of a group, as a reload does. */
  configure(group: string, given: unknown): void
  /** Sends a request without cookies. */
  send(path: string, question?: Question): Promise<Answer>
  /** A client that keeps the session cookie. */
  client(): (path: string, question?: Question) => Promise<Answer>
}

/** Starts a server on a free port; it is closed when the test ends. The route of `/x` is named `x`. */
export async function startChain(
  t: Pick<TestContext, 'after'>,
  actions: Actions,
  { setup = {}, folder = '/', now = Date.now }: ChainOptions = {},
): Promise<ChainServer> {
  const lines: string[] = []
  const log = (module: string): ModuleLogger => {
    return keepingLogger((line) => lines.push(line.replace(' ', ` ${module} `)))
  }
  const sessions = createSessionGroup({
    openStoreHere: openLocalStore, openReplies: new OpenReplies(), folder, isPublic: () => false, log,
  })
  const groups = [sessions, createAuthGroup({ log }), createJwtGroup({ folder, now, log })]
  for (const group of groups) if (group.name in setup) await group.load?.()
  const prepare = (name: string, given: unknown): PreparedSettings => {
    const group = groups.find((one) => one.name === name)
    if (group === undefined) throw new Error(`There is no group ${name}`)
    return group.prepare(given)
  }
  const configure = (name: string, given: unknown): void => prepare(name, given).commit()
  for (const [name, given] of Object.entries(setup)) configure(name, given)

  const byName = new Map(groups.flatMap((group) => [...group.middleware]))
  const services = { bodyLimitBytes: 1024, clientAddress: createClientAddress([]) }
  const responder = new Responder()
  const { ContextClass, viewScope } = createContextClass([sessions.feature, flashFeature(log)], services)
  const reports = { late: () => {}, misuse: () => {} }
  const routes = Object.entries(actions).map(([key, action]) => {
    const [path = '', middleware = ''] = key.split(' ')
    const layers = middleware.split(',').flatMap((name) => {
      const run = byName.get(name)
      return run === undefined ? [] : [{ name, run }]
    })
    const record = { name: path.slice(1), url: path, action: 'a.mjs', method: '*', middleware, scope: '' }
    return { path, record, chain: compose(layers, action, reports) }
  })

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const ctx: CoreContext = new ContextClass(incoming, response)
    try {
      const route = routes.find(({ path }) => path === ctx.path)
      ctx.route = route?.record
      responder.respond(ctx, (await (route === undefined ? ctx.empty(404) : route.chain(ctx))) as ReadyReply, true)
    } catch (thrown) {
      const error = toHttpError(thrown)
      lines.push(`ERROR ${error.code} ${error.message}`)
      responder.respond(ctx, errorReply(ctx, error, false), true)
    }
  }

  const server = createServer((incoming, response) => void answer(incoming, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    await new Promise((resolve) => server.close(resolve))
    await sessions.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const send = (path: string, question?: Question): Promise<Answer> => request(url + path, question)
  return {
    lines,
    viewScope,
    prepare,
    configure,
    send,
    client() {
      let cookie = ''
      return async (path, { headers = {}, ...question } = {}) => {
        const answered = await send(path, { ...question, headers: cookie === '' ? headers : { ...headers, cookie } })
        const given = answered.headers['set-cookie']?.[0]?.split(';')[0]
        if (given !== undefined) cookie = given.endsWith('=') ? '' : given
        return answered
      }
    },
  }
}
