/**
 * One side of the channel between the primary of a cluster and one of its workers: calls with an answer, and tells
 * without one. What they carry is JSON.
 *
 * Surprise: nothing is sent at once. All that one turn of the event loop calls, tells and answers goes in one message at
 * its end, in order: a message costs many times what a further entry in it costs. To a worker nothing is sent before it
 * has said that it listens: `node:cluster` loses what comes earlier.
 */
import { reasonOf } from '../base/reason.ts'

/** One side of a channel. */
export interface Peer {
  /**
   * Calls the other side's handler of that name. `undefined` is told from `null`, but not inside of what is taken or
   * answered, where JSON leaves it out.
   * @throws RemoteError when the handler threw, or there is none: its promise rejects
   * @throws DisconnectedError when the channel is closed, or closes first: its promise rejects
   * @throws TypeError for what JSON cannot hold: its promise rejects
   */
  call(name: string, taken?: unknown): Promise<unknown>
  /** Tells the other side something that has no answer, in one order with calls. Does nothing on a closed channel. */
  tell(name: string, taken?: unknown): void
  /**
   * Sets what a call or a tell of that name does here. What comes in one message is handled in one go, in order.
   * @throws Error for a name that has a handler
   */
  on(name: string, handler: (taken: unknown) => unknown): void
  /**
   * About how many characters of text wait here for the other side to read them. They are few, unless it hangs or is told
   * more than it can read.
   */
  readonly backlog: number
  /** Resolves when the channel has closed. */
  readonly closed: Promise<void>
}

/** What carries the messages of a peer, in order, each whole or not at all. */
export interface PeerPort {
  /**
   * @param written called when the system has taken the message, so that it is no longer kept here
   * @throws TypeError for what cannot be sent: nothing was
   */
  send(message: unknown, written: () => void): void
  /** Sets who is called with each message; set once. */
  onMessage(listener: (message: unknown) => void): void
  /** Sets who is called when no message comes or goes any more; set once. */
  onClose(listener: () => void): void
  /** Resolves when the other side listens: what was sent before could be lost. It listens from the start unless given. */
  readonly ready?: Promise<void> | undefined
}

/** A process with an IPC channel: what `fork` of `node:child_process` made, or this one when it was made by that. */
export interface IpcProcess {
  readonly connected: boolean
  send?(message: unknown, handle: undefined, options: undefined, done: (error: Error | null) => void): boolean
  disconnect(): void
  on(event: 'message' | 'disconnect', listener: (message: unknown) => void): unknown
}

/** A handler of the other side threw, with this message. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError'
}

/** The channel has closed, and the answer is not known: what was called for may have been done. */
export class DisconnectedError extends Error {
  override readonly name = 'DisconnectedError'
}

/** What a worker sends when it listens. */
const greeting = 'svc-listens'

/** In front of each message, since `node:cluster` and others send theirs on the same channel. */
const tag = 'svc'

/**
 * What a message has behind its tag. A number from 1 is a call, which is answered by the same below 0; 0 is a tell.
 * `[1, name, taken?]`, `[0, name, taken?]`, `[-1, value?]`, `[-1, null, message]`.
 */
type Entry = readonly [number, ...unknown[]]

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/**
 * Makes the side of a channel that is here.
 * @param onError told what has nobody else to be told to: a tell that failed here. It is thrown, and ends the process,
 *   unless given
 */
export function createPeer(port: PeerPort, onError: (error: unknown) => void = throwLater): Peer {
  return new ChannelPeer(port, onError)
}

/**
 * The port of a worker to its primary.
 * @throws Error in a process that was not made with an IPC channel
 */
export function workerPort(): PeerPort {
  const ipc = process as IpcProcess // Its type lists each event by itself.
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
 * The port to a child process, or to a worker of `node:cluster`, which opens a `workerPort`; to be opened in the turn in
 * which the process was made.
 * @throws Error when it was made without an IPC channel
 */
export function portOf(child: IpcProcess | { readonly process: IpcProcess }): PeerPort {
  const ipc = 'process' in child ? child.process : child
  let listens = (): void => {}
  return {
    ...openPort(ipc),
    onMessage: (listener) => void ipc.on('message', (message) => (message === greeting ? listens() : listener(message))),
    ready: new Promise((resolve) => (listens = resolve)),
  }
}

/** When a message cannot be written, the channel is closed: what came after it would be out of order. */
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

class ChannelPeer implements Peer {
  readonly closed: Promise<void>
  readonly #port: PeerPort
  readonly #onError: (error: unknown) => void
  readonly #handlers = new Map<string, (taken: unknown) => unknown>()
  readonly #waiting = new Map<number, Waiting>()
  #entries: Entry[] = []
  #backlog = 0
  #calls = 0
  #isOpen = true
  #isReady: boolean

  constructor(port: PeerPort, onError: (error: unknown) => void) {
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

  call(name: string, taken?: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) return reject(disconnected())
      this.#calls += 1
      this.#waiting.set(this.#calls, { resolve, reject })
      this.#add(taken === undefined ? [this.#calls, name] : [this.#calls, name, taken])
    })
  }

  tell(name: string, taken?: unknown): void {
    this.#add(taken === undefined ? [0, name] : [0, name, taken])
  }

  on(name: string, handler: (taken: unknown) => unknown): void {
    if (this.#handlers.has(name)) throw new Error(`Cannot set the handler "${name}" of a peer: it has one`)
    this.#handlers.set(name, handler)
  }

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
      // One of them cannot be sent, and must not keep back the others.
      for (const entry of entries) this.#sendAlone(entry)
    }
  }

  #sendAlone(entry: Entry): void {
    try {
      this.#send([entry])
    } catch (error) {
      const [id] = entry
      if (id > 0) this.#settle(id)?.reject(error as Error) // JSON throws Errors, unless a toJSON does not.
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
    for (let at = 1; at < message.length; at++) this.#take(message[at] as Entry) // The other side wrote it.
  }

  #take(entry: Entry): void {
    const [id, second, third] = entry
    if (id >= 0) return this.#handle(id, second as string, third)
    const waiting = this.#settle(-id)
    if (entry.length > 2) waiting?.reject(new RemoteError(third as string))
    else waiting?.resolve(second)
  }

  #handle(id: number, name: string, taken: unknown): void {
    try {
      const handler = this.#handlers.get(name)
      if (handler === undefined) throw new Error(`There is no handler "${name}"`)
      const outcome = handler(taken)
      if (outcome instanceof Promise) void outcome.then((value) => this.#answer(id, value), (error) => this.#fail(id, error))
      else this.#answer(id, outcome)
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

/** The texts in lists, and in lists in them. What an answer has in its objects is not counted: who hangs asks nothing. */
function textLength(value: unknown): number {
  if (typeof value === 'string') return value.length
  return Array.isArray(value) ? value.reduce((sum: number, part) => sum + textLength(part), 0) : 0
}

function failure(id: number, error: unknown): Entry {
  return [id, null, reasonOf(error)]
}

function disconnected(): DisconnectedError {
  return new DisconnectedError('The channel to the other process has closed')
}

function throwLater(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
