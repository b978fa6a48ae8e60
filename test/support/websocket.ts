/** Applications whose routes serve WebSockets, and clients that speak to them in bytes. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import type { FullContext, TestMiddleware } from './context.ts'
import type { WebSocketHandlers } from '../../lib/websocket/connection.ts'
import { clientFrame, takeFrame, type FrameFields, type ReceivedFrame } from '../websocket/frames.ts'
import { startApplication, type Files, type TestApplication } from './application.ts'
import { Connection, cutAtEnd, requestText } from './connection.ts'
import { parseAnswer, type RawAnswer } from './raw.ts'

/** The parts of a route. */
export interface RouteParts {
  /** `*` by default. */
  readonly method?: string
  /** Names, separated by commas. */
  readonly middleware?: string
  /** The export `websocket`; none by default. */
  readonly handlers?: WebSocketHandlers<FullContext>
  /** The default export; none by default. */
  readonly action?: (ctx: FullContext) => unknown
}

/** The parts of an application besides its routes. */
export interface Extras {
  /** Middleware by name. */
  readonly middleware?: Readonly<Record<string, TestMiddleware>>
  readonly files?: Files
}

/** Starts an application with these routes, by their patterns; the first is named `r0`. */
export async function serveRoutes(
  t: Pick<TestContext, 'after'>,
  routes: Readonly<Record<string, RouteParts>>,
  config: Readonly<Record<string, unknown>> = {},
  { middleware = {}, files = {} }: Extras = {},
): Promise<TestApplication> {
  const parts = Object.values(routes)
  const key = `websocket-${process.pid}-${Math.random()}`
  Reflect.set(globalThis, key, { parts, middleware })
  t.after(() => Reflect.deleteProperty(globalThis, key))
  cutAtEnd(t)
  const modules = parts.map(({ handlers, action }, at): [string, string] => {
    const given = `globalThis['${key}'].parts[${at}]`
    const socket = handlers === undefined ? '' : `export const websocket = ${given}.handlers\n`
    return [`m${at}.mjs`, `${socket}${action === undefined ? '' : `export default ${given}.action\n`}`]
  })
  const names = Object.keys(middleware)
  const source = names.map((name) => `export const ${name} = globalThis['${key}'].middleware.${name}\n`).join('')
  return startApplication(
    t,
    {
      'routes/r.json': Object.entries(routes).map(([url, { method = '*', middleware: chain = '' }], at) => {
        return { name: `r${at}`, url, method, middleware: chain, action: `m${at}.mjs`, scope: '' }
      }),
      ...Object.fromEntries(modules),
      'routes/middleware/config.json': { load: names.length === 0 ? [] : ['own.mjs'] },
      'routes/middleware/own.mjs': source,
      ...files,
    },
    config,
  )
}

const key = Buffer.from('the sample nonce').toString('base64')
const accepted = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')

/** The header fields of a handshake, besides Host. */
export const handshakeFields: readonly string[] = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  `Sec-WebSocket-Key: ${key}`,
]

/** The text of a handshake. */
export function handshakeText(target: string, fields: readonly string[] = []): string {
  return requestText(`GET ${target}`, [...handshakeFields, ...fields])
}

/** A connection that will become a WebSocket. */
export class WebSocketClient extends Connection {
  /** Where in `received` the next frame begins; -1 before the handshake is answered. */
  #at = -1

  /** Sends a handshake. Returns the response, with the body if it is refused. */
  async handshake(target: string, fields: readonly string[] = [], behind: Buffer = Buffer.alloc(0)): Promise<RawAnswer> {
    this.socket.write(Buffer.concat([Buffer.from(handshakeText(target, fields)), behind]))
    return this.answer()
  }

  /** The answer to a handshake that was sent. */
  async answer(): Promise<RawAnswer> {
    let end: number
    while ((end = this.received.indexOf('\r\n\r\n')) < 0) await this.#more()
    this.#at = end + 4
    const head = parseAnswer(this.received.slice(0, this.#at))
    if (head.status !== 101) return parseAnswer(await this.closed())
    if (head.headers['sec-websocket-accept'] !== accepted) throw new Error(`The handshake is wrong: ${this.received}`)
    return head
  }

  sendFrames(...frames: readonly FrameFields[]): void {
    this.socket.write(Buffer.concat(frames.map(clientFrame)))
  }

  /** Sends a text message. */
  say(text: string): void {
    this.sendFrames({ opcode: 1, payload: text })
  }

  /** The next frame; undefined when the server has closed the connection. */
  async next(): Promise<ReceivedFrame | undefined> {
    for (;;) {
      const taken = takeFrame(Buffer.from(this.received.slice(this.#at), 'latin1'))
      if (taken !== undefined) {
        this.#at = this.received.length - taken.rest.length
        return taken.frame
      }
      if (this.socket.readableEnded || this.socket.closed) return undefined
      await this.#more()
    }
  }

  /** The text of the next message. */
  async hear(): Promise<string> {
    const frame = await this.next()
    if (frame?.opcode !== 1) throw new Error(`Expected a text: it is ${JSON.stringify(frame)}`)
    return frame.payload.toString()
  }

  /** The code of the Close frame that comes next, and its reason. */
  async closing(): Promise<readonly [number, string]> {
    const frame = await this.next()
    if (frame?.opcode !== 8) throw new Error(`Expected a Close frame: it is ${JSON.stringify(frame)}`)
    return frame.payload.length === 0 ? [1005, ''] : [frame.payload.readUInt16BE(0), frame.payload.toString('utf8', 2)]
  }

  async #more(): Promise<void> {
    if (this.socket.closed) throw new Error(`The server closed the connection: it sent ${JSON.stringify(this.received)}`)
    const waiting = new AbortController()
    const { signal } = waiting
    await Promise.race(['data', 'end', 'close'].map((event) => once(this.socket, event, { signal }).catch(() => {})))
    waiting.abort()
  }
}

/** Opens a WebSocket. */
export async function openWebSocket(
  t: Pick<TestContext, 'after'>,
  port: number,
  target: string,
  fields: readonly string[] = [],
  behind?: Buffer,
): Promise<WebSocketClient> {
  const client = new WebSocketClient(t, port)
  const { status } = await client.handshake(target, fields, behind)
  if (status !== 101) throw new Error(`The handshake failed: ${client.received}`)
  return client
}

/** Handlers that echo messages. */
export const echo: WebSocketHandlers<FullContext> = {
  message: (ws, data) => void ws.send(data),
}
