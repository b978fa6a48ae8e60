/**
 * The queues of the Redis broker. One script pushes an event, one takes an event. A taken event stays in Redis under a
 * token until a client has received it, so no event is lost when a reply is. One with a lease stays there until it is
 * reported as done. Leases end by the clock of the engine: each `take` looks for them, and so does a timer in each
 * process that has seen one, since clients may wait for the event.
 */
import { isJsonLine } from '../base/json-text.ts'
import { maxLeaseMs, type LeaseEnd, type QueueEvent, type SourceLimits, type Unsubscribe } from '../events/broker.ts'
import { newLease } from '../events/leases.ts'
import { eventText, limitArguments, type BrokerContext } from './broker-context.ts'
import { answered, RedisUnknownOutcomeError } from './errors.ts'
import { createQueueScripts } from './queue-scripts.ts'
import { decoded, encoded, integerIn, listIn, textIn, type Reply } from './reply.ts'

/** A taken event. Its token is its lease, or the tag of the call that took it. */
interface TakenEvent extends QueueEvent {
  readonly token: string
}

/** See `Broker` for each function. */
export class RedisQueues {
  readonly #context: BrokerContext
  readonly #scripts: ReturnType<typeof createQueueScripts>
  /** The queues that may hold events pushed by this process. */
  readonly #pushed = new Set<string>()
  /** Tokens of events to put back as soon as the server is available, in the order of taking, with their queues. */
  readonly #toRestore = new Map<string, string>()
  /** By queue: looks for leases that are over. */
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #stopWatching: () => void
  dropped = 0

  constructor(context: BrokerContext) {
    this.#context = context
    this.#scripts = createQueueScripts(context.redis)
    this.#stopWatching = context.redis.onState((state) => {
      if (state === 'ready') this.#restorePending()
    })
  }

  push(name: string, text: string, limits: SourceLimits): Promise<void> {
    return this.#run('an event', async () => {
      const values = [...limitArguments(limits), this.#pubSubOf(name), eventText(text)]
      this.dropped += integerIn(await this.#scripts.push.run(this.#keysOf(name), ...values))
      this.#pushed.add(name)
    })
  }

  async take(name: string, leaseMs?: number): Promise<QueueEvent | undefined> {
    for (;;) {
      const event = await this.#run('an event', (tag) => this.#take(name, tag, leaseMs))
      if (event !== 'damaged') return event
      this.dropped += 1
      this.#context.onProblem(`queue "${name}": an event in the shared engine is damaged and was dropped`)
    }
  }

  /** Puts an event back. When the server is away, this happens once it is back. */
  async putBack(name: string, event: QueueEvent): Promise<void> {
    const { token, lease } = event as TakenEvent // Callers pass what take() returned.
    if (lease !== undefined) await this.endLease(name, lease, 'back')
    else await this.#run('an event', () => this.#restore(name, token))
  }

  /** Ends a lease. When this fails, its time ends it. */
  async endLease(name: string, lease: string, end: LeaseEnd): Promise<boolean> {
    const values = [this.#pubSubOf(name), encoded(lease), end]
    const run = (): Promise<Reply> => this.#scripts.endLease.run(this.#keysOf(name), ...values)
    const [isEnded, dropped] = listIn(await this.#run('an event', run))
    this.dropped += integerIn(dropped)
    return integerIn(isEnded) === 1
  }

  handedOut(name: string, event: QueueEvent): void {
    if (event.lease !== undefined) return
    this.#forget(name, (event as TakenEvent).token) // Returned by take(), too.
  }

  onAvailable(name: string, listener: () => void): Promise<Unsubscribe> {
    const onLost = (): void => {}
    const subscriber = { onMessage: listener, onLost, onReconnected: listener } // Messages may have been missed.
    return this.#run('a subscription', () => this.#context.redis.subscribe(this.#pubSubOf(name), subscriber))
  }

  /** Drops expired events from the queues that this process pushes to. The next sweep retries a failure. */
  async sweep(): Promise<void> {
    this.#restorePending()
    await Promise.allSettled([...this.#pushed].map((name) => this.#sweep(name)))
  }

  /** Puts back the events that are due. When the server is away, they expire there within a day. */
  async close(): Promise<void> {
    this.#stopWatching()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    this.#restorePending()
    await this.#context.calls.settled()
  }

  #forget(name: string, token: string): void {
    const { redis, calls } = this.#context
    redis.command('HDEL', this.#takenKeyOf(name, calls.process), token).catch(() => {}) // If this fails, it expires.
  }

  async #take(name: string, tag: string, leaseMs: number | undefined): Promise<TakenEvent | 'damaged' | undefined> {
    const lease = leaseMs === undefined ? undefined : newLease()
    const token = lease ?? tag
    try {
      const keys = [...this.#keysOf(name), this.#takenKeyOf(name, this.#context.calls.process)]
      const values = [token, leaseMs === undefined ? 0 : Math.ceil(leaseMs * 1000), this.#pubSubOf(name)]
      const [dropped, left, nextLeaseUs, event] = listIn(await this.#scripts.take.run(keys, ...values))
      this.dropped += integerIn(dropped)
      this.#watchLeases(name, integerIn(nextLeaseUs))
      if (event === undefined) return undefined
      const text = textOf(event)
      if (text !== undefined) return { text, left: integerIn(left), token, lease }
      if (lease === undefined) this.#forget(name, token)
      else await this.endLease(name, lease, 'done')
      return 'damaged'
    } catch (error) {
      // If it was taken with a lease, that ends.
      if (error instanceof RedisUnknownOutcomeError && lease === undefined) this.#toRestore.set(token, name)
      throw error
    }
  }

  /** @param nextUs microseconds until the next lease ends; negative: there is none */
  #watchLeases(name: string, nextUs: number): void {
    clearTimeout(this.#timers.get(name))
    this.#timers.delete(name)
    if (nextUs < 0) return
    const look = (): void => {
      this.#timers.delete(name)
      this.#sweep(name).catch(() => {}) // The next take looks, too.
    }
    this.#timers.set(name, setTimeout(look, Math.min(Math.ceil(nextUs / 1000), maxLeaseMs)).unref())
  }

  async #restore(name: string, token: string): Promise<void> {
    const process = token.slice(0, token.lastIndexOf('.'))
    try {
      const keys = [...this.#keysOf(name), this.#takenKeyOf(name, process)]
      this.dropped += integerIn(await this.#scripts.restore.run(keys, this.#pubSubOf(name), token))
      this.#toRestore.delete(token)
    } catch (error) {
      this.#toRestore.set(token, name)
      throw error
    }
  }

  /** Puts back the newest event first, so that the oldest is the next to be taken. */
  #restorePending(): void {
    if (this.#context.redis.state !== 'ready') return
    const ignore = (): void => {} // The next sweep or connection retries.
    for (const [token, name] of [...this.#toRestore].reverse()) {
      this.#run('an event', () => this.#restore(name, token)).catch(ignore)
    }
  }

  async #sweep(name: string): Promise<void> {
    const run = (): Promise<Reply> => this.#scripts.sweep.run(this.#keysOf(name), this.#pubSubOf(name))
    const [dropped, left, nextLeaseUs] = listIn(await this.#run('a sweep', run))
    this.dropped += integerIn(dropped)
    this.#watchLeases(name, integerIn(nextLeaseUs))
    if (integerIn(left) === 0) this.#pushed.delete(name)
  }

  /** Runs a call that counts as pending until it is answered. */
  #run<T>(what: string, work: (tag: string) => Promise<T>): Promise<T> {
    const { calls, onProblem } = this.#context
    return calls.run((tag) => answered(what, work(tag), onProblem))
  }

  #keysOf(name: string): string[] {
    return ['queue', 'queue-limits', 'queue-leased', 'queue-leases'].map((kind) => {
      return `${this.#context.prefix}${kind}:${encoded(name)}`
    })
  }

  #takenKeyOf(name: string, process: string): string {
    return `${this.#context.prefix}queue-taken:${process}:${encoded(name)}`
  }

  #pubSubOf(name: string): string {
    return `${this.#context.channelPrefix}queue:${encoded(name)}`
  }
}

/** Parses an event, which begins with its time; undefined when no server can have pushed it. */
function textOf(event: Reply): string | undefined {
  const sent = /^\d+ (.*)$/s.exec(textIn(event))?.[1]
  const text = sent === undefined ? undefined : decoded(sent)
  return text !== undefined && isJsonLine(text) ? text : undefined
}
