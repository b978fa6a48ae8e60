/**
 * The channels of the broker in SQLite. The ids of a channel have no holes, so the difference of two ids is a number of
 * events. All that is known of a channel is in the tables: memory holds only the listeners, so nothing has to be undone
 * when a transaction fails.
 *
 * A row of a channel is also made by its first read, since the client may come back with that cursor. A channel that
 * was unused for long is forgotten; the highest id of such channels is kept, and a new channel begins above it.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { ChannelEvent, ChannelListener, ChannelRead, SourceLimits, Unsubscribe } from '../events/broker.ts'
import type { Database } from './database.ts'
import { isUnused, Listeners, partSize, renewMs, sourcesPerPart, Statements, type SourceRow } from './source-tables.ts'
import { eventFrom, toStored } from './stored-text.ts'

interface ChannelRow extends SourceRow {
  readonly last_id: number
}

/** A listener, and the newest id when it subscribed. */
interface Subscriber {
  readonly hear: ChannelListener
  readonly sinceId: number
}

/** The id before the first one of a new channel. The parameter is the wall clock in microseconds, less one. */
const idBefore = 'max(0, ?, coalesce((SELECT max(last_id) FROM channels_forgotten), 0))'

/** See `Broker` for each function. */
export class SqliteChannels {
  readonly #database: Database
  readonly #sql: Statements
  readonly #now: () => number
  readonly #listeners = new Listeners<Subscriber>()

  /** @param now milliseconds since 1970, an integer */
  constructor(database: Database, now: () => number) {
    this.#database = database
    this.#sql = new Statements(database)
    this.#now = now
  }

  async publish(channel: string, text: string, limits: SourceLimits): Promise<number> {
    const name = toStored(channel)
    // Transactions resolve in the order of their writes, so listeners are called in the order of ids.
    const id = await this.#database.write(() => this.#add(name, toStored(text), limits))
    const event: ChannelEvent = { id, text }
    this.#listeners.forEach(name, ({ hear, sinceId }) => {
      if (id > sinceId) hear(event)
    })
    return id
  }

  read(channel: string, since: number | undefined): MaybePromise<ChannelRead> {
    const name = toStored(channel)
    const row = this.#find(name)
    if (row === undefined) return after(this.#create(name), () => this.read(channel, since))
    // If this fails, the database logs it and the next read tries again.
    if (this.#now() - row.used >= renewMs) this.#renew(name).catch(() => {})
    return this.#eventsAfter(row, since)
  }

  subscribe(channel: string, hear: ChannelListener): Unsubscribe {
    const name = toStored(channel)
    // An event may be committed already, and its publisher not called back yet.
    return this.#listeners.add(name, { hear, sinceId: this.#find(name)?.last_id ?? 0 })
  }

  /**
   * Drops some expired events and forgets some unused channels, within a transaction.
   * @param previous the stored name before the first channel; '' at first
   * @returns the name to go on after; undefined at the end
   */
  sweepPart(previous: string): string | undefined {
    const rows = this.#sql.all<ChannelRow>(
      'SELECT * FROM channels WHERE name > ? ORDER BY name LIMIT ?', previous, sourcesPerPart,
    )
    let reached = previous
    let left = partSize
    for (const row of rows) {
      left -= this.#trim(row, left)
      if (left <= 0) return reached // This channel may have more.
      this.#forgetUnused(row)
      reached = row.name
    }
    return rows.length < sourcesPerPart ? undefined : reached
  }

  /** Ends all subscriptions. */
  close(): void {
    this.#listeners.clear()
  }

  #find(name: string): ChannelRow | undefined {
    return this.#sql.get('SELECT * FROM channels WHERE name = ?', name)
  }

  /** Makes the row of a channel, unless an earlier write of the turn has made it. */
  #create(name: string): Promise<unknown> {
    return this.#database.write(() => {
      const now = this.#now()
      this.#sql.run(
        `INSERT INTO channels (name, last_id, max_events, max_age, used) VALUES (?, ${idBefore}, 1, 0, ?) `
          + 'ON CONFLICT DO NOTHING',
        name, now * 1000 - 1, now,
      )
    })
  }

  #renew(name: string): Promise<unknown> {
    return this.#database.write(() => this.#sql.run('UPDATE channels SET used = ? WHERE name = ?', this.#now(), name))
  }

  /** Adds an event, within a transaction. Returns its id. */
  #add(name: string, text: string, { maxEvents, maxAgeMs }: SourceLimits): number {
    const now = this.#now()
    const row = this.#sql.get(
      `INSERT INTO channels (name, last_id, max_events, max_age, used) VALUES (?, ${idBefore} + 1, ?, ?, ?) `
        + 'ON CONFLICT DO UPDATE SET last_id = last_id + 1, max_events = excluded.max_events, '
        + 'max_age = excluded.max_age, used = excluded.used RETURNING *',
      name, now * 1000 - 1, maxEvents, maxAgeMs, now,
    ) as ChannelRow // The statement returns the row that it writes.
    const id = row.last_id
    this.#sql.run('INSERT INTO channel_events (channel, id, text, at) VALUES (?, ?, ?, ?)', name, id, text, now)
    this.#trim(row, partSize)
    return id
  }

  /** What is past the limits does not count, dropped or not. A damaged event is a gap. */
  #eventsAfter({ name, last_id: lastId, max_events, max_age }: ChannelRow, since: number | undefined): ChannelRead {
    if (since === undefined || since === lastId) return { events: [], lastId, gap: false }
    if (since > lastId) return { events: [], lastId, gap: true }
    const rows = this.#sql.all<{ id: number; text: string; at: number }>(
      'SELECT id, text, at FROM channel_events WHERE channel = ? AND id > ? ORDER BY id',
      name, Math.max(since, lastId - max_events),
    )
    const newest = this.#now() - max_age
    const first = rows.findIndex(({ at }) => at > newest)
    let events: ChannelEvent[] = []
    for (const { id, text: stored } of first < 0 ? [] : rows.slice(first)) {
      const text = eventFrom(stored)
      if (text === undefined) events = []
      else events.push({ id, text })
    }
    return { events, lastId, gap: lastId - since > events.length }
  }

  /** Drops the oldest events past the limits, up to a number. Returns how many. */
  #trim({ name, last_id, max_events, max_age }: ChannelRow, most: number): number {
    const now = this.#now()
    const head = this.#sql.get<{ id: number; at: number }>(
      'SELECT id, at FROM channel_events WHERE channel = ? ORDER BY id LIMIT 1', name,
    )
    if (head === undefined) return 0
    if (head.at > now) {
      // The clock was set back: events of the future count as published now.
      this.#sql.run('UPDATE channel_events SET at = ? WHERE channel = ? AND at > ?', now, name, now)
    }
    let end = Math.max(head.id, last_id - max_events + 1)
    if (head.at <= now - max_age) {
      const kept = this.#sql.get<{ id: number }>(
        'SELECT id FROM channel_events WHERE channel = ? AND id < ? AND at > ? ORDER BY id LIMIT 1',
        name, head.id + most, now - max_age,
      )
      end = Math.max(end, kept?.id ?? Infinity)
    }
    end = Math.min(end, head.id + most, last_id + 1)
    if (end > head.id) this.#sql.run('DELETE FROM channel_events WHERE channel = ? AND id < ?', name, end)
    return end - head.id
  }

  #forgetUnused(row: ChannelRow): void {
    const { name, last_id: lastId } = row
    if (!isUnused(row, this.#now()) || this.#listeners.has(name)) return
    if (this.#sql.get('SELECT 1 FROM channel_events WHERE channel = ? LIMIT 1', name) !== undefined) return
    this.#sql.run('DELETE FROM channels WHERE name = ?', name)
    this.#sql.run('INSERT OR IGNORE INTO channels_forgotten (last_id) VALUES (?)', lastId)
    this.#sql.run(
      'DELETE FROM channels_forgotten WHERE last_id < (SELECT max(last_id) FROM channels_forgotten)',
    )
  }
}
