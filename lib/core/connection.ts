/**
 * The state of one connection: the current request, the input that waits behind it, and what the client is expected to
 * do next.
 *
 * Requests of a connection are served one at a time. A client may send many without waiting for a response (pipelining,
 * RFC 9112, section 9.3.2), so input behind the current request is kept as raw bytes and parsed once the response has
 * been handed to the system. Beyond 64 KiB of waiting input the socket is not read.
 *
 * One request may be parsed earlier, while a finished response is still being sent: over TLS, where a write is reported
 * a turn later, most requests arrive then. So a connection holds at most two requests, one response and a bounded
 * number of bytes, however much its client sends.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { ErrorFormat } from '../routing/route.ts'
import { rawSection } from './raw-section.ts'
import { emitDrain, endInput, feed, replaceClose, responseOf, startReading, takenByClient } from './node-internals.ts'

/** The parts of a request that its connection needs. */
export interface ServedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Whether the request is pointless once the client has ended its side of the connection. */
  readonly needsClient: boolean
  /** When its header section was read, by `performance.now()`. */
  readonly startedAt: number
  /** The maximum milliseconds for it to arrive, if its route sets them. */
  readonly requestTimeoutMs?: number | undefined
  /** The format of its errors, if its route is known. */
  readonly errorFormat?: ErrorFormat
  /** The bytes of the response body. */
  sentBytes: number
}

/**
 * What the client has to do next: send a request, send the rest of a body, or read the response. Undefined: nothing,
 * since the server has to act, or waits for an event.
 */
export type Awaited = 'request' | 'body' | 'reading' | undefined

/** How long the server has waited for the client. Times are milliseconds by `performance.now()`. */
export interface Wait {
  readonly awaited: Awaited
  /** When the wait was first seen. */
  readonly sinceMs: number
  /** The byte count at the last progress seen, and the time of it. */
  moved: number
  movedAtMs: number
  /** A mark that `deadlines.ts` sets: a byte count, and when it was reached. */
  markMoved: number
  markMs: number | undefined
}

/** The socket is paused when more bytes than this wait behind a request. */
const maxWaitingBytes = 65_536

/** Smaller pieces of waiting input are joined, since each piece takes more memory than its bytes. */
const joinedBytes = 2048

/** Runs a function outside the asynchronous context of the request that has just ended. */
const inNoContext = AsyncLocalStorage.snapshot()

/** How long a lingering close discards input, in milliseconds: enough for some megabytes of a slow upload. */
const lingerMs = 5000

/** The property of a socket that holds its connection. */
const connectionKey = Symbol('connection')

type KnownSocket = Socket & { [connectionKey]?: Connection }

/** Returns the connection of a socket, always the same one. */
export function connectionOf(socket: Socket): Connection {
  const known: KnownSocket = socket
  return (known[connectionKey] ??= new Connection(socket))
}

/** One connection. */
export class Connection {
  /** Lets `node:http` read the socket again; set by the listener. */
  attach: ((socket: Socket) => void) | undefined = undefined
  /** Whether the client has ended its side. */
  inputEnded = false
  /** Whether the header section of the next request was already late before the request's turn. */
  isHeaderLate = false
  /** When the current request began to arrive, as far as it was seen. */
  beganAtMs = 0
  readonly #socket: Socket
  readonly #createdAtMs = performance.now()
  #current: ServedRequest | undefined = undefined
  /** A request that arrived after the current response ended, and before the system accepted all of it. */
  #next: ServedRequest | undefined = undefined
  #onLost: ((served: never) => void) | undefined = undefined
  /** Serves `#next` once the current response is sent. */
  #serveNext: (() => void) | undefined = undefined
  /** Raw waiting input; undefined while Node's parser reads the socket. */
  #input: Buffer[] | undefined = undefined
  #inputBytes = 0
  /** The input that is about to be fed to Node, last piece first. */
  #rest: Buffer[] = []
  /** The last request, if its body was still arriving after its response was sent. */
  #unread: IncomingMessage | undefined = undefined
  #isLast = false
  #lingers = false
  /** Whether the socket belongs to a handshake or a WebSocket. */
  #isHandedOver = false
  #isUpgraded = false
  /** The number of bytes read when the last request ended. */
  #endedAtBytes = 0
  #wait: Wait | undefined = undefined

  /** Called by `connectionOf`. */
  constructor(socket: Socket) {
    this.#socket = socket
    // One function for all connections, since there may be thousands.
    socket.on('close', Connection.#onClose).on('end', Connection.#onEnd)
  }

  static #onClose(this: KnownSocket): void {
    const connection = connectionOf(this)
    connection.#input = undefined
    connection.#unread = undefined
    const next = connection.#next
    connection.lost()
    if (next !== undefined) connection.lost() // It is now the current one.
  }

  static #onEnd(this: KnownSocket): void {
    const connection = connectionOf(this)
    connection.inputEnded = true
    if (connection.#current?.needsClient === true) this.destroy()
    else if (!connection.isServing) connection.#parse()
  }

  static #onInput(this: KnownSocket, piece: Buffer): void {
    connectionOf(this).#keep(piece)
  }

  static #onDrain(this: KnownSocket): void {
    emitDrain(this)
  }

  static #onError(this: KnownSocket): void {
    this.destroy()
  }

  /** Whether a request is being served. */
  get isServing(): boolean {
    return this.#current !== undefined
  }

  /** Whether no request is being served or waiting, and the connection is not closing. */
  get isIdle(): boolean {
    return this.#current === undefined && this.#inputBytes === 0 && !this.#socket.writableEnded
  }

  /** Whether the client still sends the body of an answered request. */
  get isReading(): boolean {
    return this.#unread?.complete === false
  }

  /** Whether the last response has been announced: no later request is served (RFC 9112, section 9.6). */
  get isEnding(): boolean {
    return this.#isLast || this.#lingers
  }

  /** Whether a request may be parsed now. It is served at once, or when the current response has been sent. */
  get takesRequest(): boolean {
    if (this.isEnding) return false
    return this.#current === undefined || (this.#current.response.writableEnded && this.#next === undefined)
  }

  /** The request that is being served. */
  get current(): ServedRequest | undefined {
    return this.#current
  }

  /** Call when Node has released the socket for a handshake. Puts the input behind the handshake back on the socket. */
  handOver(): void {
    this.#isHandedOver = true
    startReading(this.#socket)
    const rest = this.#rest.splice(0)
    if (!this.inputEnded) for (const piece of rest) this.#socket.unshift(piece)
  }

  /** Marks the connection as switched to another protocol: no request follows. */
  upgraded(): void {
    this.#isUpgraded = true
  }

  /**
   * Sets the current request, or the next one while a request is current. Call it only while `takesRequest`.
   * @param onLost called when the connection closes before `ended`. Pass the same function for all requests
   */
  began<T extends ServedRequest>(served: T, onLost: (served: T) => void): void {
    this.#onLost = onLost
    if (this.#current === undefined) this.#begin(served)
    else this.#next = served
  }

  /** Defers the next request: `serve` is called when the current response has been sent. */
  whenFree(serve: () => void): void {
    this.#serveNext = serve
  }

  /** Call when the current request is lost, or was answered by other code than the request server. */
  lost(): void {
    if (this.#current !== undefined) this.#onLost?.(this.#current as never)
  }

  #begin(served: ServedRequest): void {
    this.beganAtMs = this.#wait?.markMs ?? served.startedAt
    this.#current = served
    this.#wait = undefined
    this.isHeaderLate = false
  }

  /** Call when the current request ends, with its response or its connection. Continues with the input behind it. */
  ended(request: IncomingMessage): void {
    const next = this.#next
    const serveNext = this.#serveNext
    this.#current = this.#next = this.#serveNext = undefined
    this.#wait = undefined
    this.#endedAtBytes = this.#socket.bytesRead
    this.#unread = request.complete ? undefined : request
    if (next !== undefined) {
      this.#begin(next)
      return serveNext?.()
    }
    if (this.#inputBytes > 0 || this.inputEnded) this.#parseSoon()
  }

  #parseSoon(): void {
    process.nextTick(() => inNoContext(() => this.#parse()))
  }

  /**
   * Keeps a request as raw bytes until its turn, with the input behind it.
   * @param head the bytes behind its header section, including a body
   */
  hold(request: IncomingMessage, head: Buffer): void {
    this.keepInput(rawSection(request), head)
  }

  /** Closes the connection after the current response: its client ended its side in the middle of the next request. */
  endAfterCurrent(): void {
    const response = this.#current?.response
    if (response === undefined || response.writableFinished) this.#socket.end()
    else response.once('finish', () => this.#socket.end())
  }

  /**
   * Keeps raw input until the current response has been handed to the system, or, when idle, until input arrives. Node
   * no longer reads the socket.
   */
  keepInput(...pieces: readonly Buffer[]): void {
    const socket = this.#socket
    this.#input = []
    this.#inputBytes = 0
    this.#isHandedOver = false
    startReading(socket)
    if (this.isEnding && !this.isServing) {
      socket.on('error', Connection.#onError).resume()
      return
    }
    socket.on('error', Connection.#onError).on('drain', Connection.#onDrain).on('data', Connection.#onInput)
    for (const piece of pieces) this.#keep(piece)
  }

  /**
   * Whether a reply may wait for an event: the client is connected, and the socket is read, so a disconnect would be
   * noticed. Otherwise closes the connection.
   */
  mayWait(): boolean {
    if (!this.inputEnded && this.#inputBytes <= maxWaitingBytes) return true
    this.#socket.destroy()
    return false
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return
    const input = this.#input ?? []
    const last = input.at(-1)
    const isSmall = last !== undefined && last.length + piece.length <= joinedBytes
    if (isSmall) input[input.length - 1] = Buffer.concat([last, piece])
    else input.push(piece)
    this.#inputBytes += piece.length
    if (!this.isServing) setImmediate(() => this.#parse())
    if (this.#inputBytes <= maxWaitingBytes) return
    if (this.#current?.needsClient === true) this.#socket.destroy()
    else this.#socket.pause()
  }

  /** Whether input is kept here instead of being read by Node. */
  get isKept(): boolean {
    return this.#input !== undefined
  }

  /** Returns the socket to Node, with the waiting input. */
  #parse(): void {
    const socket = this.#socket
    const pieces = this.#input
    if (pieces === undefined || this.isServing || socket.destroyed) return
    if (this.isEnding || socket.writableEnded) {
      this.#input = []
      socket.off('data', Connection.#onInput).resume()
      return
    }
    const unsent = responseOf(socket)
    if (unsent !== undefined) return void unsent.once('finish', () => this.#parseSoon())
    this.#input = undefined
    this.#inputBytes = 0
    socket.off('data', Connection.#onInput).off('drain', Connection.#onDrain).off('error', Connection.#onError)
    this.attach?.(socket)
    const rest = (this.#rest = pieces.reverse())
    while (rest.length > 0 && !this.isKept) feed(socket, rest.pop() as Buffer)
    if (this.isKept) for (const piece of rest.splice(0).reverse()) this.#keep(piece)
    else if (this.#isHandedOver) return
    else if (this.inputEnded) endInput(socket)
    else socket.resume()
  }

  /** Call for a response with `Connection: close`. */
  markLast(): void {
    this.#isLast = true
    this.linger()
  }

  /**
   * Makes the close after the last response a lingering one. The kernel resets a connection that is closed with unread
   * bytes, and the reset can overtake the response: the client sees a broken connection instead of its 413. So only the
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

  /** What the client is expected to do next. */
  get awaited(): Awaited {
    const socket = this.#socket
    if (socket.writableLength > 0) return 'reading'
    const current = this.#current
    if (current !== undefined) return takesBody(current.request) ? 'body' : undefined
    if (this.isReading) return 'body'
    return this.#isUpgraded || this.#lingers ? undefined : 'request'
  }

  /**
   * Checks whether the client has made progress since the last call.
   * @param nowMs `performance.now()`
   * @returns undefined while nothing is expected of the client
   */
  watch(nowMs: number): Wait | undefined {
    const awaited = this.awaited
    if (awaited === undefined) return (this.#wait = undefined)
    const moved = awaited === 'reading' ? takenByClient(this.#socket) : this.#socket.bytesRead
    const wait = this.#wait
    if (wait?.awaited !== awaited) {
      const markMoved = awaited === 'request' ? this.#endedAtBytes : moved
      return (this.#wait = { awaited, sinceMs: nowMs, moved, movedAtMs: nowMs, markMoved, markMs: undefined })
    }
    if (moved !== wait.moved) {
      wait.moved = moved
      wait.movedAtMs = nowMs
    }
    return wait
  }

  /** Since when the client has made no progress; undefined when nothing is expected of it. */
  get stalledSinceMs(): number | undefined {
    const awaited = this.awaited
    if (awaited === undefined) return undefined
    const wait = this.#wait
    if (wait?.awaited === awaited) return wait.movedAtMs
    return this.#endedAtBytes === 0 ? this.#createdAtMs : performance.now()
  }
}

/** Whether the client still has to send part of the body, and the server is ready to read it. */
function takesBody(request: IncomingMessage): boolean {
  return !request.complete && request.readableLength < request.readableHighWaterMark
}
