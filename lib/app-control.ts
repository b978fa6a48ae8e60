/**
 * How an app is changed while it runs: by the control of one process, of one of several, or of a node among others; and how
 * it takes up what they have changed.
 *
 * Surprise: what others change is taken up in the order in which it comes, and not before the files are loaded.
 */
import { SerialQueue } from './base/serial-queue.ts'
import type { CommandHandlers, Control } from './control/commands.ts'
import { createLocalControl } from './control/local.ts'
import type { AdminState, Change, CommandFollowers } from './control/relay.ts'
import { createSharedControl, follow } from './control/shared.ts'
import type { Nodes } from './nodes/contract.ts'
import type { ProcessPart } from './process-part.ts'

export interface AppControlOptions {
  readonly handlers: CommandHandlers
  readonly followers: CommandFollowers
  readonly adminState: () => AdminState
  readonly takeAdminState: (state: AdminState) => void
  /** Given where this is one of several processes of a server. */
  readonly part: ProcessPart | undefined
  /** Given where this process alone is a node. */
  readonly nodes: Nodes | undefined
}

export interface AppControl extends Control {
  /** Takes up what another process or node has carried out. Rejects when this one cannot. */
  follow(change: Change): Promise<void>
  /** To be called when the files are loaded: takes up what they do not hold. */
  catchUp(): Promise<void>
}

/** Makes the control of one app. */
export function createAppControl(options: AppControlOptions): AppControl {
  const { handlers, followers, adminState, part, nodes } = options
  let resolveLoaded: () => void
  const loaded = new Promise<void>((resolve) => {
    resolveLoaded = resolve
  })
  const taken = new SerialQueue()
  void taken.run(() => loaded)
  const relay = part?.relay ?? nodes?.relay(async (command) => void (await local.apply(command)))
  const local = createLocalControl(handlers)
  const control = relay === undefined ? local : createSharedControl({ handlers, relay, adminState })
  if (part?.missed.admin !== undefined) options.takeAdminState(part.missed.admin)

  function takeUp(change: Change): Promise<void> {
    return taken.run(() => follow(followers, change))
  }

  async function catchUp(): Promise<void> {
    for (const change of part?.missed.changes ?? []) await follow(followers, change)
    resolveLoaded()
    await nodes?.join()
    await part?.beforeListening()
    await taken.ended()
  }

  return { apply: (command) => control.apply(command), follow: takeUp, catchUp }
}
