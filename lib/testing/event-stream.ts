/** Reads server-sent events (WHATWG HTML, section 9.2) from a response. */
import type { TestEvent } from 'svc'

/** A stream of events. */
export class EventStream implements AsyncIterable<TestEvent> {
  readonly response: Response
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  readonly #events: TestEvent[] = []
  #text = ''
  #id = ''
  #name = ''
  #data: string[] = []

  /** @param response with a body that has not been read */
  constructor(response: Response) {
    this.response = response
    this.#reader = (response.body as ReadableStream<Uint8Array>).getReader()
  }

  /** Waits for the next event. Resolves with undefined when the server has ended the stream. */
  async next(): Promise<TestEvent | undefined> {
    while (this.#events.length === 0) {
      const { done, value } = await this.#reader.read()
      if (done) return undefined
      this.#text += this.#decoder.decode(value, { stream: true })
      const lines = this.#text.split(/\r\n|\n|\r(?!$)/)
      this.#text = lines.pop() ?? ''
      for (const line of lines) this.#accept(line)
    }
    return this.#events.shift()
  }

  /** Disconnects. */
  async close(): Promise<void> {
    await this.#reader.cancel()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TestEvent, void> {
    try {
      for (let event = await this.next(); event !== undefined; event = await this.next()) yield event
    } finally {
      await this.close()
    }
  }

  #accept(line: string): void {
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'data') this.#data.push(value)
    else if (name === 'event') this.#name = value
    else if (name === 'id' && !value.includes('\0')) this.#id = value
  }

  #dispatch(): void {
    const event = this.#name === '' ? 'message' : this.#name
    if (this.#data.length > 0) this.#events.push({ id: this.#id, event, data: parsed(this.#data.join('\n')) })
    this.#name = ''
    this.#data = []
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
