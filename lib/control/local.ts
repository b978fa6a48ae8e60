/**
 * Control of one process: a command is a call. What changes the routes is applied one after the other in the order it
 * came, so that two reloads at once do not mix. Everything else is applied at once: a stop must not wait for a module
 * that hangs while it loads.
 */
import { SerialQueue } from '../base/serial-queue.ts'
import type { Command, CommandHandlers, CommandTable, CommandType, Control } from './commands.ts'

/** Makes the control of one process. */
export function createLocalControl(handlers: CommandHandlers): Control {
  const ofRoutes = new SerialQueue()
  return {
    async apply<T extends CommandType>(command: Command<T>): Promise<CommandTable[T]['answers']> {
      if (!command.type.startsWith('routes.')) return handlers[command.type](command)
      return ofRoutes.run(() => handlers[command.type](command))
    },
  }
}
