/** A worker process with brokers and session stores that a test calls by remote control: see `worker-process.ts`. */
import { ClusterBroker } from '../../lib/cluster/events.ts'
import { Peer, workerPort } from '../../lib/cluster/peer.ts'
import { createClusterSessionStore } from '../../lib/cluster/sessions.ts'
import type { Unsubscribe } from '../../lib/events/broker.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { pack, unpack } from './packed.ts'
import { splitPort } from './split-port.ts'

const open = splitPort(workerPort(), (name, port) => {
  if (name.startsWith('control ')) serve(new Peer(port), new Peer(open(name.replace('control', 'cluster'))))
})

function serve(control: Peer, cluster: Peer): void {
  const broker = new ClusterBroker(cluster)
  const stores = new Map<number, SessionStore>()
  const subscriptions = new Map<number, Unsubscribe>()

  control.on('broker', async (taken) => {
    const [name, ...given] = unpack(taken as string) as [keyof typeof broker, ...unknown[]]
    const value: unknown = await Reflect.apply(broker[name] as () => unknown, broker, given)
    return pack({ value, dropped: broker.dropped })
  })
  control.on('subscribe', async (taken) => {
    const [kind, name, key] = taken as ['channel' | 'queue', string, number]
    const hear = (event?: unknown): void => control.notify('heard', [key, event])
    subscriptions.set(key, await (kind === 'channel' ? broker.subscribe(name, hear) : broker.onAvailable(name, hear)))
  })
  control.on('unsubscribe', (taken) => subscriptions.get(taken as number)?.())
  control.on('store', async (taken) => {
    const [max, name, ...given] = unpack(taken as string) as [number, keyof SessionStore, ...unknown[]]
    const store = stores.get(max) ?? createClusterSessionStore(cluster, { store: 'memory', max })
    stores.set(max, store)
    return pack({ value: await Reflect.apply(store[name] as () => unknown, store, given) })
  })
}
