/**
 * The context as applications see it: the documented members of the core, and the members that features add. The server
 * runs a `CoreContext`, which has all of them and some for its own parts. The types of this file are those of
 * applications; `application/` casts an application's functions to them where their modules are loaded.
 */
import type { Next } from '../chain/compose.ts'
import type { CsrfMembers } from '../csrf/feature.ts'
import type { EventMembers } from '../events/feature.ts'
import type { FlashMembers } from '../flash/feature.ts'
import type { CoreMembers } from '../http/context.ts'
import type { LogMembers } from '../log/feature.ts'
import type { RoutingMembers } from '../routing/feature.ts'
import type { SessionMembers } from '../session/feature.ts'
import type { ResourceIdMembers } from '../tokens/feature.ts'
import type { ViewMembers } from '../views/feature.ts'

/** What a request is to actions, middleware and views. `docs/routes-and-actions.md` describes each member. */
export interface Context
  extends CoreMembers,
    LogMembers,
    RoutingMembers,
    ViewMembers,
    EventMembers,
    SessionMembers,
    FlashMembers,
    CsrfMembers,
    ResourceIdMembers {}

/** An action: what it returns becomes the reply; undefined leaves what the context already replied. */
export type Action = (ctx: Context) => unknown

/** A middleware. */
export type Middleware = (ctx: Context, next: Next) => void | Promise<void>
