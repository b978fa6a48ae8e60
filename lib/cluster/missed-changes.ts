/**
 * The routes that were added and removed one by one since the last reload: what a worker that comes later takes up after
 * it has read the route files.
 *
 * Surprise: what was done and undone is forgotten, so the list is as long as what it changes, however long a server runs.
 */
import type { Command } from '../control/commands.ts'
import type { Change } from '../control/relay.ts'

/** The list with one change more, in order. A change that is not about routes leaves it as it is. */
export function withChange(changes: readonly Change[], change: Change): readonly Change[] {
  const { command } = change
  if (command.type === 'routes.reload') return []
  if (command.type === 'routes.add') {
    // One that is to last is found in its file, and what was said of its name before is over.
    return (command as Command<'routes.add'>).persist ? withoutName(changes, nameOf(change)) : [...changes, change]
  }
  if (command.type !== 'routes.delete') return changes
  const name = nameOf(change)
  const others = withoutName(changes, name)
  const first = changes.find((other) => nameOf(other) === name)
  // A name that was free when it was added is in no file.
  return first?.command.type === 'routes.add' ? others : [...others, change]
}

function withoutName(changes: readonly Change[], name: string): readonly Change[] {
  return changes.filter((change) => nameOf(change) !== name)
}

/** The record has been registered by the process that was asked: it has a name. */
function nameOf({ command }: Change): string {
  return command.type === 'routes.delete'
    ? (command as Command<'routes.delete'>).name
    : ((command as Command<'routes.add'>).record as { readonly name: string }).name
}
