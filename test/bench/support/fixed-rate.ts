/**
 * Load at a fixed rate for a server that is fast: a request is sent when it is due, on a connection that is idle, whether
 * those before it were answered or not; where none is idle it waits here, and that counts. Times are counted from the
 * moment at which a request was due, so a server that stands still is not asked less for it (coordinated omission).
 *
 * Surprise: an answer is known by its length alone, which is that of the first one: only so can one core send and count
 * as many requests as the other serves.
 */
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

interface Connection {
  readonly socket: Socket
  missingBytes: number
  dueMs: number
}

const readBuffer = Buffer.allocUnsafe(65_536)

/** Connections to one server, all of which ask the same. */
export class FixedRate {
  readonly #request: Buffer
  readonly #idle: Connection[] = []
  readonly #all: Connection[] = []
  #answerBytes = 0
  #latenciesMs: number[] = []

  /** @param request as it is sent; its answers must all have the same length */
  constructor(request: string) {
    this.#request = Buffer.from(request, 'latin1')
  }

  /** Opens connections, and asks once on each. */
  async open(port: number, count: number): Promise<void> {
    for (let at = 0; at < count; at += 1) await this.#connect(port)
  }

  /**
   * Sends for so long, and waits for the answers.
   * @returns for each request the milliseconds from when it was due until its answer was there
   */
  async run(perSecond: number, durationMs: number): Promise<readonly number[]> {
    this.#latenciesMs = []
    const total = Math.floor((perSecond * durationMs) / 1000)
    const from = performance.now()
    let sent = 0
    while (this.#latenciesMs.length < total) {
      const due = Math.min(total, Math.floor(((performance.now() - from) * perSecond) / 1000))
      for (let one = this.#idle.pop(); one !== undefined; one = this.#idle.pop()) {
        if (sent >= due) {
          this.#idle.push(one)
          break
        }
        one.dueMs = from + (sent * 1000) / perSecond
        one.missingBytes = this.#answerBytes
        one.socket.write(this.#request)
        sent += 1
      }
      await nextTurn()
    }
    return this.#latenciesMs
  }

  /** Closes all connections. */
  close(): void {
    for (const { socket } of this.#all) socket.destroy()
  }

  #connect(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let isFirst = true
      const callback = (length: number): boolean => {
        if (isFirst) {
          isFirst = false
          this.#answerBytes = length
          this.#idle.push(connection)
          resolve()
        } else {
          this.#took(connection, length)
        }
        return true
      }
      const socket = connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer: readBuffer, callback } })
      const connection: Connection = { socket, missingBytes: 0, dueMs: 0 }
      socket.on('error', reject).on('connect', () => socket.write(this.#request))
      this.#all.push(connection)
    })
  }

  #took(connection: Connection, length: number): void {
    connection.missingBytes -= length
    if (connection.missingBytes > 0) return
    this.#latenciesMs.push(performance.now() - connection.dueMs)
    this.#idle.push(connection)
  }
}
