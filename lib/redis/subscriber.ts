/**
 * The channels of PUBLISH: one connection of their own, since one that has subscribed takes no other commands. It is
 * opened by the first subscription. After it has ended, everything is subscribed to anew.
 */
import type { Connection } from './connection.ts'
import { RedisAwayError } from './errors.ts'
import { Link, type LinkOptions, type RedisState } from './link.ts'

/** Who listens to a channel. Its functions do not throw. */
export interface ChannelListener {
  /** A message, as UTF-8, in the order of the server. */
  onMessage(text: string): void
  /** The connection has ended: nothing is heard until `onReconnected`. The attempts to come back go on. */
  onLost(problem: RedisAwayError): void
  /** The server has confirmed anew. What was published in between was not heard; everything from now on will be. */
  onReconnected(): void
}

/** Ends a subscription; a second call does nothing. */
export type Unsubscribe = () => void

/** A listener, and who waits for the server's first confirmation. */
interface Subscription {
  readonly listener: ChannelListener
  readonly resolve: (unsubscribe: Unsubscribe) => void
  readonly reject: (error: Error) => void
  /** Whether the server has confirmed it, on whichever connection. */
  isConfirmed: boolean
}

interface Channel {
  readonly name: string
  readonly subscriptions: Set<Subscription>
  /** Whether the server has confirmed it on the present connection. */
  isHeard: boolean
}

export class Subscriber {
  readonly #options: Omit<LinkOptions, 'onMessage'>
  readonly #channels = new Map<string, Channel>()
  #link: Link | undefined = undefined
  #isClosed = false

  /** Nothing is connected before the first subscription. */
  constructor(options: Omit<LinkOptions, 'onMessage'>) {
    this.#options = options
  }

  /** That of its connection; `connecting` before the first subscription. */
  get state(): RedisState {
    return this.#link?.state ?? 'connecting'
  }

  /** As `Redis.subscribe`. */
  subscribe(name: string, listener: ChannelListener): Promise<Unsubscribe> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new RedisAwayError(`The client of ${this.#options.target.label} is closed`))
      const link = (this.#link ??= this.#openLink())
      if (link.state === 'away') return reject(link.awayError())
      const subscription = { listener, resolve, reject, isConfirmed: false }
      const channel = this.#channels.get(name) ?? this.#begin(name, link.connection)
      channel.subscriptions.add(subscription)
      if (channel.isHeard) this.#confirm(channel, subscription)
    })
  }

  /** Ends the connection. Who waits for a confirmation is told RedisAwayError. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#link?.close()
  }

  #openLink(): Link {
    return new Link({
      ...this.#options,
      onState: (state) => this.#changed(state),
      onMessage: (name, text) => this.#tell(name, text),
    })
  }

  #begin(name: string, connection: Connection | undefined): Channel {
    const channel: Channel = { name, subscriptions: new Set(), isHeard: false }
    this.#channels.set(name, channel)
    if (connection !== undefined) this.#ask(channel, connection)
    return channel
  }

  #ask(channel: Channel, connection: Connection): void {
    const resolve = (): void => {
      channel.isHeard = true
      for (const subscription of [...channel.subscriptions]) this.#confirm(channel, subscription)
    }
    connection.send(['SUBSCRIBE', channel.name], { resolve, reject: (error) => this.#refuse(channel, connection, error) })
  }

  #confirm(channel: Channel, subscription: Subscription): void {
    if (subscription.isConfirmed) return subscription.listener.onReconnected()
    subscription.isConfirmed = true
    subscription.resolve(() => this.#remove(channel, subscription))
  }

  #tell(name: string, text: string): void {
    const channel = this.#channels.get(name)
    if (channel === undefined || !channel.isHeard) return
    for (const subscription of [...channel.subscriptions]) {
      if (channel.subscriptions.has(subscription)) subscription.listener.onMessage(text)
    }
  }

  #remove(channel: Channel, subscription: Subscription): void {
    if (!channel.subscriptions.delete(subscription) || channel.subscriptions.size > 0) return
    if (this.#channels.get(channel.name) !== channel) return
    this.#channels.delete(channel.name)
    const ignore = (): void => {}
    this.#link?.connection?.send(['UNSUBSCRIBE', channel.name], { resolve: ignore, reject: ignore })
  }

  /** The server refuses, as its rules for the user may say: those who wait are told, the others are heard no more. */
  #refuse(channel: Channel, connection: Connection, error: Error): void {
    this.#rejectWaiting(channel, error)
    if (channel.subscriptions.size > 0) connection.destroy(error)
  }

  #changed(state: RedisState): void {
    const connection = this.#link?.connection
    for (const channel of [...this.#channels.values()]) {
      if (connection !== undefined) this.#ask(channel, connection)
      else this.#lose(channel, state)
    }
    this.#options.onState(state)
  }

  #lose(channel: Channel, state: RedisState): void {
    const problem = (this.#link as Link).awayError() // Its state has changed, so it is there.
    channel.isHeard = false
    this.#rejectWaiting(channel, problem)
    if (state === 'closed') return
    for (const { listener } of [...channel.subscriptions]) listener.onLost(problem)
  }

  #rejectWaiting(channel: Channel, error: Error): void {
    for (const subscription of [...channel.subscriptions]) {
      if (subscription.isConfirmed) continue
      channel.subscriptions.delete(subscription)
      subscription.reject(error)
    }
    if (channel.subscriptions.size === 0 && this.#channels.get(channel.name) === channel) this.#channels.delete(channel.name)
  }
}
