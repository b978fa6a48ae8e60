/**
 * One connection as its requests see it: which of them are being served, which have been read and must wait, and
 * whether an answer has said that it is the last. Node keeps some of this in its sockets, but documents none of it.
 *
 * A client may send many requests without waiting for an answer (pipelining, RFC 9112, section 9.3.2). Answers leave in
 * the order of the requests, so serving all of them at once would only let one client take all memory. Past a limit the
 * socket is paused, and what one chunk has already brought waits as Node gave it, without a context of its own.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * This many requests behind the last answer are passed over; then the connection is cut, so that a flood takes no
 * memory.
 */
const maxPassedOver = 100

/**
 * How long a lingering close throws away what still comes, in milliseconds: enough for some megabytes of a slow upload.
 */
const lingerMs = 5000

/** The place of a connection in its socket. */
const place = Symbol('connection')

type KnownSocket = Socket & { [place]?: Connection }

/** The connection of a socket; the same one at each call. */
export function connectionOf(socket: Socket): Connection {
  const known: KnownSocket = socket
  return (known[place] ??= new Connection(socket))
}

/** Keeps a socket paused that Node resumes with each request that ends. */
function stayPaused(this: Socket): void {
  this.pause()
}

/** Where nothing waits. */
const nothing: (() => void)[] = []

export class Connection {
  readonly #socket: Socket
  /** The responses of the requests that are being served, in order: a few. */
  readonly #served: ServerResponse[] = []
  /** Requests that have been read and are not served yet, in order, from `#next` on. */
  #waiting = nothing
  #next = 0
  /** The last request, where its body was still coming when its answer had been sent. */
  #unread: IncomingMessage | undefined = undefined
  /** How many requests behind the last answer were passed over; undefined: no answer has said that it is the last. */
  #passedOver: number | undefined = undefined
  #lingers = false
  #isUpgraded = false
  /**
   * Since when it was seen to serve nothing, what had come by then, and since when something more has; see `isOverdue`.
   */
  #idle: { readonly sinceMs: number; readonly bytes: number; moreSinceMs: number | undefined } | undefined = undefined

  /** Made by `connectionOf`. */
  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('close', Connection.#onClose) // One function for all: there may be thousands of connections.
  }

  static #onClose(this: KnownSocket): void {
    connectionOf(this).#closed()
  }

  /** Whether a request is being served or waits. */
  get isServing(): boolean {
    return this.#served.length > 0 || this.#isHeld
  }

  /** Whether it serves nothing, and is not closing by itself. */
  get isIdle(): boolean {
    return !this.isServing && !this.#socket.writableEnded
  }

  /** Whether a request that is not being served any more is still sending its body. */
  get isReading(): boolean {
    return this.#unread?.complete === false
  }

  /** Whether the answer that closes the connection has been written. */
  get isEnding(): boolean {
    return this.#lingers && !this.isServing
  }

  /**
   * Whether it has served nothing for longer than it may, although something came: empty lines, which are no request
   * and which Node's own time-out takes for one. What came may be the beginning of a request, and has the time of one.
   * To be asked every second.
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

  /** Notes that no request follows: another protocol has the socket from now on. */
  upgraded(): void {
    this.#isUpgraded = true
  }

  /** The response whose turn it is; undefined: every request has been answered. */
  get current(): ServerResponse | undefined {
    return this.#served[0]
  }

  /** Whether another request may be served now, where at most `limit` (1 or more) are served at a time. */
  takes(limit: number): boolean {
    return this.#served.length < limit && !this.#isHeld
  }

  /** Keeps a request that may not be served yet, and reads no further. `serve` is called when its turn has come. */
  hold(serve: () => void): void {
    if (!this.#isHeld) {
      this.#waiting = []
      this.#socket.on('resume', stayPaused).pause()
    }
    this.#waiting.push(serve)
  }

  /**
   * Notes that a request is being served, which was not answered at once. Its response closes with the connection, also
   * where it was not its turn yet.
   */
  began(response: ServerResponse): void {
    this.#served.push(response)
    this.#idle = undefined
  }

  /** Notes that a response has ended, which `began` knows or which was answered at once, and serves what waits. */
  ended(response: ServerResponse, limit: number): void {
    const at = this.#served.indexOf(response)
    if (at !== -1) this.#served.splice(at, 1)
    this.#idle = undefined
    this.#unread = response.req.complete ? undefined : response.req
    while (this.#isHeld && this.#served.length < limit && !this.#socket.destroyed) {
      const serve = this.#waiting[this.#next] as () => void // It is held, so there is one.
      this.#next += 1
      if (!this.#isHeld) this.#goOn()
      serve()
    }
  }

  /** Notes that an answer says `Connection: close`: nothing behind it is served (RFC 9112, section 9.6). */
  markLast(): void {
    this.#passedOver ??= 0
    this.linger()
  }

  /** Whether a request that has come must be passed over, since an answer before it was the last. */
  passOver(): boolean {
    if (this.#passedOver === undefined) return false
    this.#passedOver += 1
    if (this.#passedOver > maxPassedOver) this.#socket.destroy()
    return true
  }

  /**
   * Makes the close after the last answer a lingering one. The kernel resets a connection that is closed with unread
   * bytes in it, and the reset can overtake the answer: the client sees a broken connection instead of its 413. So the
   * sending side is closed first, and what still comes is thrown away for a short while (RFC 9112, section 9.6).
   */
  linger(): void {
    if (this.#lingers) return
    this.#lingers = true
    const socket = this.#socket
    // `node:http` closes with this method. A version that closes in another way may reset a client that still sends.
    socket.destroySoon = () => {
      socket.end()
      const timer = setTimeout(() => socket.destroy(), lingerMs)
      timer.unref()
      socket.once('close', () => clearTimeout(timer))
    }
  }

  get #isHeld(): boolean {
    return this.#next < this.#waiting.length
  }

  /** Reads on, as nothing waits any more. */
  #goOn(): void {
    this.#waiting = nothing
    this.#next = 0
    this.#socket.off('resume', stayPaused).resume()
  }

  #closed(): void {
    this.#waiting = nothing
    this.#next = 0
    this.#unread = undefined
    for (const response of [...this.#served]) {
      // Node closes the response that has the socket; before version 24 no other.
      if (response.socket !== null) continue
      response.destroy()
      response.emit('close')
    }
  }
}
