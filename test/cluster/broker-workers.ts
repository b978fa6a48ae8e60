// The brokers of several workers as one, for tests of the common broker contract.
import type { hostBroker } from '../../lib/cluster/events.ts'
import type { Broker } from '../../lib/events/broker.ts'
import { inTurn } from './in-turn.ts'

/** The brokers of several workers as one. The host sweeps, and counts dropped events. */
export function asOne(brokers: readonly Broker[], host: ReturnType<typeof hostBroker>): Broker {
  return inTurn(brokers, {
    get dropped() {
      return host.dropped
    },
    sweep: () => host.sweep(),
  })
}
