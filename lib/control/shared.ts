/**
 * Control of one of several processes: a command takes effect here first, then in the others, and the answer comes when
 * all have taken it up.
 *
 * Surprise: what all have in common is changed in turns over all processes, so that two reloads at once do not mix. The
 * rest is not held up by a module that hangs while it loads.
 */
import {
  NotEverywhereError,
  type Command,
  type CommandHandlers,
  type CommandTable,
  type CommandType,
  type Control,
  type ReloadResult,
} from './commands.ts'
import type { AdminState, Change, CommandFollowers, Relay, SharedCommandType } from './relay.ts'

export interface SharedControlOptions {
  /** Carries out the commands that this process is asked for. */
  readonly handlers: Omit<CommandHandlers, 'stop' | 'logs.reopen'>
  readonly relay: Relay
  /** The admin's credentials now. */
  readonly adminState: () => AdminState
}

const inTurns = /^(routes|trace|admin)\./

/** Makes the control of one of several processes. `apply` rejects with NotEverywhereError besides. */
export function createSharedControl({ handlers, relay, adminState }: SharedControlOptions): Control {
  async function applyEverywhere(command: Command<SharedCommandType>): Promise<unknown> {
    const { type } = command
    const endTurn = inTurns.test(type) ? await relay.turn() : undefined
    try {
      const answer = await call(handlers, withoutTtl(command))
      const admin = type.startsWith('admin.') ? { admin: adminState() } : {}
      const added = type === 'routes.reload' ? { added: (answer as ReloadResult).added } : {} // That is what it answers.
      const missing = await relay.share({ command, ...admin, ...added })
      if (missing.length > 0) throw new NotEverywhereError(type, missing)
      return answer
    } finally {
      endTurn?.()
    }
  }

  return {
    apply: async <T extends CommandType>(command: Command<T>) => {
      const outcome = isOfWhole(command) ? relay.ask(command) : applyEverywhere(command as Command<SharedCommandType>)
      return (await outcome) as CommandTable[T]['answers'] // Each handler answers what its command does.
    },
  }
}

/** Takes up a change that another process has carried out. Rejects when this one cannot. */
export async function follow(followers: CommandFollowers, change: Change): Promise<void> {
  const { command } = change
  const follower = followers[command.type] as (change: Change) => unknown // The type is that of the change.
  await follower({ ...change, command: withoutTtl(command) })
}

/** Whoever carries the command sets the switch back, for all at once. */
function withoutTtl(command: Command<SharedCommandType>): Command<SharedCommandType> {
  if (command.type !== 'trace.set') return command
  const { ttlSeconds: _, ...switched } = command as Command<'trace.set'>
  return switched
}

function call(handlers: SharedControlOptions['handlers'], command: Command<SharedCommandType>): unknown {
  return (handlers[command.type] as (command: Command) => unknown)(command) // The type is that of the command.
}

function isOfWhole(command: Command): command is Command<'stop' | 'logs.reopen'> {
  return command.type === 'stop' || command.type === 'logs.reopen'
}
