/**
 * What a worker that comes later lacks: what was changed since the files were read, which it reads itself.
 *
 * Surprise: what was done and undone is forgotten, so the list is as long as what it changes, however long a server runs.
 */
import type { Command } from '../control/commands.ts'
import type { AdminState, Change } from '../control/relay.ts'

/** What a worker that comes later takes up after it has loaded its files. */
export interface Missed {
  /** The routes that were added and removed one by one since the last reload, in order. */
  readonly changes: readonly Change[]
  /** The admin's credentials, where they were made since the start. */
  readonly admin?: AdminState
}

export class KeptChanges {
  #changes: readonly Change[] = []
  #admin: AdminState | undefined

  /** What is kept by now. */
  get missed(): Missed {
    return { changes: this.#changes, ...(this.#admin !== undefined && { admin: this.#admin }) }
  }

  /** Keeps a change, as far as no file has it. */
  add(change: Change): void {
    if (change.admin !== undefined) this.#admin = { ...this.#admin, ...change.admin }
    this.#changes = withChange(this.#changes, change)
  }
}

/** The list with one change more, in order. A change that is not about routes leaves it as it is. */
function withChange(changes: readonly Change[], change: Change): readonly Change[] {
  const { command } = change
  if (command.type === 'routes.reload') return changes.filter(({ lasts }) => lasts === true)
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
