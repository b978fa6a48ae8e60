/**
 * A client for load: requests as prepared text over raw sockets, answers as text. It takes a tenth of what Node's own
 * client takes, so that nine thousand of them fit beside what is measured.
 *
 * Surprise: all connections read into one buffer, since each looks at what came before the next is read.
 */
import { connect, type Socket } from 'node:net'

const readBuffer = Buffer.allocUnsafe(65_536)

/** A connection that asks one thing after the other. */
export class RawClient {
  /** Called with each answer, header section and body. */
  answered: (answer: string) => void = () => {}
  readonly #socket: Socket
  #pending = ''
  #closed = false

  /** Opens a connection. Rejects when it is refused; one that the server closes later ends the process with an error. */
  static open(port: number): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const client: RawClient = new RawClient(port, reject, () => resolve(client))
    })
  }

  private constructor(port: number, failed: (error: Error) => void, opened: () => void) {
    const callback = (length: number): boolean => {
      this.#read(readBuffer.toString('latin1', 0, length))
      return true
    }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer: readBuffer, callback } })
    this.#socket.once('error', failed).once('connect', () => {
      this.#socket.off('error', failed).once('close', () => this.#ended())
      opened()
    })
  }

  /** Sends a request; the answer comes by `answered`. */
  send(request: string): void {
    this.#socket.write(request, 'latin1')
  }

  /** Sends a request and takes its answer. */
  ask(request: string): Promise<string> {
    return new Promise((resolve) => {
      this.answered = resolve
      this.send(request)
    })
  }

  /** Leaves with a reset, so that its port is free again at once. */
  close(): void {
    this.#closed = true
    this.#socket.on('error', () => {})
    this.#socket.resetAndDestroy()
  }

  #ended(): void {
    if (!this.#closed) throw new Error(`The server has closed a connection; the last of it was ${this.#pending}`)
  }

  #read(text: string): void {
    this.#pending = this.#pending === '' ? text : this.#pending + text
    const bodyAt = this.#pending.indexOf('\r\n\r\n') + 4
    if (bodyAt < 4) return
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#pending)?.[1] ?? 0)
    if (this.#pending.length < bodyAt + length) return
    const answer = this.#pending
    this.#pending = ''
    this.answered(answer)
  }
}

/** A GET as it goes over the wire. */
export function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n`
}

/** The body of an answer. Throws Error when its status is not 2xx. */
export function bodyOf(answer: string): string {
  if (!/^HTTP\/1\.1 2\d\d /.test(answer)) throw new Error(`The server answered ${answer}`)
  return answer.slice(answer.indexOf('\r\n\r\n') + 4)
}
