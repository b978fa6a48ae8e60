/** The types of functions that tests hand to a server with every feature. */
import type { Context } from 'svc'
import type { Next } from '../../lib/chain/compose.ts'
import type { CoreContext } from '../../lib/http/context.ts'
import type { SessionMembers } from '../../lib/session/feature.ts'

/** The context of such a server: the members that applications use, and those for the server's own parts. */
export type FullContext = CoreContext & Context & SessionMembers

export type TestAction = (ctx: FullContext) => unknown
export type TestMiddleware = (ctx: FullContext, next: Next) => void | Promise<void>
