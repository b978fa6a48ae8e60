/**
 * The context as applications see it: the documented members of the core, and the members that features add. The
 * `CoreContext` of the server has all of them, and more for its own parts.
 */
import type { Next } from '../chain/compose.ts'
import type { CsrfMembers } from '../csrf/feature.ts'
import type { EventMembers } from '../events/feature.ts'
import type { FlashMembers } from '../flash/feature.ts'
import type { CoreMembers } from '../http/context.ts'
import type { ValidateMembers } from '../kit/validate-feature.ts'
import type { LogMembers } from '../log/feature.ts'
import type { RoutingMembers } from '../routing/feature.ts'
import type { SessionMembers } from '../session/feature.ts'
import type { ResourceIdMembers } from '../tokens/feature.ts'
import type { ViewMembers } from '../views/feature.ts'

/** The request of an action, middleware or view. `docs/routes-and-actions.md` describes each member. */
export interface Context
  extends CoreMembers,
    LogMembers,
    RoutingMembers,
    ViewMembers,
    EventMembers,
    SessionMembers,
    FlashMembers,
    CsrfMembers,
    ResourceIdMembers,
    ValidateMembers {}

/** An action. Its result becomes the reply; undefined keeps the reply that the context already has. */
export type Action = (ctx: Context) => unknown

/** A middleware. */
export type Middleware = (ctx: Context, next: Next) => void | Promise<void>
