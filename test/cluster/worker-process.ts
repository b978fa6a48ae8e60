import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Peer, portOf } from '../../lib/cluster/peer.ts'
import type { Broker, ChannelEvent, Unsubscribe } from '../../lib/events/broker.ts'
import { noCounts, type SessionStore } from '../../lib/session/store.ts'
import { pack, unpack } from './packed.ts'
import { splitPort } from './split-port.ts'

/** A process that runs any number of workers; this process is the primary. */
export interface WorkerProcess {
  /** Starts a worker there. `peer` is the primary's side of its channel. */
  begin(): RemoteWorker
  /** Kills the process, with all its workers; resolves when it has ended. */
  kill(): Promise<void>
}

/** A worker in another process. Calls to its broker and its stores run there. */
export interface RemoteWorker {
  readonly peer: Peer
  readonly broker: Broker
  /** Its store of a number of sessions. */
  openStore(max: number): SessionStore
}

/** Starts the process. */
export function startWorkerProcess(): WorkerProcess {
  const child = fork(fileURLToPath(new URL('./worker-child.ts', import.meta.url)))
  const open = splitPort(portOf(child))
  let count = 0
  return {
    begin: () => {
      count += 1
      return remoteWorker(new Peer(open(`cluster ${count}`)), new Peer(open(`control ${count}`)))
    },
    kill: () => kill(child),
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

function remoteWorker(peer: Peer, control: Peer): RemoteWorker {
  const listeners = new Map<number, (event: ChannelEvent) => void>()
  let keys = 0
  let dropped = 0
  control.on('heard', (taken) => {
    const [key, event] = taken as [number, ChannelEvent]
    listeners.get(key)?.(event)
  })

  function ask(name: string) {
    return async (...given: unknown[]): Promise<never> => {
      const answer = unpack((await control.call('broker', pack([name, ...given]))) as string)
      const { value, dropped: droppedThere } = answer as { value?: never; dropped: number }
      dropped = droppedThere
      return value as never // What the function of that name answers.
    }
  }

  async function subscribe(kind: string, name: string, listener: (event: ChannelEvent) => void): Promise<Unsubscribe> {
    const key = ++keys
    listeners.set(key, listener)
    await control.call('subscribe', [kind, name, key])
    return () => {
      if (listeners.delete(key)) control.notify('unsubscribe', key)
    }
  }

  const broker: Broker = {
    publish: ask('publish'),
    read: ask('read'),
    subscribe: (channel, listener) => subscribe('channel', channel, listener),
    push: ask('push'),
    take: ask('take'),
    endLease: ask('endLease'),
    putBack: ask('putBack'),
    handedOut: () => {},
    onAvailable: (queue, listener) => subscribe('queue', queue, () => listener()),
    get dropped() {
      return dropped
    },
    onCutOff: () => {},
    sweep: () => {},
    close: ask('close'),
  }
  return { peer, broker, openStore: (max) => remoteStore(control, max) }
}

function remoteStore(control: Peer, max: number): SessionStore {
  function ask(name: string) {
    return async (...given: unknown[]): Promise<never> => {
      const answer = unpack((await control.call('store', pack([max, name, ...given]))) as string)
      return (answer as { value?: never }).value as never // As above.
    }
  }
  return {
    read: ask('read'),
    create: ask('create'),
    merge: ask('merge'),
    rename: ask('rename'),
    destroy: ask('destroy'),
    sweep: ask('sweep'),
    close: ask('close'),
    counts: noCounts,
  }
}
