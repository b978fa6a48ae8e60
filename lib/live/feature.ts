/** The context member `presence`: who is there. */
import type { Channel } from '../events/channel.ts'
import type { CoreContext as Context } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { Member, Presence } from './presence.ts'

/** Makes the feature for one server. */
export function liveFeature(presence: Presence): Feature {
  const makePresence = (ctx: Context) => (channel: Channel, member: Member) => presence.add(ctx, channel, member)
  return { name: 'live', members: [{ name: 'presence', make: makePresence }] }
}
