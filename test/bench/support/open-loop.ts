/**
 * Load that does not wait for the server: requests leave at a steady rate, whether those before them were answered or
 * not, as a crowd of clients sends them. Each takes a connection that is idle, or a new one; where as many are open as may
 * be, it waits here, and that counts.
 *
 * Surprise: a time is counted from the moment at which a request was due, not from when it was sent: a generator that
 * falls behind would otherwise make the server look better.
 */
import { connect, type Socket } from 'node:net'

/** What became of one request. */
export interface Outcome {
  /** The status; 0 when the connection ended without an answer. */
  readonly status: number
  /** Milliseconds since the load began at which it was due, and at which it was answered. */
  readonly dueMs: number
  readonly answeredMs: number
  /** Whether the answer had a Retry-After field. */
  readonly retryAfter: boolean
}

interface Connection {
  readonly socket: Socket
  pending: string
  dueMs: number
  busy: boolean
  closed: boolean
}

const readBuffer = Buffer.allocUnsafe(65_536)

/** A generator of load for one server on this machine. */
export class OpenLoop {
  readonly #port: number
  readonly #requests: readonly string[]
  readonly #maxConnections: number
  /** When each request was due that has no connection yet; the first ones may be gone, see `#nextWaiting`. */
  #waiting: number[] = []
  #nextWaiting = 0
  readonly #idle: Connection[] = []
  readonly #all = new Set<Connection>()
  #outcomes: Outcome[] = []
  #answered: (connection: Connection) => void = () => {}
  #startedAt = 0
  #open = 0

  /**
   * @param paths asked for in turn
   * @param maxConnections the most that are open at once
   */
  constructor(port: number, paths: readonly string[], maxConnections: number) {
    this.#port = port
    this.#maxConnections = maxConnections
    this.#requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n`)
  }

  /** How many requests have no answer yet. */
  get unanswered(): number {
    return this.#open + this.#waiting.length - this.#nextWaiting
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#all.size
  }

  /** Opens so many connections, a few at a time, with a request on each that the server answers without any work. */
  async open(count: number, path: string): Promise<void> {
    this.#begin()
    this.#answered = (connection) => this.#idle.push(connection)
    const connections: Connection[] = []
    await this.#tick(() => {
      if (this.#open < 16 && connections.length < count) {
        const connection = this.#connect()
        connections.push(connection)
        this.#open += 1
        connection.busy = true
        connection.socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 'latin1')
      }
      return connections.length < count || this.#open > 0
    })
  }

  /** What the server does when each of so many connections asks anew as soon as it has its answer. */
  async saturate(connections: number, durationMs: number): Promise<readonly Outcome[]> {
    this.#begin()
    this.#answered = (connection) => {
      if (this.#now() < durationMs) this.#send(connection, this.#now())
      else this.#idle.push(connection)
    }
    for (let count = 0; count < connections; count += 1) this.#ask(this.#now())
    await this.#tick(() => this.#now() < durationMs || this.unanswered > 0)
    return this.#outcomes
  }

  /** Sends at a rate. Resolves when the time is over; what has no answer then is in the outcomes of `settle`. */
  async run(perSecond: number, durationMs: number): Promise<void> {
    this.#begin()
    this.#answered = (connection) => {
      const dueMs = this.#waiting[this.#nextWaiting]
      if (dueMs === undefined) return void this.#idle.push(connection)
      this.#nextWaiting += 1
      this.#send(connection, dueMs)
    }
    let sent = 0
    await this.#tick(() => {
      const now = this.#now()
      const due = Math.floor((Math.min(now, durationMs) * perSecond) / 1000)
      for (; sent < due; sent += 1) this.#ask((sent * 1000) / perSecond)
      return now < durationMs
    })
  }

  /** Waits for the answers that are missing, for so long at most. Returns what became of each request. */
  async settle(maxMs: number): Promise<readonly Outcome[]> {
    const until = this.#now() + maxMs
    await this.#tick(() => this.unanswered > 0 && this.#now() < until)
    return this.#outcomes
  }

  close(): void {
    for (const { socket } of this.#all) socket.destroy()
  }

  #begin(): void {
    this.#outcomes = []
    this.#waiting = []
    this.#nextWaiting = 0
    this.#startedAt = performance.now()
  }

  #now(): number {
    return performance.now() - this.#startedAt
  }

  #ask(dueMs: number): void {
    let connection = this.#idle.pop()
    while (connection?.closed) connection = this.#idle.pop()
    if (connection !== undefined) this.#send(connection, dueMs)
    else if (this.#all.size < this.#maxConnections) this.#send(this.#connect(), dueMs)
    else this.#waiting.push(dueMs)
  }

  #send(connection: Connection, dueMs: number): void {
    connection.dueMs = dueMs
    connection.busy = true
    this.#open += 1
    const turn = (this.#outcomes.length + this.#open) % this.#requests.length
    connection.socket.write(this.#requests[turn] as string, 'latin1') // There is one at least.
  }

  #connect(): Connection {
    const callback = (length: number): boolean => {
      this.#read(connection, readBuffer.toString('latin1', 0, length))
      return true
    }
    const onread = { buffer: readBuffer, callback }
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true, onread })
    const connection: Connection = { socket, pending: '', dueMs: 0, busy: false, closed: false }
    this.#all.add(connection)
    socket.on('error', () => {}) // It closes, which is counted.
    socket.on('close', () => {
      connection.closed = true
      this.#all.delete(connection)
      if (connection.busy) this.#end(connection, 0, false)
    })
    return connection
  }

  #read(connection: Connection, text: string): void {
    connection.pending += text
    const bodyAt = connection.pending.indexOf('\r\n\r\n') + 4
    if (bodyAt < 4) return
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(connection.pending)?.[1] ?? 0)
    if (connection.pending.length < bodyAt + length) return
    const { pending } = connection
    connection.pending = ''
    this.#end(connection, Number(pending.slice(9, 12)), pending.includes('\r\nRetry-After: '))
    this.#answered(connection)
  }

  #end(connection: Connection, status: number, retryAfter: boolean): void {
    connection.busy = false
    this.#open -= 1
    this.#outcomes.push({ status, dueMs: connection.dueMs, answeredMs: this.#now(), retryAfter })
  }

  /** Calls `goesOn` every millisecond as long as it says so. */
  #tick(goesOn: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const turn = (): void => {
        if (goesOn()) setTimeout(turn, 1)
        else resolve()
      }
      turn()
    })
  }
}
