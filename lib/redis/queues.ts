/**
 * The queues of the broker over Redis. One script pushes an event, one takes an event. An event that was taken stays in
 * Redis under a token until a client got it, and the next `take` reports that: so no event is lost when an answer is.
 */
import type { QueueEvent, SourceLimits, Unsubscribe } from '../events/broker.ts'
import { eventText, limitArguments, type BrokerParts } from './broker-parts.ts'
import { answered, RedisUnknownOutcomeError } from './errors.ts'
import { createQueueScripts, type QueueScripts } from './queue-scripts.ts'
import { decoded, encoded, integerIn, listIn, textIn, type Reply } from './reply.ts'

/** An event that was taken. Its token is the tag of the call that took it. */
interface TakenEvent extends QueueEvent {
  readonly token: string
}

/** The state of a queue that only this process has. */
interface Own {
  /** Tokens of events that clients got, which Redis has not been told yet. */
  readonly handedOut: string[]
  /** Tokens of events to put back as soon as the server can be asked, in the order of taking. */
  readonly owed: Set<string>
  /** Whether the queue may hold events that this process has pushed. */
  hasPushed: boolean
}

/** The most tokens that one call sends. */
const mostTokens = 1000
/** Milliseconds until a failed attempt to put an event back is repeated. */
const retryMs = 1000

/** As `Broker` describes each function. */
export class RedisQueues {
  readonly #parts: BrokerParts
  readonly #scripts: QueueScripts
  readonly #own = new Map<string, Own>()
  readonly #stopWatching: () => void
  #retry: NodeJS.Timeout | undefined = undefined
  dropped = 0

  constructor(parts: BrokerParts) {
    this.#parts = parts
    this.#scripts = createQueueScripts(parts.redis)
    this.#stopWatching = parts.redis.onState((state) => {
      if (state === 'ready') this.#restoreOwed()
    })
  }

  push(name: string, text: string, limits: SourceLimits): Promise<void> {
    return this.#run('an event', async () => {
      const values = [...limitArguments(limits), this.#placeOf(name), eventText(text)]
      this.dropped += integerIn(await this.#scripts.push.run(this.#keysOf(name), ...values))
      this.#ownOf(name).hasPushed = true
    })
  }

  take(name: string): Promise<QueueEvent | undefined> {
    return this.#run('an event', (token) => this.#take(name, token))
  }

  /** When the server is away, the event is put back once it is there again. */
  putBack(name: string, event: QueueEvent): Promise<void> {
    const { token } = event as TakenEvent // Callers pass what take() returned.
    return this.#run('an event', () => this.#restore(name, token))
  }

  handedOut(name: string, event: QueueEvent): void {
    this.#ownOf(name).handedOut.push((event as TakenEvent).token) // As above.
  }

  onAvailable(name: string, listener: () => void): Promise<Unsubscribe> {
    const onLost = (): void => {}
    const heard = { onMessage: listener, onLost, onReconnected: listener } // Messages may have been missed.
    return this.#run('a subscription', () => this.#parts.redis.subscribe(this.#placeOf(name), heard))
  }

  /** Drops the events that became too old in the queues that this process pushes to, and reports what clients got. */
  async sweep(): Promise<void> {
    const sweeps: Promise<void>[] = []
    for (const [name, own] of this.#own) {
      if (own.hasPushed || own.handedOut.length > 0) sweeps.push(this.#sweep(name, own))
      else if (own.owed.size === 0) this.#own.delete(name)
    }
    await Promise.all(sweeps)
  }

  /** Deletes what this process keeps in Redis. When the server is away, it expires there within a day. */
  async close(): Promise<void> {
    this.#stopWatching()
    this.#restoreOwed()
    await this.#parts.calls.settled()
    clearTimeout(this.#retry)
    const { redis, calls } = this.#parts
    const kept = [...this.#own].filter(([, { owed }]) => owed.size === 0)
    await Promise.allSettled(kept.map(([name]) => redis.command('DEL', this.#takenKeyOf(name, calls.process))))
  }

  async #take(name: string, token: string): Promise<TakenEvent | undefined> {
    const own = this.#ownOf(name)
    const handedOut = own.handedOut.splice(0, mostTokens)
    try {
      const keys = [...this.#keysOf(name), this.#takenKeyOf(name, this.#parts.calls.process)]
      const [dropped, left, event] = listIn(await this.#scripts.take.run(keys, token, ...handedOut))
      this.dropped += integerIn(dropped)
      return event === undefined ? undefined : { text: textOf(event), left: integerIn(left), token }
    } catch (error) {
      own.handedOut.push(...handedOut)
      if (error instanceof RedisUnknownOutcomeError) own.owed.add(token)
      throw error
    }
  }

  async #restore(name: string, token: string): Promise<void> {
    const own = this.#ownOf(name)
    const process = token.slice(0, token.lastIndexOf('.'))
    try {
      const keys = [...this.#keysOf(name), this.#takenKeyOf(name, process)]
      this.dropped += integerIn(await this.#scripts.restore.run(keys, this.#placeOf(name), token))
      own.owed.delete(token)
    } catch (error) {
      own.owed.add(token)
      this.#retry ??= setTimeout(() => {
        this.#retry = undefined
        this.#restoreOwed()
      }, retryMs).unref()
      throw error
    }
  }

  /** Puts back the newest event first, so that the oldest is the next to be taken. */
  #restoreOwed(): void {
    if (this.#parts.redis.state !== 'ready') return
    const goOn = (): void => {} // #restore() tries again later.
    for (const [name, { owed }] of this.#own) {
      for (const token of [...owed].reverse()) {
        this.#run('an event', () => this.#restore(name, token)).catch(goOn)
      }
    }
  }

  async #sweep(name: string, own: Own): Promise<void> {
    const handedOut = own.handedOut.splice(0, mostTokens)
    try {
      const keys = [...this.#keysOf(name), this.#takenKeyOf(name, this.#parts.calls.process)]
      const [dropped, left] = listIn(await this.#run('a sweep', () => this.#scripts.sweep.run(keys, ...handedOut)))
      this.dropped += integerIn(dropped)
      own.hasPushed = integerIn(left) > 0
    } catch {
      own.handedOut.push(...handedOut) // The next sweep sends them.
    }
  }

  /** Runs a call that counts as under way until it is answered. */
  #run<T>(what: string, work: (tag: string) => Promise<T>): Promise<T> {
    const { calls, onProblem } = this.#parts
    return calls.run((tag) => answered(what, work(tag), onProblem))
  }

  #ownOf(name: string): Own {
    let own = this.#own.get(name)
    if (own === undefined) {
      own = { handedOut: [], owed: new Set(), hasPushed: false }
      this.#own.set(name, own)
    }
    return own
  }

  #keysOf(name: string): [events: string, limits: string] {
    const { prefix } = this.#parts
    return [`${prefix}queue:${encoded(name)}`, `${prefix}queue-limits:${encoded(name)}`]
  }

  #takenKeyOf(name: string, process: string): string {
    return `${this.#parts.prefix}queue-taken:${process}:${encoded(name)}`
  }

  #placeOf(name: string): string {
    return `${this.#parts.place}queue:${encoded(name)}`
  }
}

/** Reads an event, which begins with its time. */
function textOf(event: Reply): string {
  const sent = textIn(event)
  const text = sent.slice(sent.indexOf(' ') + 1)
  return decoded(text) ?? text
}
