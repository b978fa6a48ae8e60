/**
 * The queues of the broker in SQLite. A taken event stays in the table, marked, until a client has it: the next run of
 * the server returns it again if this one ends before. One with a lease stays until its client reports it as done, over
 * restarts too. The order of a queue is that of its ids.
 *
 * The number of waiting events is a column of the queue, since counting them would take longer the more there are.
 */
import { maxLeaseMs, type LeaseEnd, type QueueEvent, type SourceLimits, type Unsubscribe } from '../events/broker.ts'
import { Leases, newLease } from '../events/leases.ts'
import type { Database } from './database.ts'
import { isUnused, Listeners, partSize, sourcesPerPart, Statements, type SourceRow } from './source-tables.ts'
import { eventFrom, toStored } from './stored-text.ts'

interface QueueRow extends SourceRow {
  /** The number of events that are not taken. */
  readonly waiting: number
}

/** An event as `take` returns it. */
interface TakenEvent extends QueueEvent {
  readonly id: number
}

/** How the taking of an event ends: `given` to a client, or `back` in the queue. */
type TakeEnd = 'given' | 'back'

/** Makes a taken event available. */
const available = 'taken = 0, lease = NULL, leased_until = NULL'

/** See `Broker` for each function. */
export class SqliteQueues {
  readonly #database: Database
  readonly #sql: Statements
  readonly #now: () => number
  readonly #listeners = new Listeners<() => void>()
  /** Leased events, by their ids. */
  readonly #leases = new Leases<number>((name, id) => {
    this.#end(name, id, 'back').catch(() => {}) // It is repeated.
  })
  /** Taken events, by id, whose end could not be written yet. A sweep repeats it. */
  readonly #unwritten = new Map<number, { readonly name: string; readonly end: TakeEnd }>()
  dropped = 0

  /** @param now milliseconds since 1970, an integer */
  constructor(database: Database, now: () => number) {
    this.#database = database
    this.#sql = new Statements(database)
    this.#now = now
  }

  /** Makes the events that an earlier run had taken available again, those with a lease when it ends. */
  open(): Promise<void> {
    return this.#database.write(() => {
      const taken = this.#sql.all<{ queue: string; count: number }>(
        'SELECT queue, count(*) AS count FROM queue_events WHERE taken = 1 AND lease IS NULL GROUP BY queue',
      )
      for (const { queue, count } of taken) this.#addWaiting(queue, count)
      this.#sql.run('UPDATE queue_events SET taken = 0 WHERE taken = 1 AND lease IS NULL')
      const leased = this.#sql.all<{ id: number; queue: string; lease: string; leased_until: number }>(
        'SELECT id, queue, lease, leased_until FROM queue_events WHERE taken = 1 AND lease IS NOT NULL',
      )
      for (const { id, queue, lease, leased_until: until } of leased) {
        const ms = Math.max(0, until - this.#now())
        this.#leases.begin(lease, queue, id, Math.min(ms, maxLeaseMs)) // The clock may have been set back.
      }
    })
  }

  async push(queue: string, text: string, limits: SourceLimits): Promise<void> {
    const name = toStored(queue)
    const dropped = await this.#database.write(() => this.#add(name, toStored(text), limits))
    this.dropped += dropped
    this.#announce(name)
  }

  async take(queue: string, leaseMs?: number): Promise<QueueEvent | undefined> {
    const name = toStored(queue)
    // An event that is not committed yet is announced later.
    while ((this.#find(name)?.waiting ?? 0) > 0) {
      const { dropped, event } = await this.#database.write(() => this.#takeFirst(name, leaseMs))
      this.dropped += dropped
      if (event?.lease !== undefined && leaseMs !== undefined) this.#leases.begin(event.lease, name, event.id, leaseMs)
      if (event !== undefined || dropped === 0) return event
    }
    return undefined
  }

  putBack(queue: string, event: QueueEvent): Promise<void> {
    const { id, lease } = event as TakenEvent // `take` returned it.
    if (lease !== undefined) this.#leases.end(lease)
    return this.#end(toStored(queue), id, 'back')
  }

  handedOut(queue: string, event: QueueEvent): void {
    if (event.lease !== undefined) return
    this.#end(toStored(queue), (event as TakenEvent).id, 'given').catch(() => {}) // The database has logged it.
  }

  async endLease(queue: string, lease: string, end: LeaseEnd): Promise<boolean> {
    const name = toStored(queue)
    const id = this.#leases.find(lease, name)
    if (id === undefined) return false
    // Of two calls, and the end by time, the first one finds the event.
    const { wasLeased, dropped } = await this.#database.write(() => {
      if (!this.#isLeased(id, lease)) return { wasLeased: false, dropped: 0 }
      return { wasLeased: true, dropped: end === 'done' ? this.#remove(id) : this.#restore(name, id) }
    })
    this.#leases.end(lease)
    this.dropped += dropped
    if (wasLeased && end === 'back') this.#announce(name)
    return wasLeased
  }

  onAvailable(queue: string, listener: () => void): Unsubscribe {
    return this.#listeners.add(toStored(queue), listener)
  }

  /** Writes the ends that failed. Rejects if they fail again. */
  async repeatEnds(): Promise<void> {
    // The newest goes back first, so that the oldest is the next to be taken.
    const ends = [...this.#unwritten].sort(([one], [other]) => other - one)
    this.#unwritten.clear()
    await Promise.all(ends.map(([id, { name, end }]) => this.#end(name, id, end)))
  }

  /**
   * Drops some expired events and forgets some unused queues, within a transaction.
   * @param previous the stored name before the first queue; '' at first
   * @returns the name to go on after, undefined at the end; and how many events it dropped
   */
  sweepPart(previous: string): { reached: string | undefined; dropped: number } {
    const rows = this.#sql.all<QueueRow>(
      'SELECT * FROM queues WHERE name > ? ORDER BY name LIMIT ?', previous, sourcesPerPart,
    )
    let reached = previous
    let dropped = 0
    for (const row of rows) {
      dropped += this.#trim(row, partSize - dropped)
      if (dropped >= partSize) return { reached, dropped } // This queue may have more.
      this.#forgetUnused(row)
      reached = row.name
    }
    return { reached: rows.length < sourcesPerPart ? undefined : reached, dropped }
  }

  /** Ends all subscriptions. */
  close(): void {
    this.#leases.close()
    this.#listeners.clear()
  }

  #announce(name: string): void {
    this.#listeners.forEach(name, (listener) => listener())
  }

  async #end(name: string, id: number, end: TakeEnd): Promise<void> {
    try {
      const dropped = await this.#database.write(() => (end === 'back' ? this.#restore(name, id) : this.#remove(id)))
      this.dropped += dropped
    } catch (error) {
      this.#unwritten.set(id, { name, end })
      throw error
    }
    if (end === 'back') this.#announce(name)
  }

  // ---- within a transaction ----

  #find(name: string): QueueRow | undefined {
    return this.#sql.get('SELECT * FROM queues WHERE name = ?', name)
  }

  #first(name: string): { readonly id: number; readonly at: number; readonly text: string } | undefined {
    return this.#sql.get(
      'SELECT id, at, text FROM queue_events WHERE taken = 0 AND queue = ? ORDER BY id LIMIT 1', name,
    )
  }

  #addWaiting(name: string, count: number): void {
    this.#sql.run('UPDATE queues SET waiting = waiting + ? WHERE name = ?', count, name)
  }

  /** Returns the number of dropped events. */
  #add(name: string, text: string, { maxEvents, maxAgeMs }: SourceLimits): number {
    const now = this.#now()
    const row = this.#sql.get(
      'INSERT INTO queues (name, waiting, max_events, max_age, used) VALUES (?, 1, ?, ?, ?) '
        + 'ON CONFLICT DO UPDATE SET waiting = waiting + 1, max_events = excluded.max_events, '
        + 'max_age = excluded.max_age, used = excluded.used RETURNING *',
      name, maxEvents, maxAgeMs, now,
    ) as QueueRow // The statement returns the row that it writes.
    this.#sql.run('INSERT INTO queue_events (queue, text, at, taken) VALUES (?, ?, ?, 0)', name, text, now)
    return this.#trim(row, partSize)
  }

  /** Takes the first event. Without one, and with dropped ones, there may be another. */
  #takeFirst(name: string, leaseMs: number | undefined): { dropped: number; event: TakenEvent | undefined } {
    const row = this.#find(name)
    const dropped = row === undefined ? 0 : this.#trim(row, partSize)
    const first = dropped < partSize ? this.#first(name) : undefined
    if (row === undefined || first === undefined) return { dropped, event: undefined }
    const { id } = first
    const text = eventFrom(first.text)
    this.#addWaiting(name, -1)
    const lease = leaseMs === undefined ? undefined : newLease()
    this.#sql.run(
      'UPDATE queue_events SET taken = 1, lease = ?, leased_until = ? WHERE id = ?',
      lease ?? null, leaseMs === undefined ? null : this.#now() + Math.ceil(leaseMs), id,
    )
    if (text !== undefined) return { dropped, event: { text, left: row.waiting - dropped - 1, id, lease } }
    return { dropped: dropped + 1 + this.#remove(id), event: undefined } // It is damaged.
  }

  /** Puts an event back before all that wait. Returns the number of dropped events. */
  #restore(name: string, id: number): number {
    const first = this.#first(name)
    const isFirst = first === undefined || id < first.id
    const { changes } = isFirst
      ? this.#sql.run(`UPDATE queue_events SET ${available} WHERE id = ? AND taken = 1`, id)
      : this.#sql.run(
        `UPDATE queue_events SET ${available}, id = (SELECT min(id) FROM queue_events) - 1 `
          + 'WHERE id = ? AND taken = 1',
        id,
      )
    this.#addWaiting(name, changes)
    const row = this.#find(name)
    return row === undefined ? 0 : this.#trim(row, partSize)
  }

  #isLeased(id: number, lease: string): boolean {
    return this.#sql.get('SELECT 1 FROM queue_events WHERE id = ? AND lease = ?', id, lease) !== undefined
  }

  /** Returns 0: an event that a client has is not dropped. */
  #remove(id: number): number {
    this.#sql.run('DELETE FROM queue_events WHERE id = ? AND taken = 1', id)
    return 0
  }

  /** Drops the oldest waiting events past the limits, up to a number. Returns how many. */
  #trim({ name, waiting, max_events, max_age }: QueueRow, most: number): number {
    const now = this.#now()
    const first = this.#first(name)
    if (first === undefined) return 0
    if (first.at > now) {
      // The clock was set back: events of the future count as pushed now.
      this.#sql.run('UPDATE queue_events SET at = ? WHERE taken = 0 AND queue = ? AND at > ?', now, name, now)
    }
    const newest = now - max_age
    const excess = waiting - max_events
    if (excess <= 0 && first.at > newest) return 0
    const oldest = this.#sql.all<{ id: number; at: number }>(
      'SELECT id, at FROM queue_events WHERE taken = 0 AND queue = ? ORDER BY id LIMIT ?', name, most,
    )
    const kept = oldest.findIndex(({ at }, index) => index >= excess && at > newest)
    const gone = kept < 0 ? oldest : oldest.slice(0, kept)
    const last = gone.at(-1)
    if (last === undefined) return 0
    this.#sql.run('DELETE FROM queue_events WHERE taken = 0 AND queue = ? AND id <= ?', name, last.id)
    this.#addWaiting(name, -gone.length)
    return gone.length
  }

  /** A taken event may come back, so its queue stays. */
  #forgetUnused(row: QueueRow): void {
    const { name } = row
    if (!isUnused(row, this.#now())) return
    if (this.#first(name) !== undefined) return
    if (this.#sql.get('SELECT 1 FROM queue_events WHERE taken = 1 AND queue = ? LIMIT 1', name) !== undefined) return
    this.#sql.run('DELETE FROM queues WHERE name = ?', name)
  }
}
