/** The types of functions that tests hand to a server with every feature. */
import type { Context } from '../../lib/application/context.ts'
import type { Next } from '../../lib/chain/compose.ts'
import type { CoreContext } from '../../lib/http/context.ts'

/** The context of such a server: the members that applications use, and those for the server's own parts. */
export type FullContext = CoreContext & Context

export type TestAction = (ctx: FullContext) => unknown
export type TestMiddleware = (ctx: FullContext, next: Next) => void | Promise<void>
