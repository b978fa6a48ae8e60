/** What the tables of channels and of queues share: their statements, their listeners and the size of their sweeps. */
import type { Unsubscribe } from '../events/broker.ts'
import type { Database } from './database.ts'
import type { SqlValue, Statement } from './sqlite.ts'

/** The columns that channels and queues have in common. */
export interface SourceRow {
  readonly name: string
  readonly max_events: number
  /** In milliseconds; may be Infinity. */
  readonly max_age: number
  /** The time of the last use, to about half an hour. */
  readonly used: number
}

/** The most events that one transaction drops. */
export const partSize = 1000
/** The most channels or queues that one transaction of a sweep examines. */
export const sourcesPerPart = 100
/** How old the time of the last use may get before a read renews it. */
export const renewMs = 1_800_000
/** An empty source is kept at least this long after its last use, so that cursors stay valid. */
const minIdleMs = 3_600_000

/** The statements of a database, with the types of their rows. */
export class Statements {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  run(sql: string, ...values: readonly SqlValue[]): ReturnType<Statement['run']> {
    return this.#database.prepare(sql).run(...values)
  }

  /** Returns the first row. */
  get<Row>(sql: string, ...values: readonly SqlValue[]): Row | undefined {
    return this.#database.prepare(sql).get(...values) as Row | undefined // The columns of the statement.
  }

  all<Row>(sql: string, ...values: readonly SqlValue[]): Row[] {
    return this.#database.prepare(sql).all(...values) as Row[] // The columns of the statement.
  }
}

/** Subscriptions by the stored names of sources. */
export class Listeners<Listener> {
  readonly #byName = new Map<string, Set<{ readonly listener: Listener }>>()

  /** Adds a subscription, even if the listener is subscribed already. */
  add(name: string, listener: Listener): Unsubscribe {
    const added = { listener }
    const known = this.#byName.get(name) ?? new Set()
    this.#byName.set(name, known.add(added))
    return () => {
      known.delete(added)
      if (known.size === 0 && this.#byName.get(name) === known) this.#byName.delete(name)
    }
  }

  /** Calls a function with each listener of a source that is still subscribed by then. */
  forEach(name: string, call: (listener: Listener) => void): void {
    for (const { listener } of this.#byName.get(name) ?? []) call(listener)
  }

  has(name: string): boolean {
    return this.#byName.has(name)
  }

  /** Ends all subscriptions, also for a `forEach` that is under way. */
  clear(): void {
    for (const known of this.#byName.values()) known.clear()
    this.#byName.clear()
  }
}

/** Whether an empty source without listeners can be forgotten. @param nowMs milliseconds since 1970 */
export function isUnused({ used, max_age }: SourceRow, nowMs: number): boolean {
  return nowMs - used >= Math.max(max_age, minIdleMs) + renewMs
}
