/**
 * The server side of one WebSocket connection (RFC 6455): messages, ping and pong, the closing handshake, heartbeat.
 *
 * The `message` handler is called as messages arrive, even while a promise of an earlier call is pending. Only `open`
 * is awaited: nothing is read before it is done. Data for a peer that does not read is buffered up to a limit. From
 * half of it on, the server stops reading from the peer, and the heartbeat cuts the peer when it stays silent.
 *
 * The `close` handler runs when the connection has ended, not when closing begins. Its code is the one that the peer
 * sent, or with which the server failed the connection (1002, 1007, 1009), else 1006.
 */
import type { Socket } from 'node:net'
import { follow } from '../events/follow.ts'
import { Heartbeat, type Beating } from '../base/heartbeat.ts'
import { closeCodes, closePayload, ProtocolError, readClosePayload } from './close-code.ts'
import { opcodes } from './frame.ts'
import { ControlFrame, MessageReader } from './message-reader.ts'
import { Outbox } from './outbox.ts'

/** What a route module exports as `websocket`. All are optional, and each function may return a promise. */
export interface WebSocketHandlers<C> {
  /** The subprotocols of the server, tokens without duplicates: the first that the client also offers is chosen. */
  readonly protocols?: readonly string[]
  /** Called first. No message is read before it is done. */
  open?(ws: WebSocketConnection<C>, context: C): unknown
  /** Called with a text message as a string, or a binary one as a Buffer that the application may keep and change. */
  message?(ws: WebSocketConnection<C>, data: string | Buffer): unknown
  /** Called at the end. 1005: the peer sent no code; 1006: the connection ended without the closing handshake. */
  close?(ws: WebSocketConnection<C>, code: number, reason: string): unknown
}

/** Limits and callbacks shared by all connections of one server. */
export interface WebSocketServices<C> {
  /** Drives pings, and cuts peers that do not answer or do not finish closing; a beat is `beatMs`. */
  readonly heartbeat: Heartbeat
  /** The maximum bytes of a message, over all its fragments; a larger one closes the connection with 1009. */
  readonly maxMessageBytes: number
  /** When more bytes than this are buffered for a peer that does not read, the next message cuts the connection. */
  readonly maxBufferedBytes: number
  /** Called with the error of a handler, or the rejection of its promise; the connection is closed with 1011. */
  readonly onError: (error: unknown, context: C) => void
  /** Called when the peer breaks the protocol. */
  readonly onProtocolError: (error: ProtocolError, context: C) => void
  /** Called when a peer is cut because it does not read. */
  readonly onSlow: (context: C) => void
  /** Called once at the end, after the `close` handler was called. */
  readonly onClosed: (ws: WebSocketConnection<C>, code: number, context: C) => void
}

/** `closing`: the Close frame was sent, or the peer has disconnected; nothing more is sent. */
type Phase = 'new' | 'open' | 'closing' | 'closed'

/** Milliseconds from one beat to the next. A time-out ends up to one beat early, never late. */
export const beatMs = 500
/** Beats after which a silent peer is pinged, and after as many more is cut. */
export const silentBeats = 60
/** Beats after which a connection that is closing is cut. */
export const closeBeats = 4

/** A connection. The handlers get it as `ws`. */
export class WebSocketConnection<C = unknown> implements Beating {
  readonly #socket: Socket
  readonly #services: WebSocketServices<C>
  readonly #handlers: WebSocketHandlers<C>
  readonly #context: C
  readonly #protocol: string
  readonly #outbox: Outbox
  readonly #reader: MessageReader
  #phase: Phase = 'new'
  /** True until the peer's Close frame or error; later data is ignored. */
  #reading = true
  #code: number = closeCodes.abnormal
  #reason = ''
  /** The beat of the last data from the peer, or of a later ping. */
  #seenAt = 0
  #pinged = false
  /** Whether `open` is done, so that the peer's answers are read. */
  #begun = false
  #closingSince = 0
  /** Set while reading is paused because the peer does not read: answers to its messages would only fill the memory. */
  #isPaused = false
  /** The payload of the last ping, while the pong cannot be sent. */
  #pendingPong: Buffer | undefined = undefined
  #values: Record<string, unknown> | undefined = undefined
  /** One function for each followed channel, which ends it. */
  readonly #followed: (() => void)[] = []
  /** Called once everything is sent or the connection has ended. */
  #whenDrained: (() => void)[] = []

  /**
   * Takes over a socket after the 101 response was written. Nothing happens before `start()`.
   * @param handlers called with `this` set to this object
   * @param context passed to `open` and to the callbacks of the services
   * @param protocol the chosen subprotocol; empty for none
   */
  constructor(
    socket: Socket,
    services: WebSocketServices<C>,
    handlers: WebSocketHandlers<C>,
    context: C,
    protocol = '',
  ) {
    this.#socket = socket
    this.#services = services
    this.#handlers = handlers
    this.#context = context
    this.#protocol = protocol
    this.#reader = new MessageReader(services.maxMessageBytes)
    this.#outbox = new Outbox(socket, () => this.#written())
  }

  /**
   * Opens the connection: calls the `open` handler and then starts reading. When the socket has closed in the meantime,
   * only `onClosed` is called.
   * @param head the bytes that arrived after the handshake; the connection may change them
   */
  start(head: Buffer): void {
    const { heartbeat } = this.#services
    if (this.#socket.closed) return void this.#services.onClosed(this, this.#code, this.#context)
    this.#phase = 'open'
    this.#seenAt = heartbeat.now
    heartbeat.add(this)
    this.#socket.setTimeout(0).setNoDelay(true)
    this.#socket.on('error', () => this.#socket.destroy()) // The application gets the code 1006.
    this.#socket.on('close', () => this.#ended())
    this.#call(
      () => this.#handlers.open?.(this, this.#context),
      () => this.#begin(head),
    )
  }

  /** Whether messages can be sent: from `open` until closing begins, on either side. */
  get isOpen(): boolean {
    return this.#phase === 'open'
  }

  /** The chosen subprotocol; empty when there is none. */
  get protocol(): string {
    return this.#protocol
  }

  /** Sent bytes that the operating system has not accepted yet, because the peer does not read fast enough. */
  get bufferedAmount(): number {
    return this.#outbox.bytes
  }

  /** Stores any values of the handlers for this connection; an object without prototype. */
  get state(): Record<string, unknown> {
    return (this.#values ??= Object.create(null) as Record<string, unknown>)
  }

  /**
   * Sends a message: a string as text, bytes as binary.
   * @returns false when the connection is not open, or is cut because too many bytes are already buffered
   * @throws TypeError for anything else
   */
  send(data: string | NodeJS.ArrayBufferView): boolean {
    const payload = typeof data === 'string' ? data : toBuffer(data)
    if (this.#phase !== 'open') return false
    if (this.#outbox.bytes > this.#services.maxBufferedBytes) {
      this.terminate()
      this.#services.onSlow(this.#context)
      return false
    }
    this.#outbox.add(typeof data === 'string' ? opcodes.text : opcodes.binary, payload)
    return true
  }

  /**
   * Starts the closing handshake; the `message` handler is not called any more. Does nothing once closing has begun.
   * @throws RangeError for a code that must not be sent (see `isWireCode`) and for a reason of more than 123 bytes
   */
  close(code: number = closeCodes.normal, reason = ''): void {
    const payload = closePayload(code, reason)
    if (this.#phase === 'open') this.#sendClose(payload)
  }

  /**
   * Sends the events of a channel while the connection is open: as text, `{"event": "message", "id", "data"}`, and
   * `{"event": "gap", "data": {"last_id"}}` where some are missing.
   * @param options `since`: the id of the last event that the client has; null and undefined: only new events.
   *   Anything but a whole number from 0 is a gap
   * @throws TypeError when the source is not a channel
   */
  follow(channel: unknown, { since }: { readonly since?: number | string | null | undefined } = {}): void {
    if (this.#phase === 'open') this.#followed.push(follow(channel, since, this))
  }

  /** Resolves when everything is sent, or the connection has ended. */
  drained(): Promise<void> {
    if (!this.#outbox.blocked) return Promise.resolve()
    return new Promise((resolve) => this.#whenDrained.push(resolve))
  }

  /** Cuts the connection at once. The `close` handler gets 1006, unless the peer sent a code before. */
  terminate(): void {
    this.#stopReading()
    if (this.#phase === 'open') this.#beginClosing()
    this.#socket.destroy()
  }

  /** Called by the heartbeat. */
  beat(now: number): void {
    if (this.#phase === 'closing') {
      if (now - this.#closingSince >= closeBeats) this.terminate()
      return
    }
    if (now - this.#seenAt < silentBeats) return
    if (this.#pinged && this.#begun) return this.terminate()
    this.#pinged = true
    this.#seenAt = now
    this.#outbox.add(opcodes.ping, '')
  }

  #begin(head: Buffer): void {
    if (this.#phase === 'closed') return
    this.#begun = true
    this.#seenAt = this.#services.heartbeat.now
    this.#pinged = false
    if (head.length > 0) this.#receive(head)
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    this.#socket.on('end', () => this.#peerEnded())
    if (this.#socket.readableEnded) this.#peerEnded() // The peer disconnected during `open`.
    this.#socket.resume()
  }

  #receive(chunk: Buffer): void {
    this.#seenAt = this.#services.heartbeat.now
    this.#pinged = false
    if (!this.#reading) return // Keep reading: a reset for unread data could overtake our Close frame.
    try {
      this.#reader.push(chunk)
      while (this.#reading) {
        const received = this.#reader.next()
        if (received === undefined) return this.#pauseIfFull()
        if (received instanceof ControlFrame) this.#control(received)
        else if (this.#phase === 'open') this.#call(() => this.#handlers.message?.(this, received))
      }
    } catch (error) {
      this.#fail(error)
    }
  }

  #pauseIfFull(): void {
    if (this.#isPaused || this.#phase !== 'open' || this.#outbox.bytes <= this.#services.maxBufferedBytes / 2) return
    this.#isPaused = true
    this.#socket.pause()
  }

  #control({ opcode, payload }: ControlFrame): void {
    if (opcode === opcodes.close) return this.#peerCloses(payload)
    if (opcode !== opcodes.ping || this.#phase !== 'open') return
    // A peer that does not read gets only the pong for its last ping (RFC 6455, section 5.5.3).
    if (this.#outbox.blocked) this.#pendingPong = Buffer.from(payload)
    else this.#outbox.add(opcodes.pong, payload)
  }

  #written(): void {
    if (!this.#outbox.blocked) this.#resolveDrained()
    if (this.#isPaused && this.#outbox.bytes <= this.#services.maxBufferedBytes / 2) {
      this.#isPaused = false
      this.#socket.resume()
    }
    const payload = this.#pendingPong
    if (payload === undefined || this.#outbox.blocked) return
    this.#pendingPong = undefined
    if (this.#phase === 'open') this.#outbox.add(opcodes.pong, payload)
  }

  #peerCloses(payload: Buffer): void {
    const { code, reason } = readClosePayload(payload)
    this.#code = code
    this.#reason = reason
    this.#stopReading()
    if (this.#phase === 'open') this.#sendClose(code === closeCodes.none ? '' : closePayload(code, ''))
    this.#outbox.end()
  }

  /** The peer has ended the connection without a Close frame. */
  #peerEnded(): void {
    this.#stopReading()
    if (this.#phase === 'open') this.#beginClosing()
    this.#outbox.end()
  }

  /** Fails the connection (RFC 6455, section 7.1.7). */
  #fail(error: unknown): void {
    const { onError, onProtocolError } = this.#services
    const isViolation = error instanceof ProtocolError
    this.#stopReading()
    if (this.#phase === 'open') {
      this.#code = isViolation ? error.code : closeCodes.internalError
      this.#reason = isViolation ? error.message : ''
      this.#sendClose(closePayload(this.#code, this.#reason))
    }
    this.#outbox.end()
    if (isViolation) onProtocolError(error, this.#context)
    else onError(error, this.#context)
  }

  #sendClose(payload: Buffer | ''): void {
    this.#outbox.add(opcodes.close, payload)
    this.#beginClosing()
  }

  #beginClosing(): void {
    this.#phase = 'closing'
    this.#closingSince = this.#services.heartbeat.now
  }

  #stopReading(): void {
    this.#reading = false
    this.#reader.clear()
  }

  #resolveDrained(): void {
    for (const resolve of this.#whenDrained.splice(0)) resolve()
  }

  #ended(): void {
    for (const end of this.#followed.splice(0)) end()
    this.#resolveDrained()
    this.#stopReading()
    this.#phase = 'closed'
    this.#services.heartbeat.remove(this)
    this.#call(() => this.#handlers.close?.(this, this.#code, this.#reason))
    this.#services.onClosed(this, this.#code, this.#context)
  }

  /** Calls a handler and, once it is done or has failed, `after`. */
  #call(handler: () => unknown, after?: () => void): void {
    try {
      const outcome = handler()
      if (outcome instanceof Promise) {
        outcome.catch((error: unknown) => this.#handlerFailed(error)).then(after)
        return
      }
    } catch (error) {
      this.#handlerFailed(error)
    }
    after?.()
  }

  #handlerFailed(error: unknown): void {
    this.#services.onError(error, this.#context)
    this.close(closeCodes.internalError)
  }
}

function toBuffer(data: NodeJS.ArrayBufferView): Buffer {
  if (Buffer.isBuffer(data)) return data
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  throw new TypeError(`Cannot send: a message is a string, a Buffer or a view of an ArrayBuffer: it is ${typeof data}`)
}
