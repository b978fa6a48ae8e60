/**
 * One WebSocket connection, the server's side (RFC 6455): messages in and out, ping and pong, the closing handshake.
 *
 * Messages are handed to the application as they come; it is not waited for where its handler returns a promise. Only
 * `open` is: nothing is read before it is done. Nor is a peer read that does not read: what is sent to it may wait up
 * to a bound, from half of that on it is not heard, and when it stays so the heartbeat cuts it.
 *
 * Surprise: the `close` handler runs when the connection has ended, not when closing begins; with the code that the
 * peer sent, or with the one that this side failed it with (1002, 1007, 1009), else 1006.
 */
import type { Socket } from 'node:net'
import { closeCodes, closePayload, ProtocolError, readClosePayload } from './close-code.ts'
import { opcodes } from './frame.ts'
import { ControlFrame, MessageReader } from './message-reader.ts'
import { Outbox } from './outbox.ts'
import type { Peer, PeerHeartbeat } from './peer-heartbeat.ts'

/** What an application exports as `websocket`. Any of them may be missing, and may return a promise. */
export interface WebSocketHandlers<C> {
  /** The connection is there. Nothing is read before this is done. */
  open?(ws: WebSocketConnection<C>, context: C): unknown
  /** A text message, as a string, or a binary one, as a Buffer that the application may keep and change. */
  message?(ws: WebSocketConnection<C>, data: string | Buffer): unknown
  /** The connection has ended: 1005 when the peer gave no code, 1006 when it ended without the closing handshake. */
  close?(ws: WebSocketConnection<C>, code: number, reason: string): unknown
}

/** What all connections of one server share. */
export interface WebSocketServices<C> {
  readonly heartbeat: PeerHeartbeat
  /** The most bytes of a message that is taken, over all its fragments; a larger one closes the connection (1009). */
  readonly maxMessageBytes: number
  /** Bytes that may wait for a peer that does not read; once there are more, the next message cuts the connection. */
  readonly maxBufferedBytes: number
  /** Told what a handler threw, or what its promise was rejected with; the connection is closed with 1011. */
  readonly onError: (error: unknown, ws: WebSocketConnection<C>) => void
  /** Told which rule of the protocol the peer broke. */
  readonly onProtocolError: (error: ProtocolError, ws: WebSocketConnection<C>) => void
  /** Told when a peer is cut because it does not read. */
  readonly onSlow: (ws: WebSocketConnection<C>) => void
  /** Told once, after the `close` handler was called, that the connection has ended. */
  readonly onClosed: (ws: WebSocketConnection<C>, code: number) => void
}

/** `closing`: a Close frame was sent, and with it the last of ours. */
type Phase = 'new' | 'open' | 'closing' | 'closed'

export class WebSocketConnection<C = unknown> implements Peer {
  readonly #socket: Socket
  readonly #services: WebSocketServices<C>
  readonly #handlers: WebSocketHandlers<C>
  readonly #outbox: Outbox
  readonly #reader: MessageReader
  #phase: Phase = 'new'
  /** Whether what arrives is still looked at: until the peer's Close frame, or its error. */
  #reading = true
  #code: number = closeCodes.abnormal
  #reason = ''
  /** The beat of the last sign of life, or of the ping since. */
  #seenAt = 0
  #pinged = false
  #closingSince = 0
  /** Whether nothing is read, since the peer does not read either: what it sends would only be answered into memory. */
  #holdsBack = false
  /** What the last ping had that could not be answered yet. */
  #owedPong: Buffer | undefined = undefined
  #values: Record<string, unknown> | undefined = undefined

  /**
   * Takes over a socket on which the 101 answer was written. Nothing happens before `start()`.
   * @param handlers called as they are, with `this` being this object
   */
  constructor(socket: Socket, services: WebSocketServices<C>, handlers: WebSocketHandlers<C>) {
    this.#socket = socket
    this.#services = services
    this.#handlers = handlers
    this.#reader = new MessageReader(services.maxMessageBytes)
    this.#outbox = new Outbox(socket, () => this.#written())
  }

  /**
   * Opens the connection: the `open` handler, and when it is done, reading. A socket that has closed in the meantime
   * calls `onClosed` alone.
   * @param head what arrived behind the handshake; may be changed in here
   */
  start(head: Buffer, context: C): void {
    const { heartbeat } = this.#services
    if (this.#socket.closed) return void this.#services.onClosed(this, this.#code)
    this.#phase = 'open'
    this.#seenAt = heartbeat.now
    heartbeat.add(this)
    this.#socket.setTimeout(0).setNoDelay(true)
    this.#socket.on('error', () => this.#socket.destroy()) // The code 1006 tells the application.
    this.#socket.on('close', () => this.#ended())
    this.#attempt(
      () => this.#handlers.open?.(this, context),
      () => this.#begin(head),
    )
  }

  /** Whether messages can be sent: from `open` until closing begins, on either side. */
  get isOpen(): boolean {
    return this.#phase === 'open'
  }

  /** Bytes that were sent and that the operating system has not taken: the peer does not read as fast. */
  get bufferedAmount(): number {
    return this.#outbox.bytes
  }

  /** A place for what the handlers keep for this connection; an object without prototype. */
  get state(): Record<string, unknown> {
    return (this.#values ??= Object.create(null) as Record<string, unknown>)
  }

  /**
   * Sends a message: a string as text, bytes as binary. Bytes of more than 4 KiB are not copied: they must not be
   * changed before `bufferedAmount` is 0.
   * @returns false when the connection is not open, or is cut because more than the allowed bytes wait already
   * @throws TypeError for anything else
   */
  send(data: string | NodeJS.ArrayBufferView): boolean {
    const payload = typeof data === 'string' ? data : toBuffer(data)
    if (this.#phase !== 'open') return false
    if (this.#outbox.bytes > this.#services.maxBufferedBytes) {
      this.terminate()
      this.#services.onSlow(this)
      return false
    }
    this.#outbox.add(typeof data === 'string' ? opcodes.text : opcodes.binary, payload)
    return true
  }

  /**
   * Begins the closing handshake; no message is given to the application any more. Does nothing once closing has begun.
   * @throws RangeError for a code that may not be sent (see `isWireCode`) and for a reason of more than 123 bytes
   */
  close(code: number = closeCodes.normal, reason = ''): void {
    const payload = closePayload(code, reason)
    if (this.#phase === 'open') this.#sendClose(payload)
  }

  /** Cuts the connection at once. The application gets 1006, unless the peer has told a code before. */
  terminate(): void {
    this.#stopReading()
    if (this.#phase === 'open') this.#beginClosing()
    this.#socket.destroy()
  }

  /** For the heartbeat: one beat of the shared timer. */
  beat(now: number): void {
    const { silentBeats, closeBeats } = this.#services.heartbeat
    if (this.#phase === 'closing') {
      if (now - this.#closingSince >= closeBeats) this.terminate()
      return
    }
    if (now - this.#seenAt < silentBeats) return
    if (this.#pinged) return this.terminate()
    this.#pinged = true
    this.#seenAt = now
    this.#outbox.add(opcodes.ping, '')
  }

  #begin(head: Buffer): void {
    if (this.#phase === 'closed') return
    if (head.length > 0) this.#receive(head)
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    this.#socket.on('end', () => this.#peerEnded())
    if (this.#socket.readableEnded) this.#peerEnded() // It left during `open`.
    this.#socket.resume()
  }

  #receive(chunk: Buffer): void {
    this.#seenAt = this.#services.heartbeat.now
    this.#pinged = false
    if (!this.#reading) return // What a peer still sends is thrown away, or a reset could overtake our Close frame.
    try {
      this.#reader.push(chunk)
      while (this.#reading) {
        const received = this.#reader.next()
        if (received === undefined) return this.#holdBackIfFull()
        if (received instanceof ControlFrame) this.#control(received)
        else if (this.#phase === 'open') this.#attempt(() => this.#handlers.message?.(this, received))
      }
    } catch (error) {
      this.#broken(error)
    }
  }

  #holdBackIfFull(): void {
    if (this.#holdsBack || this.#phase !== 'open' || this.#outbox.bytes <= this.#fullBytes) return
    this.#holdsBack = true
    this.#socket.pause()
  }

  /** The bytes that wait for the peer from which on nothing is read of it. */
  get #fullBytes(): number {
    return this.#services.maxBufferedBytes / 2
  }

  #control({ opcode, payload }: ControlFrame): void {
    if (opcode === opcodes.close) return this.#peerCloses(payload)
    if (opcode !== opcodes.ping || this.#phase !== 'open') return
    // To a peer that does not read only the last one is answered (RFC 6455, section 5.5.3).
    if (this.#outbox.blocked) this.#owedPong = Buffer.from(payload)
    else this.#outbox.add(opcodes.pong, payload)
  }

  #written(): void {
    if (this.#holdsBack && this.#outbox.bytes <= this.#fullBytes) {
      this.#holdsBack = false
      this.#socket.resume()
    }
    const owed = this.#owedPong
    if (owed === undefined || this.#outbox.blocked) return
    this.#owedPong = undefined
    if (this.#phase === 'open') this.#outbox.add(opcodes.pong, owed)
  }

  #peerCloses(payload: Buffer): void {
    const { code, reason } = readClosePayload(payload)
    this.#code = code
    this.#reason = reason
    this.#stopReading()
    if (this.#phase === 'open') this.#sendClose(code === closeCodes.none ? '' : closePayload(code, ''))
    this.#outbox.end()
  }

  /** The peer sends nothing more, and has not said why. */
  #peerEnded(): void {
    this.#stopReading()
    if (this.#phase === 'open') this.#beginClosing()
    this.#outbox.end()
  }

  /** Fails the connection (RFC 6455, section 7.1.7). */
  #broken(error: unknown): void {
    const { onError, onProtocolError } = this.#services
    const isViolation = error instanceof ProtocolError
    this.#stopReading()
    if (this.#phase === 'open') {
      this.#code = isViolation ? error.code : closeCodes.internalError
      this.#reason = isViolation ? error.message : ''
      this.#sendClose(closePayload(this.#code, this.#reason))
    }
    this.#outbox.end()
    if (isViolation) onProtocolError(error, this)
    else onError(error, this)
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

  #ended(): void {
    this.#stopReading()
    this.#phase = 'closed'
    this.#services.heartbeat.remove(this)
    this.#attempt(() => this.#handlers.close?.(this, this.#code, this.#reason))
    this.#services.onClosed(this, this.#code)
  }

  /** Runs a handler and then, once it is done or has failed, what follows it. */
  #attempt(handler: () => unknown, after?: () => void): void {
    try {
      const outcome = handler()
      if (outcome instanceof Promise) {
        outcome.catch((error: unknown) => this.#failed(error)).then(after)
        return
      }
    } catch (error) {
      this.#failed(error)
    }
    after?.()
  }

  #failed(error: unknown): void {
    this.#services.onError(error, this)
    this.close(closeCodes.internalError)
  }
}

function toBuffer(data: NodeJS.ArrayBufferView): Buffer {
  if (Buffer.isBuffer(data)) return data
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  throw new TypeError(`Cannot send: a message is a string, a Buffer or a view of an ArrayBuffer: it is ${typeof data}`)
}
