/** A WebSocket server over real sockets, and a client that sends raw bytes. */
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { Heartbeat } from '../../lib/base/heartbeat.ts'
import type { ProtocolError } from '../../lib/websocket/close-code.ts'
import {
  beatMs,
  WebSocketConnection,
  type WebSocketHandlers,
  type WebSocketServices,
} from '../../lib/websocket/connection.ts'
import { checkHandshake } from '../../lib/websocket/handshake.ts'
import { listen } from '../support/listen.ts'
import { clientFrame, takeFrame, type FrameFields, type ReceivedFrame } from './frames.ts'

export const sampleKey = 'dGhlIHNhbXBsZSBub25jZQ=='

/** The calls that a server received, in order. */
export interface Reported {
  readonly errors: unknown[]
  readonly violations: ProtocolError[]
  readonly closed: number[]
  slow: number
}

export interface TestServer {
  readonly port: number
  readonly heartbeat: Heartbeat
  readonly reported: Reported
  /** The connections in order of their opening. */
  readonly connections: WebSocketConnection<string>[]
  /** Returns a client after its handshake. */
  connect(extra?: string | Buffer): Promise<TestClient>
}

type Limits = Partial<Pick<WebSocketServices<string>, 'heartbeat' | 'maxMessageBytes' | 'maxBufferedBytes'>>

/** Starts a server; the context of `open` is the request's target. */
export async function startWebSocketServer(
  t: Pick<TestContext, 'after'>,
  handlers: WebSocketHandlers<string>,
  limits: Limits & { readonly prepare?: (socket: Socket) => void } = {},
): Promise<TestServer> {
  const heartbeat = limits.heartbeat ?? new Heartbeat(beatMs)
  const reported: Reported = { errors: [], violations: [], closed: [], slow: 0 }
  const services: WebSocketServices<string> = {
    maxMessageBytes: 1 << 20,
    maxBufferedBytes: 1 << 20,
    ...limits,
    heartbeat,
    onError: (error) => reported.errors.push(error),
    onProtocolError: (error) => reported.violations.push(error),
    onSlow: () => (reported.slow += 1),
    onClosed: (_ws, code) => reported.closed.push(code),
  }
  const connections: WebSocketConnection<string>[] = []
  const server = createServer()
  server.on('upgrade', (request, stream, head) => {
    const { method = '', httpVersion, headers, url = '' } = request
    const asked = { method, httpVersion, header: (name: string) => headers[name] as string | undefined }
    const socket = stream as Socket // On a listening socket it is one.
    limits.prepare?.(socket)
    const fields = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${checkHandshake(asked)}`
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n\r\n`)
    const ws = new WebSocketConnection(socket, services, handlers, url)
    connections.push(ws)
    ws.start(head)
  })
  t.after(() => {
    for (const ws of connections) ws.terminate()
  })
  const port = await listen(t, server)
  return { port, heartbeat, reported, connections, connect: (extra) => TestClient.open(port, extra) }
}

/** How a connection ended, from its `close` handler. */
export type Ending = readonly [code: number, reason: string]

/** Handlers that echo and record their calls. */
export class Echo implements WebSocketHandlers<string> {
  readonly messages: (string | Buffer)[] = []
  readonly endings: Ending[] = []
  readonly #events = new EventEmitter()

  message(ws: WebSocketConnection<string>, data: string | Buffer): void {
    this.messages.push(data)
    ws.send(data)
  }

  close(_ws: WebSocketConnection<string>, code: number, reason: string): void {
    this.endings.push([code, reason])
    this.#events.emit('ending')
  }

  /** How the first connection ended; waits for it. */
  async ending(): Promise<Ending | undefined> {
    if (this.endings.length === 0) await once(this.#events, 'ending')
    return this.endings[0]
  }
}

/** A client of a test. */
export class TestClient {
  readonly socket: Socket
  #bytes: Buffer = Buffer.alloc(0)
  #wake: () => void = () => {}

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {}) // What came before is what counts.
    socket.on('data', (chunk: Buffer) => {
      this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
      this.#wake()
    })
    socket.on('end', () => this.#wake())
    socket.on('close', () => this.#wake())
  }

  /** Does the handshake. `extra`: bytes to send with it. */
  static async open(port: number, extra: string | Buffer = ''): Promise<TestClient> {
    const client = new TestClient(connect({ port, host: '127.0.0.1' }))
    const upgrade = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
    const fields = `${upgrade}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${sampleKey}`
    client.socket.write(Buffer.concat([Buffer.from(`GET /chat HTTP/1.1\r\n${fields}\r\n\r\n`), Buffer.from(extra)]))
    let end = -1
    while ((end = client.#bytes.indexOf('\r\n\r\n')) < 0) {
      if (client.socket.closed) throw new Error('The server closed the connection during the handshake')
      await client.#more()
    }
    const answer = client.#bytes.toString('latin1', 0, end)
    if (!answer.startsWith('HTTP/1.1 101 ')) throw new Error(`The handshake failed: ${answer}`)
    client.#bytes = client.#bytes.subarray(end + 4)
    return client
  }

  send(...frames: readonly FrameFields[]): void {
    this.socket.write(Buffer.concat(frames.map(clientFrame)))
  }

  /** The next frame; undefined when the server has closed the connection. */
  async next(): Promise<ReceivedFrame | undefined> {
    for (;;) {
      const taken = takeFrame(this.#bytes)
      if (taken !== undefined) {
        this.#bytes = taken.rest
        return taken.frame
      }
      if (this.socket.readableEnded || this.socket.closed) return undefined
      await this.#more()
    }
  }

  /** All frames until the server closes the connection. */
  async rest(): Promise<ReceivedFrame[]> {
    const frames: ReceivedFrame[] = []
    for (let frame = await this.next(); frame !== undefined; frame = await this.next()) frames.push(frame)
    return frames
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}
