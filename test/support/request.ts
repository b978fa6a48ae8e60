import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'

/** A response, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
  /** The body as JSON. Throws if it is not JSON. */
  json(): unknown
}

/** What to send; the method is GET, or POST with a body. */
export interface Question {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Uint8Array
}

/** Sends one request on a new connection, which is closed afterwards: `fetch` would reuse it. */
export function request(url: string, question: Question = {}): Promise<Answer> {
  const { body, method = body === undefined ? 'GET' : 'POST', headers = {} } = question
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, headers: headers as Record<string, string | string[]>, agent: false })
    sent.on('error', reject)
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const bytes = Buffer.concat(chunks)
        const text = bytes.toString()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text, json: () => JSON.parse(text) })
      })
    })
    sent.end(body)
  })
}
