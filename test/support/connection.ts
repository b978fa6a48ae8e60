import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { parseAnswer, type RawAnswer } from './raw.ts'
import { until } from './until.ts'

/** The sockets of the tests that cut them at their end. */
const opened = new WeakMap<object, Socket[]>()

/**
 * Cuts the sockets of a test when it ends. Call it before the server is started: what is registered first ends first,
 * and a server that stops gives connections that are idle half a second.
 */
export function cutAtEnd(t: Pick<TestContext, 'after'>): void {
  const sockets: Socket[] = []
  opened.set(t, sockets)
  t.after(() => sockets.forEach((socket) => socket.destroy()))
}

/** Cuts another socket when a test ends. */
export function cutToo(t: Pick<TestContext, 'after'>, socket: Socket): void {
  const sockets = opened.get(t)
  if (sockets === undefined) t.after(() => socket.destroy())
  else sockets.push(socket)
}

/** A raw connection of a test to a server on this machine, byte by byte. */
export class Connection {
  readonly socket: Socket
  /** The received bytes so far, as Latin-1 text. */
  received = ''

  /** Connects; the connection is cut when the test ends. */
  constructor(
    t: Pick<TestContext, 'after'>,
    port: number,
    { tls = false, ...options }: { allowHalfOpen?: boolean; localAddress?: string; tls?: boolean } = {},
  ) {
    const target = { port, host: '127.0.0.1', ...options }
    this.socket = tls ? connectTls({ ...target, rejectUnauthorized: false }) : connect(target)
    this.socket.on('data', (chunk: Buffer) => (this.received += chunk.toString('latin1')))
    this.socket.on('error', () => {}) // A cut shows in the received bytes, and in `closed`.
    cutToo(t, this.socket)
  }

  /** Sends bytes; resolves when the kernel has them. */
  send(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()))
  }

  /** Leaves with a reset. */
  async reset(): Promise<void> {
    if (this.socket.connecting) await once(this.socket, 'connect')
    // A reset that meets an end under way is refused below Node, which then keeps the handle for ever.
    if (this.socket.writableEnded) this.socket.destroy()
    else this.socket.resetAndDestroy()
  }

  /** Resolves with everything received once the connection is closed. */
  async closed(): Promise<string> {
    // `once` of node:events would reject on an error, which here is one way to be closed.
    if (!this.socket.closed) await new Promise((resolve) => this.socket.once('close', resolve))
    return this.received
  }

  /** Waits for a number of responses and parses them. */
  async answers(count: number): Promise<RawAnswer[]> {
    await until(() => splitAnswers(this.received).length >= count)
    return splitAnswers(this.received)
  }
}

/** Parses consecutive responses, each with a Content-Length or without a body; complete ones only. */
export function splitAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  for (let rest = text; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n') + 4
    if (end < 4) break
    const length = end + Number(parseAnswer(rest.slice(0, end)).headers['content-length'] ?? 0)
    if (rest.length < length) break
    answers.push(parseAnswer(rest.slice(0, length)))
    rest = rest.slice(length)
  }
  return answers
}

/** The text of a request with a Host field. */
export function requestText(line: string, fields: readonly string[] = [], body = ''): string {
  return [`${line} HTTP/1.1`, 'Host: h', ...fields, '', body].join('\r\n')
}
