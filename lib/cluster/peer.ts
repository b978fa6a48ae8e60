/**
 * One side of the channel between the primary and a worker: calls, which have an answer, and notifications, which have
 * none. Their values are JSON.
 *
 * Surprise: the calls, notifications and answers of one turn of the event loop are sent in one message at its end, in
 * order, because a message costs many times as much as another entry in it. Nothing is sent to a worker before it has
 * announced that it listens: `node:cluster` loses earlier messages.
 */
import { RoutesUnsavedError } from '../control/commands.ts'
import { reasonOf } from '../base/reason.ts'
import { awayError, isHttpError } from '../http/errors.ts'

/** Carries the messages of a peer, in order, each one completely or not at all. */
export interface PeerPort {
  /**
   * @param written called when the system has accepted the message, so that it no longer uses memory here
   * @throws TypeError for a message that is not JSON; nothing is sent
   */
  send(message: unknown, written: () => void): void
  /** Sets the listener of messages, once. */
  onMessage(listener: (message: unknown) => void): void
  /** Sets the listener of the channel's end, once. */
  onClose(listener: () => void): void
  /** Resolves when the other side listens; earlier messages could be lost. Undefined: it listens from the start. */
  readonly ready?: Promise<void> | undefined
}

/** A process with an IPC channel: a child made by `fork` of `node:child_process`, or this process when it is one. */
interface IpcProcess {
  readonly connected: boolean
  send?(message: unknown, handle: undefined, options: undefined, done: (error: Error | null) => void): boolean
  disconnect(): void
  on(event: 'message' | 'disconnect', listener: (message: unknown) => void): unknown
}

/** A handler on the other side threw an error with this message. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError'
}

/** The channel closed before the answer: the call may have taken effect. */
export class DisconnectedError extends Error {
  override readonly name = 'DisconnectedError'
}

/** A worker sends this when it listens. */
const greeting = 'svc-listens'

/** Marks our messages: `node:cluster` and others use the same channel. */
const tag = 'svc'

/**
 * An entry of a message. A call has a number from 1 and its answer the negated number; 0 is a notification:
 * `[1, name, argument?]`, `[0, name, argument?]`, `[-1, value?]`, `[-1, null, errorMessage, errorKind]`.
 */
type Entry = readonly [number, ...unknown[]]

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/**
 * Opens the port of a worker to its primary.
 * @throws Error in a process without an IPC channel
 */
export function workerPort(): PeerPort {
  const ipc = process as IpcProcess // Its type lists each event separately.
  const port = openPort(ipc)
  return {
    ...port,
    onMessage: (listener) => {
      ipc.on('message', listener)
      port.send(greeting, () => {})
    },
  }
}

/**
 * Opens the port to a child process that opens a `workerPort`. Call it in the turn of the event loop in which the
 * process was started.
 * @throws Error when the process has no IPC channel
 */
export function portOf(child: IpcProcess): PeerPort {
  let listens = (): void => {}
  return {
    ...openPort(child),
    onMessage: (listener) => {
      child.on('message', (message) => (message === greeting ? listens() : listener(message)))
    },
    ready: new Promise((resolve) => (listens = resolve)),
  }
}

/** Closes the channel when a message cannot be written, since the next ones would be out of order. */
function openPort(ipc: IpcProcess): Pick<PeerPort, 'send' | 'onClose'> {
  const send = ipc.send?.bind(ipc)
  if (send === undefined) throw new Error('Cannot open a port: the process has no IPC channel')
  return {
    send: (message, written) =>
      void send(message, undefined, undefined, (error) => {
        if (error !== null && ipc.connected) ipc.disconnect()
        written()
      }),
    onClose: (listener) => void (ipc.connected ? ipc.on('disconnect', listener) : setImmediate(listener)),
  }
}

/** One side of a channel. */
export class Peer {
  /** Resolves when the channel has closed. */
  readonly closed: Promise<void>
  readonly #port: PeerPort
  readonly #onError: (error: unknown) => void
  readonly #handlers = new Map<string, (argument: unknown) => unknown>()
  readonly #waiting = new Map<number, Waiting>()
  #entries: Entry[] = []
  #backlog = 0
  #calls = 0
  #isOpen = true
  #isReady: boolean

  /**
   * @param onError called with the error of a notification, which has no caller to receive it. By default it is
   *   thrown and ends the process
   */
  constructor(port: PeerPort, onError: (error: unknown) => void = throwLater) {
    this.#port = port
    this.#onError = onError
    port.onMessage((message) => this.#receive(message))
    this.#isReady = port.ready === undefined
    void port.ready?.then(() => {
      this.#isReady = true
      if (this.#entries.length > 0) this.#flush()
    })
    this.closed = new Promise((resolve) => {
      port.onClose(() => {
        this.#close()
        resolve()
      })
    })
  }

  /**
   * Calls the other side's handler of this name. An argument or answer may be `undefined`; JSON omits it inside them.
   * @returns a promise that rejects with RemoteError when the handler threw or does not exist, DisconnectedError when
   *   the channel is closed or closes before the answer, TypeError for an argument that is not JSON
   */
  call(name: string, argument?: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) return reject(disconnected())
      this.#calls += 1
      this.#waiting.set(this.#calls, { resolve, reject })
      this.#add(argument === undefined ? [this.#calls, name] : [this.#calls, name, argument])
    })
  }

  /** Sends a notification, in order with calls. Does nothing when the channel is closed. */
  notify(name: string, argument?: unknown): void {
    this.#add(argument === undefined ? [0, name] : [0, name, argument])
  }

  /**
   * Sets the handler of calls and notifications with this name. The entries of one message are handled in one turn, in
   * order.
   * @throws Error when the name already has a handler
   */
  on(name: string, handler: (argument: unknown) => unknown): void {
    if (this.#handlers.has(name)) throw new Error(`Cannot set the handler "${name}" of a peer: it has one`)
    this.#handlers.set(name, handler)
  }

  /** The approximate number of characters that the other side has not read yet; small unless it hangs. */
  get backlog(): number {
    return this.#backlog
  }

  #add(entry: Entry): void {
    if (!this.#isOpen) return
    this.#entries.push(entry)
    if (this.#entries.length === 1 && this.#isReady) setImmediate(() => this.#flush())
  }

  #flush(): void {
    const entries = this.#entries
    this.#entries = []
    if (!this.#isOpen) return
    try {
      this.#send(entries)
    } catch (error) {
      // One of them is not JSON, or together they exceed the longest string. It must not block the others.
      for (const entry of entries) this.#sendOne(entry)
    }
  }

  #sendOne(entry: Entry): void {
    try {
      this.#send([entry])
    } catch (error) {
      const [id] = entry
      // JSON.stringify throws an Error, unless a toJSON throws something else.
      if (id > 0) this.#settle(id)?.reject(error as Error)
      else if (id < 0) this.#add(failure(id, error))
      else this.#onError(error)
    }
  }

  #send(entries: readonly Entry[]): void {
    const length = textLength(entries)
    this.#port.send([tag, ...entries], () => (this.#backlog -= length))
    this.#backlog += length
  }

  #receive(message: unknown): void {
    if (!Array.isArray(message) || message[0] !== tag) return
    for (const entry of message.slice(1)) {
      if (isEntry(entry)) this.#take(entry)
      else this.#onError(new TypeError('Ignored a damaged entry in a message from the other process'))
    }
  }

  #take(entry: Entry): void {
    const [id, second, third, kind] = entry
    if (id >= 0) return this.#handle(id, String(second), third)
    const waiting = this.#settle(-id)
    if (entry.length > 2) waiting?.reject(errorOf(String(third), kind))
    else waiting?.resolve(second)
  }

  #handle(id: number, name: string, argument: unknown): void {
    try {
      const handler = this.#handlers.get(name)
      if (handler === undefined) throw new Error(`There is no handler "${name}"`)
      const answer = handler(argument)
      if (answer instanceof Promise) {
        void answer.then((value) => this.#answer(id, value), (error: unknown) => this.#fail(id, error))
      } else this.#answer(id, answer)
    } catch (error) {
      this.#fail(id, error)
    }
  }

  #answer(id: number, value: unknown): void {
    if (id > 0) this.#add(value === undefined ? [-id] : [-id, value])
  }

  #fail(id: number, error: unknown): void {
    if (id > 0) this.#add(failure(-id, error))
    else this.#onError(error)
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    return waiting
  }

  #close(): void {
    this.#isOpen = false
    this.#entries = []
    for (const { reject } of this.#waiting.values()) reject(disconnected())
    this.#waiting.clear()
  }
}

/**
 * Counts the strings in nested lists, but not in objects: only answers contain many, and a process that hangs makes no
 * calls.
 */
function textLength(value: unknown): number {
  if (typeof value === 'string') return value.length
  return Array.isArray(value) ? value.reduce((sum: number, item) => sum + textLength(item), 0) : 0
}

/** Whether an entry has the form of {@link Entry}. The name of a handler and the message of an error are strings. */
function isEntry(entry: unknown): entry is Entry {
  if (!Array.isArray(entry) || !Number.isSafeInteger(entry[0])) return false
  const [id, second, third] = entry as readonly unknown[]
  return (id as number) >= 0 ? typeof second === 'string' : entry.length <= 2 || typeof third === 'string'
}

function failure(id: number, error: unknown): Entry {
  const isAway = isHttpError(error) && error.code === 'shared_away'
  const kind = isAway ? 'away' : error instanceof RoutesUnsavedError ? 'unsaved' : 'other'
  return [id, null, reasonOf(error), kind]
}

/** Restores the class of two kinds of errors; any other becomes a RemoteError. */
function errorOf(message: string, kind: unknown): Error {
  if (kind === 'away') return awayError(message)
  return kind === 'unsaved' ? new RoutesUnsavedError(message) : new RemoteError(message)
}

function disconnected(): DisconnectedError {
  return new DisconnectedError('The channel to the other process has closed')
}

function throwLater(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
