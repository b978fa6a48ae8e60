/**
 * Control of one process: a command is a call. What changes the routes is applied one after the other in the order it
 * came, so that two reloads at once do not mix. Everything else is applied at once: a stop must not wait for a module
 * that hangs while it loads.
 */
import type { Command, CommandHandlers, CommandTable, CommandType, Control } from './commands.ts'

/** Makes the control of one process. */
export function createLocalControl(handlers: CommandHandlers): Control {
  let last: Promise<unknown> = Promise.resolve()
  return {
    async apply<T extends CommandType>(command: Command<T>): Promise<CommandTable[T]['answers']> {
      if (!command.type.startsWith('routes.')) return handlers[command.type](command)
      const applied = last.then(() => handlers[command.type](command))
      last = applied.catch(() => undefined) // The caller is told; the next command is not held up by it.
      return applied
    },
  }
}
