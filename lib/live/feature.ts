/** The server side of live pages: the context member `presence`, and the route of the browser module. */
import type { Chain } from '../chain/compose.ts'
import type { Channel } from '../events/channel.ts'
import type { CoreContext as Context } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { Route } from '../routing/route.ts'
import { Presence, type Member } from './presence.ts'
import { liveScriptRoute } from './script.ts'

/** The live pages of one server. */
export interface Live {
  readonly feature: Feature
  /** Makes the route `GET /svc-live.js`. */
  route(): Route<Chain>
  close(): void
}

/** Creates live pages. @param openBus opens the channel to other processes; undefined with one process */
export function createLive(openBus: (() => Channel) | undefined): Live {
  const presence = new Presence(openBus)
  const makePresence = (ctx: Context) => (channel: Channel, member: Member) => presence.add(ctx, channel, member)
  return {
    feature: { name: 'live', members: [{ name: 'presence', make: makePresence }] },
    route: liveScriptRoute,
    close: () => presence.close(),
  }
}
