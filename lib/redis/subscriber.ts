/**
 * Subscriptions to channels of PUBLISH, on a separate connection: after SUBSCRIBE a connection accepts no other
 * commands. The first subscription opens it. A new connection subscribes to all channels again.
 */
import type { Connection } from './connection.ts'
import { RedisAwayError } from './errors.ts'
import { Link, type LinkOptions, type RedisState } from './link.ts'

/** A listener of a channel. Its functions do not throw. */
export interface ChannelListener {
  /** Called with each message, decoded as UTF-8, in the order of the server. */
  onMessage(text: string): void
  /** The connection has ended: there are no messages until `onReconnected`. Attempts to reconnect continue. */
  onLost(problem: RedisAwayError): void
  /** The server has confirmed the subscription again. Messages published meanwhile were missed. */
  onReconnected(): void
}

/** Ends a subscription; a second call does nothing. */
export type Unsubscribe = () => void

/** A listener, and the caller that waits for the server's first confirmation. */
interface Subscription {
  readonly listener: ChannelListener
  readonly resolve: (unsubscribe: Unsubscribe) => void
  readonly reject: (error: Error) => void
  /** Whether the server has ever confirmed it. */
  isConfirmed: boolean
}

interface Channel {
  readonly name: string
  readonly subscriptions: Set<Subscription>
  /** Whether the server has confirmed it on the current connection. */
  isSubscribed: boolean
}

/** The subscriptions of one process. */
export class Subscriber {
  readonly #options: Omit<LinkOptions, 'onMessage' | 'onState'>
  readonly #channels = new Map<string, Channel>()
  readonly #probe: string | undefined
  #link: Link | undefined = undefined
  #isClosed = false

  /**
   * Connects at the first subscription.
   * @param probe a channel that it subscribes to on each connection
   */
  constructor(options: Omit<LinkOptions, 'onMessage' | 'onState'>, probe: string | undefined) {
    this.#options = options
    this.#probe = probe
  }

  /** Why there is no connection; undefined while there is one, it is being opened, or none is needed. */
  get problem(): Error | undefined {
    return this.#link?.state === 'away' ? this.#link.problem : undefined
  }

  /** The connection on which the server has confirmed the probe; undefined when there is none. */
  get listening(): Connection | undefined {
    const isSubscribed = this.#probe !== undefined && this.#channels.get(this.#probe)?.isSubscribed === true
    return isSubscribed ? this.#link?.connection : undefined
  }

  /** See `Redis.subscribe`. */
  subscribe(name: string, listener: ChannelListener): Promise<Unsubscribe> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new RedisAwayError(`The client of ${this.#options.target.label} is closed`))
      const link = (this.#link ??= this.#openLink())
      if (link.state === 'away') return reject(link.awayError())
      const subscription = { listener, resolve, reject, isConfirmed: false }
      const channel = this.#channels.get(name) ?? this.#begin(name, link.connection)
      channel.subscriptions.add(subscription)
      if (channel.isSubscribed) this.#confirm(channel, subscription)
    })
  }

  /** Ends the connection. Callers that wait for a confirmation get RedisAwayError. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#link?.close()
  }

  #openLink(): Link {
    return new Link({
      ...this.#options,
      onState: (state) => this.#changed(state),
      onMessage: (name, text) => this.#deliver(name, text),
    })
  }

  #begin(name: string, connection: Connection | undefined): Channel {
    const channel: Channel = { name, subscriptions: new Set(), isSubscribed: false }
    this.#channels.set(name, channel)
    if (connection !== undefined) this.#ask(channel, connection)
    return channel
  }

  #ask(channel: Channel, connection: Connection): void {
    const resolve = (): void => {
      channel.isSubscribed = true
      for (const subscription of [...channel.subscriptions]) this.#confirm(channel, subscription)
    }
    const reject = (error: Error): void => this.#refused(channel, connection, error)
    connection.send(['SUBSCRIBE', channel.name], { resolve, reject })
  }

  #confirm(channel: Channel, subscription: Subscription): void {
    if (subscription.isConfirmed) return subscription.listener.onReconnected()
    subscription.isConfirmed = true
    subscription.resolve(() => this.#remove(channel, subscription))
  }

  #deliver(name: string, text: string): void {
    const channel = this.#channels.get(name)
    if (channel === undefined || !channel.isSubscribed) return
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

  /**
   * The server refuses SUBSCRIBE, for example by its ACL. Listeners with a confirmed subscription lose it with
   * the connection.
   */
  #refused(channel: Channel, connection: Connection, error: Error): void {
    this.#rejectWaiting(channel, error)
    if (channel.subscriptions.size > 0) connection.destroy(error)
  }

  #changed(state: RedisState): void {
    const connection = this.#link?.connection
    for (const channel of [...this.#channels.values()]) {
      if (connection !== undefined) this.#ask(channel, connection)
      else this.#lose(channel, state)
    }
    if (connection !== undefined && this.#probe !== undefined) this.#begin(this.#probe, connection)
  }

  #lose(channel: Channel, state: RedisState): void {
    const problem = (this.#link as Link).awayError() // It exists: its state has changed.
    channel.isSubscribed = false
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
    const isCurrent = this.#channels.get(channel.name) === channel
    if (channel.subscriptions.size === 0 && isCurrent) this.#channels.delete(channel.name)
  }
}
