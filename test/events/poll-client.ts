import { connect, type Socket } from 'node:net'

/** The response to a client. */
export interface PollAnswer {
  readonly status: number
  readonly body: string
}

/** A client that sends one request after the other on a connection, and may leave at any time. */
export class PollClient {
  readonly #port: number
  #socket: Socket | undefined = undefined
  #received = ''
  #answered: ((answer: PollAnswer | undefined) => void) | undefined = undefined
  #leavesAtFirstBytes = false
  /** How many bytes of the response had arrived when the client last left. */
  bytesSeen = 0

  constructor(port: number) {
    this.#port = port
  }

  /** Requests on the open connection or a new one. Resolves with the response, or undefined if it has left. */
  ask(path: string): Promise<PollAnswer | undefined> {
    this.#socket ??= this.#connect()
    this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
    return new Promise((resolve) => (this.#answered = resolve))
  }

  /** Leaves, with a reset or gracefully. */
  leave(rudely: boolean): void {
    const socket = this.#socket
    if (socket === undefined) return
    this.bytesSeen = this.#received.length
    this.#socket = undefined
    this.#received = ''
    if (rudely && !socket.connecting) socket.resetAndDestroy()
    else socket.destroy()
    this.#answer(undefined)
  }

  /** Leaves as soon as the response begins to arrive. */
  leaveAtFirstBytes(): void {
    this.#leavesAtFirstBytes = true
  }

  #connect(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (socket === this.#socket) this.#read(text)
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      if (socket === this.#socket) this.leave(false)
    })
    return socket
  }

  #read(text: string): void {
    this.#received += text
    if (this.#leavesAtFirstBytes) {
      this.#leavesAtFirstBytes = false
      return this.leave(true)
    }
    const bodyAt = this.#received.indexOf('\r\n\r\n') + 4
    if (bodyAt < 4) return
    const length = Number(/content-length: (\d+)/i.exec(this.#received.slice(0, bodyAt))?.[1])
    if (this.#received.length < bodyAt + length) return
    const answer = { status: Number(this.#received.slice('HTTP/1.1 '.length, bodyAt).split(' ', 1)[0]), body: this.#received.slice(bodyAt) }
    this.#received = ''
    this.#answer(answer)
  }

  #answer(answer: PollAnswer | undefined): void {
    const answered = this.#answered
    this.#answered = undefined
    answered?.(answer)
  }
}
