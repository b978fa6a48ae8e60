/**
 * The state of one connection: which of its requests are being served, which have been read and wait, and whether an
 * answer was the last.
 *
 * A client may send many requests without waiting for an answer (pipelining, RFC 9112, section 9.3.2). Answers leave in
 * the order of the requests, so serving all of them at once would only let one client take all memory. Past a limit the
 * socket is paused, and requests that one chunk has already brought wait as Node gave them, without a context.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { emitClose, replaceClose } from './node-internals.ts'

/** After so many ignored requests behind the last answer the connection is cut, so that a flood takes no memory. */
const maxIgnored = 100

/** How long a lingering close discards input, in milliseconds: enough for some megabytes of a slow upload. */
const lingerMs = 5000

/** The property of a socket that holds its connection. */
const place = Symbol('connection')

type KnownSocket = Socket & { [place]?: Connection }

/** The connection of a socket; the same one at each call. */
export function connectionOf(socket: Socket): Connection {
  const known: KnownSocket = socket
  return (known[place] ??= new Connection(socket))
}

/** Keeps a socket paused, which Node resumes whenever a request ends. */
function stayPaused(this: Socket): void {
  this.pause()
}

/** One connection. */
export class Connection {
  readonly #socket: Socket
  /** The responses of the requests that are being served, in order. */
  readonly #served: ServerResponse[] = []
  /** Requests that have been read and wait, in order: no more than one piece of input holds. */
  #waiting: (() => void)[] = []
  /** The last request, when its body was still arriving after its answer had been sent. */
  #unread: IncomingMessage | undefined = undefined
  /** How many requests after the last answer were ignored; undefined: no answer was the last. */
  #ignored: number | undefined = undefined
  #lingers = false
  #isUpgraded = false
  /** When it was first seen idle, the bytes read by then, and when more was first seen; see `isOverdue`. */
  #idle: { readonly sinceMs: number; readonly bytes: number; moreSinceMs: number | undefined } | undefined = undefined

  /** Made by `connectionOf`. */
  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('close', Connection.#onClose) // One function for all connections: there may be thousands.
  }

  static #onClose(this: KnownSocket): void {
    connectionOf(this).#closed()
  }

  /** Whether a request is being served or waits. */
  get isServing(): boolean {
    return this.#served.length > 0 || this.#waiting.length > 0
  }

  /** Whether no request is being served or waits, and the connection is not closing. */
  get isIdle(): boolean {
    return !this.isServing && !this.#socket.writableEnded
  }

  /** Whether a request that has been answered is still sending its body. */
  get isReading(): boolean {
    return this.#unread?.complete === false
  }

  /** Whether the answer that closes the connection has been written. */
  get isEnding(): boolean {
    return this.#lingers && !this.isServing
  }

  /**
   * Whether it was idle for longer than it may, although bytes came: empty lines, which are no request but restart
   * Node's own time-out. Bytes may also begin a request, so they have the time of a header section. Call it every
   * second.
   */
  isOverdue(nowMs: number, keepAliveTimeoutMs: number, headerTimeoutMs: number): boolean {
    if (!this.isIdle || this.isReading || this.#isUpgraded) {
      this.#idle = undefined
      return false
    }
    const { bytesRead } = this.#socket
    const idle = (this.#idle ??= { sinceMs: nowMs, bytes: bytesRead, moreSinceMs: undefined })
    if (bytesRead > idle.bytes) idle.moreSinceMs ??= nowMs
    if (idle.moreSinceMs === undefined) return false
    return nowMs - idle.sinceMs >= keepAliveTimeoutMs && nowMs - idle.moreSinceMs >= headerTimeoutMs
  }

  /** Marks the connection as one of another protocol: no request follows. */
  upgraded(): void {
    this.#isUpgraded = true
  }

  /** The response that is sent next; undefined when every request has been answered. */
  get current(): ServerResponse | undefined {
    return this.#served[0]
  }

  /** Whether another request may be served now, when at most `limit` (1 or more) are served at a time. */
  takes(limit: number): boolean {
    return this.#served.length < limit && this.#waiting.length === 0
  }

  /** Lets a request wait, and pauses the socket. `serve` is called when its turn has come. */
  hold(serve: () => void): void {
    if (this.#waiting.push(serve) === 1) this.#socket.on('resume', stayPaused).pause()
  }

  /** Adds a request that was not answered at once. Its response closes with the connection, even before its turn. */
  began(response: ServerResponse): void {
    this.#served.push(response)
    this.#idle = undefined
  }

  /** Removes a request whose response has ended, if `began` was called for it, and serves those that wait. */
  ended(response: ServerResponse, limit: number): void {
    const at = this.#served.indexOf(response)
    if (at !== -1) this.#served.splice(at, 1)
    this.#idle = undefined
    this.#unread = response.req.complete ? undefined : response.req
    while (this.#waiting.length > 0 && this.#served.length < limit && !this.#socket.destroyed) {
      const serve = this.#waiting.shift()
      if (this.#waiting.length === 0) this.#socket.off('resume', stayPaused).resume()
      serve?.()
    }
  }

  /** Call with an answer that says `Connection: close`: no later request is served (RFC 9112, section 9.6). */
  markLast(): void {
    this.#ignored ??= 0
    this.linger()
  }

  /** Whether a new request must be ignored, since an earlier answer was the last. */
  ignores(): boolean {
    if (this.#ignored === undefined) return false
    this.#ignored += 1
    if (this.#ignored > maxIgnored) this.#socket.destroy()
    return true
  }

  /**
   * Makes the close after the last answer a lingering one. The kernel resets a connection that is closed with unread
   * bytes, and the reset can overtake the answer: the client sees a broken connection instead of its 413. So only the
   * sending side is closed, and input is discarded for a short while (RFC 9112, section 9.6).
   */
  linger(): void {
    if (this.#lingers) return
    this.#lingers = true
    const socket = this.#socket
    replaceClose(socket, () => {
      socket.end()
      const timer = setTimeout(() => socket.destroy(), lingerMs)
      timer.unref()
      socket.once('close', () => clearTimeout(timer))
    })
  }

  #closed(): void {
    this.#waiting = []
    this.#unread = undefined
    for (const response of [...this.#served]) {
      if (response.socket !== null) continue // Node closes this one.
      response.destroy()
      emitClose(response)
    }
  }
}
