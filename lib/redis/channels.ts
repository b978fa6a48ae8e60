/**
 * The channels of a broker over Redis: one operation publishes, one reads, and the channel of PUBLISH with the same name
 * tells who listens.
 *
 * Surprise: PUBLISH knows no databases, so the name has the number of the database in it.
 */
import type { ChannelEvent, ChannelRead, SourceLimits, Unsubscribe } from '../events/broker.ts'
import { answered } from './away.ts'
import type { BrokerParts } from './broker-parts.ts'
import { createChannelScripts, type ChannelScripts } from './channel-scripts.ts'
import { eventText, lifeOf, limitArguments } from './event-limits.ts'
import { Follower } from './follower.ts'
import { integerIn, listIn, textIn, type Reply } from './reply.ts'
import { decoded, encoded } from './text.ts'

/** One reply has about so much: a script holds up everybody, and the client takes replies of 64 MiB. */
const pieceBytes = 2 ** 20
const pieceEvents = 5000

/** A channel that is listened to here. */
interface Followed {
  readonly follower: Follower
  readonly subscribed: Promise<Unsubscribe>
  /** How many are about to listen. */
  arriving: number
}

export class RedisChannels {
  readonly #parts: BrokerParts
  readonly #scripts: ChannelScripts
  readonly #followed = new Map<string, Followed>()

  constructor(parts: BrokerParts) {
    this.#parts = parts
    this.#scripts = createChannelScripts(parts.redis)
  }

  /** As the broker's; the other functions too. */
  publish(name: string, text: string, limits: SourceLimits): Promise<number> {
    const { calls, onProblem } = this.#parts
    return calls.run(async (tag) => {
      const values = [...limitArguments(limits), this.#placeOf(name), tag, eventText(text)]
      return integerIn(await answered('an event', this.#scripts.publish.run(this.#keysOf(name), ...values), onProblem))
    })
  }

  read(name: string, since: number | undefined): Promise<ChannelRead> {
    return this.#parts.calls.run(() => this.#read(name, since))
  }

  subscribe(name: string, hear: (event: ChannelEvent) => void): Promise<Unsubscribe> {
    return this.#parts.calls.run(() => this.#subscribe(name, hear))
  }

  /** Nobody hears anything any more. */
  close(): void {
    for (const [name, followed] of this.#followed) {
      followed.follower.listeners.clear()
      this.#release(name, followed)
    }
  }

  /** Piece by piece. A gap that comes up in between takes along what was read before it. */
  async #read(name: string, since: number | undefined): Promise<ChannelRead> {
    let events: ChannelEvent[] = []
    let isGap = false
    let from = since
    for (;;) {
      const [lastId, gap, more, ...pairs] = await this.#readPiece(name, from)
      if (integerIn(gap) === 1) {
        events = []
        isGap = true
      }
      for (let at = 0; at < pairs.length; at += 2) events.push(eventIn(pairs[at], pairs[at + 1]))
      if (integerIn(more) === 0) return { events, lastId: integerIn(lastId), gap: isGap }
      from = events.at(-1)?.id
    }
  }

  async #readPiece(name: string, since: number | undefined): Promise<readonly Reply[]> {
    // No id is beyond, and Redis takes no Infinity.
    const from = since === undefined ? '' : Math.min(since, Number.MAX_SAFE_INTEGER)
    const reply = this.#scripts.read.run(this.#keysOf(name), from, lifeOf(0), pieceBytes, pieceEvents)
    return listIn(await answered('a read of events', reply, this.#parts.onProblem))
  }

  /** It hears what comes after the newest event that there is once messages arrive. */
  async #subscribe(name: string, hear: (event: ChannelEvent) => void): Promise<Unsubscribe> {
    const followed = this.#followed.get(name) ?? this.#follow(name)
    followed.arriving += 1
    try {
      await answered('a subscription', followed.subscribed, this.#parts.onProblem)
      const { lastId } = await this.#read(name, undefined)
      const listener = { hear, since: lastId }
      followed.follower.listeners.add(listener)
      followed.follower.begin(lastId)
      return () => {
        if (followed.follower.listeners.delete(listener)) this.#release(name, followed)
      }
    } finally {
      followed.arriving -= 1
      this.#release(name, followed)
    }
  }

  #follow(name: string): Followed {
    const { calls, redis, onProblem } = this.#parts
    const onHole = (): void => onProblem(`channel "${name}": events were lost in the shared engine while it could not be heard`)
    const follower = new Follower({ calls, read: (since) => this.#read(name, since), onHole })
    const followed = { follower, subscribed: redis.subscribe(this.#placeOf(name), follower), arriving: 0 }
    this.#followed.set(name, followed)
    return followed
  }

  #release(name: string, followed: Followed): void {
    if (followed.follower.listeners.size > 0 || followed.arriving > 0 || this.#followed.get(name) !== followed) return
    this.#followed.delete(name)
    followed.follower.close()
    const ignore = (): void => {} // Who asked for it was told.
    followed.subscribed.then((unsubscribe) => unsubscribe(), ignore)
  }

  #keysOf(name: string): [events: string, state: string] {
    const { prefix } = this.#parts
    return [`${prefix}channel:${encoded(name)}`, `${prefix}channel-state:${encoded(name)}`]
  }

  #placeOf(name: string): string {
    return `${this.#parts.place}channel:${encoded(name)}`
  }
}

/** The id of an entry of a stream has a second part, which is 0. */
function eventIn(id: Reply | undefined, text: Reply | undefined): ChannelEvent {
  const sent = textIn(text)
  return { id: Number(textIn(id).slice(0, -2)), text: decoded(sent) ?? sent }
}
