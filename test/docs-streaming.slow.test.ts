// The clients of docs/streaming.md over a restart: they wait two seconds before they come again.
import { get, type ClientRequest } from 'node:http'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { startApplication, type TestApplication } from './support/application.ts'
import { readPage, shownFiles } from './support/markdown.ts'
import { request } from './support/request.ts'
import { until } from './support/until.ts'
import { WebSocketClient } from './support/websocket.ts'

const page = readPage('docs/streaming.md')
const files = { 'package.json': { type: 'module' }, ...shownFiles(page) }
const form = { 'content-type': 'application/x-www-form-urlencoded' }

/** What the clients of the page are given. */
interface Follower {
  readonly take: (events: readonly { data: { text: string } }[]) => void
  readonly reload: () => Promise<number>
}
interface Clients {
  followByPolls(url: string, since: number, options: Follower & { signal: AbortSignal }): Promise<void>
  followByEvents(url: string, since: number, options: Follower): () => void
  openSocket(
    url: string,
    options: { load: () => Promise<State>; show: (all: Message[]) => void; add: (one: Message) => void },
  ): () => void
}
interface Message {
  text: string
}
interface State {
  messages: Message[]
  last_id: number
}

describe('docs/streaming.md', () => {
  it('has clients that follow by each of the three, over a restart', async (t) => {
    standIn(t, 'EventSource', EventSourceStandIn)
    standIn(t, 'WebSocket', webSocketStandIn(t))
    const first = await startApplication(t, files)
    const clients = await loadClients(first)
    const { url, port } = first
    const seen = { polls: [] as string[], events: [] as string[], socket: [] as string[] }
    const load = async (): Promise<State> => (await request(`${url}/messages`)).json() as State
    const follow = (name: 'polls' | 'events'): Follower => ({
      take: (events) => seen[name].push(...events.map(({ data }) => data.text)),
      reload: async () => {
        const { messages, last_id } = await load()
        seen[name] = messages.map(({ text }) => text)
        return last_id
      },
    })
    const { last_id } = await load()
    const polls = new AbortController()
    const followed = clients.followByPolls(`${url}/messages/poll`, last_id, { ...follow('polls'), signal: polls.signal })
    const endEvents = clients.followByEvents(`${url}/messages/stream`, last_id, follow('events'))
    const endSocket = clients.openSocket(`ws://127.0.0.1:${port}/messages/socket`, {
      load,
      show: (all) => (seen.socket = all.map(({ text }) => text)),
      add: ({ text }) => seen.socket.push(text),
    })
    const say = (text: string): Promise<unknown> =>
      request(`${url}/messages`, { method: 'POST', body: `text=${text}`, headers: form })
    const all = (...texts: string[]): Promise<void> =>
      until(() => Object.values(seen).every((list) => list.join() === texts.join()))
    await say('one')
    await all('one')
    await say('two')
    await all('one', 'two')

    await first.app.stop()
    const second = await startApplication(t, files, { 'server.port': port })
    await say('three')
    await all('three')
    await say('four')
    await all('three', 'four')
    polls.abort()
    endEvents()
    endSocket()
    await followed
    await second.app.stop()
  })
})

async function loadClients({ folder }: TestApplication): Promise<Clients> {
  const load = (name: string): Promise<object> =>
    import(pathToFileURL(join(folder, 'public', `${name}.js`)).href) as Promise<object>
  // The page says what they export; that they are there shows when they are called.
  return { ...(await load('poll')), ...(await load('events')), ...(await load('socket')) } as Clients
}

/** Puts a class in the place of a browser's until the test ends: not every Node has them. */
function standIn(t: TestContext, name: string, Class: unknown): void {
  const own = Object.getOwnPropertyDescriptor(globalThis, name)
  Object.defineProperty(globalThis, name, { value: Class, configurable: true, writable: true })
  t.after(() => {
    if (own === undefined) Reflect.deleteProperty(globalThis, name)
    else Object.defineProperty(globalThis, name, own)
  })
}

interface StreamEvent {
  readonly lastEventId: string
  readonly data: string
}

/** As much of an EventSource as the page's client uses (HTML Standard, section 9.2). */
class EventSourceStandIn {
  static readonly CLOSED = 2
  readyState = 0
  onmessage: (event: StreamEvent) => void = () => {}
  onerror: () => void = () => {}
  readonly #url: string
  readonly #listeners = new Map<string, (event: StreamEvent) => void>()
  #lastId = ''
  #request: ClientRequest | undefined = undefined
  #timer: NodeJS.Timeout | undefined = undefined

  constructor(url: string) {
    this.#url = url
    this.#connect()
  }

  addEventListener(name: string, listener: (event: StreamEvent) => void): void {
    this.#listeners.set(name, listener)
  }

  close(): void {
    this.readyState = EventSourceStandIn.CLOSED
    clearTimeout(this.#timer)
    this.#request?.destroy()
  }

  #connect(): void {
    const headers = this.#lastId === '' ? {} : { 'last-event-id': this.#lastId }
    this.#request = get(this.#url, { headers, agent: false }, (response) => {
      if (response.statusCode !== 200) this.close()
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const blocks = (text + chunk).split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) this.#read(block)
      })
      response.on('error', () => {}) // `close` follows.
    })
    this.#request.on('error', () => {}).on('close', () => {
      if (this.readyState === EventSourceStandIn.CLOSED && this.#request?.destroyed) return
      this.#timer = setTimeout(() => this.#connect(), 2000)
      this.onerror()
    })
  }

  #read(block: string): void {
    if (this.readyState === EventSourceStandIn.CLOSED) return
    const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s, 2) as [string, string]))
    this.#lastId = fields.get('id') ?? this.#lastId
    const data = fields.get('data')
    if (data === undefined) return
    const listener = this.#listeners.get(fields.get('event') ?? '') ?? this.onmessage
    listener({ lastEventId: this.#lastId, data })
  }
}

/** As much of a WebSocket as the page's client uses. */
function webSocketStandIn(t: TestContext): unknown {
  return class {
    onopen: () => void = () => {}
    onmessage: (event: { data: string }) => void = () => {}
    onclose: () => void = () => {}
    readonly #client: WebSocketClient

    constructor(url: string) {
      const { port, pathname } = new URL(url)
      this.#client = new WebSocketClient(t, Number(port))
      void this.#run(pathname)
    }

    close(): void {
      this.#client.socket.destroy()
    }

    async #run(path: string): Promise<void> {
      try {
        if ((await this.#client.handshake(path)).status === 101) await this.#hear()
      } catch {
        // What it was does not matter: it has ended.
      }
      this.close()
      this.onclose()
    }

    async #hear(): Promise<void> {
      this.onopen()
      for (;;) {
        const frame = await this.#client.next()
        if (frame?.opcode !== 1) return
        this.onmessage({ data: frame.payload.toString() })
      }
    }
  }
}
