/**
 * Control of one process: a command is a call. Commands are applied one after the other in the order they came, so that
 * two reloads at once do not mix.
 */
import type { Command, CommandHandlers, CommandTable, CommandType, Control } from './commands.ts'

/** Makes the control of one process. */
export function createLocalControl(handlers: CommandHandlers): Control {
  let last: Promise<unknown> = Promise.resolve()
  return {
    apply<T extends CommandType>(command: Command<T>): Promise<CommandTable[T]['answers']> {
      const applied = last.then(() => handlers[command.type](command))
      last = applied.catch(() => undefined) // The caller is told; the next command is not held up by it.
      return applied
    },
  }
}
