/**
 * The queues of the broker over Redis. One script pushes an event, one takes an event. An event that was taken stays in
 * Redis under a token until a client got it: so no event is lost when an answer is.
 */
import { isJsonLine } from '../base/json-text.ts'
import type { QueueEvent, SourceLimits, Unsubscribe } from '../events/broker.ts'
import { eventText, limitArguments, type BrokerParts } from './broker-parts.ts'
import { answered, RedisUnknownOutcomeError } from './errors.ts'
import { createQueueScripts } from './queue-scripts.ts'
import { decoded, encoded, integerIn, listIn, textIn, type Reply } from './reply.ts'

/** An event that was taken. Its token is the tag of the call that took it. */
interface TakenEvent extends QueueEvent {
  readonly token: string
}

/** As `Broker` describes each function. */
export class RedisQueues {
  readonly #parts: BrokerParts
  readonly #scripts: ReturnType<typeof createQueueScripts>
  /** The queues that may hold events which this process has pushed. */
  readonly #pushed = new Set<string>()
  /** Tokens of events to put back as soon as the server can be asked, in the order of taking, with their queues. */
  readonly #owed = new Map<string, string>()
  readonly #stopWatching: () => void
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
      this.#pushed.add(name)
    })
  }

  async take(name: string): Promise<QueueEvent | undefined> {
    for (;;) {
      const event = await this.#run('an event', (token) => this.#take(name, token))
      if (event !== 'damaged') return event
      this.dropped += 1
      this.#parts.onProblem(`queue "${name}": an event in the shared engine is damaged and was dropped`)
    }
  }

  /** When the server is away, the event is put back once it is there again. */
  putBack(name: string, event: QueueEvent): Promise<void> {
    const { token } = event as TakenEvent // Callers pass what take() returned.
    return this.#run('an event', () => this.#restore(name, token))
  }

  handedOut(name: string, event: QueueEvent): void {
    this.#forget(name, (event as TakenEvent).token) // As above.
  }

  onAvailable(name: string, listener: () => void): Promise<Unsubscribe> {
    const onLost = (): void => {}
    const heard = { onMessage: listener, onLost, onReconnected: listener } // Messages may have been missed.
    return this.#run('a subscription', () => this.#parts.redis.subscribe(this.#placeOf(name), heard))
  }

  /** Drops events that are too old from the queues that this process pushes to. The next sweep repeats a failure. */
  async sweep(): Promise<void> {
    this.#restoreOwed()
    await Promise.allSettled([...this.#pushed].map((name) => this.#sweep(name)))
  }

  /** Puts back what is owed. When the server is away, it expires there within a day. */
  async close(): Promise<void> {
    this.#stopWatching()
    this.#restoreOwed()
    await this.#parts.calls.settled()
  }

  #forget(name: string, token: string): void {
    const { redis, calls } = this.#parts
    redis.command('HDEL', this.#takenKeyOf(name, calls.process), token).catch(() => {}) // Then it expires.
  }

  async #take(name: string, token: string): Promise<TakenEvent | 'damaged' | undefined> {
    try {
      const keys = [...this.#keysOf(name), this.#takenKeyOf(name, this.#parts.calls.process)]
      const [dropped, left, event] = listIn(await this.#scripts.take.run(keys, token))
      this.dropped += integerIn(dropped)
      if (event === undefined) return undefined
      const text = textOf(event)
      if (text !== undefined) return { text, left: integerIn(left), token }
      this.#forget(name, token)
      return 'damaged'
    } catch (error) {
      if (error instanceof RedisUnknownOutcomeError) this.#owed.set(token, name)
      throw error
    }
  }

  async #restore(name: string, token: string): Promise<void> {
    const process = token.slice(0, token.lastIndexOf('.'))
    try {
      const keys = [...this.#keysOf(name), this.#takenKeyOf(name, process)]
      this.dropped += integerIn(await this.#scripts.restore.run(keys, this.#placeOf(name), token))
      this.#owed.delete(token)
    } catch (error) {
      this.#owed.set(token, name)
      throw error
    }
  }

  /** Puts back the newest event first, so that the oldest is the next to be taken. */
  #restoreOwed(): void {
    if (this.#parts.redis.state !== 'ready') return
    const goOn = (): void => {} // The next sweep or connection tries again.
    for (const [token, name] of [...this.#owed].reverse()) {
      this.#run('an event', () => this.#restore(name, token)).catch(goOn)
    }
  }

  async #sweep(name: string): Promise<void> {
    const [dropped, left] = listIn(await this.#run('a sweep', () => this.#scripts.sweep.run(this.#keysOf(name))))
    this.dropped += integerIn(dropped)
    if (integerIn(left) === 0) this.#pushed.delete(name)
  }

  /** Runs a call that counts as under way until it is answered. */
  #run<T>(what: string, work: (tag: string) => Promise<T>): Promise<T> {
    const { calls, onProblem } = this.#parts
    return calls.run((tag) => answered(what, work(tag), onProblem))
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

/** Reads an event, which begins with its time; undefined for one that no server has pushed. */
function textOf(event: Reply): string | undefined {
  const sent = /^\d+ (.*)$/s.exec(textIn(event))?.[1]
  const text = sent === undefined ? undefined : decoded(sent)
  return text !== undefined && isJsonLine(text) ? text : undefined
}
