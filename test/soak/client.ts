/**
 * A client of a soaked server: one connection that is kept, cookies, and the habit to leave before the answer is there.
 *
 * Surprise: leaving is no error here. A request that is left gives undefined; all else that goes wrong is a complaint.
 */
import { Agent, request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { Seeded } from '../support/seeded.ts'
import type { Pace } from './pace.ts'
import type { Tallies } from './tallies.ts'

/** What is asked for. */
export interface Question {
  /** GET, or POST with a body, unless given. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** The statuses that are right; 200 unless given. */
  readonly expected?: readonly number[]
  /** How likely the client leaves before the answer is there, 0 (unless given) to 1. */
  readonly leaving?: number
  /** Is given each piece of the answer as it comes, which counts by its status alone. False: the client has had enough. */
  readonly onPiece?: (text: string) => boolean
}

/** What came back. */
export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** What a client needs to know of the place where it is. */
export interface Place {
  readonly port: number
  readonly tallies: Tallies
  readonly random: Seeded
  /** Gives each request its turn. */
  readonly pace: Pace
  /** Aborts at the end of a round: what is not answered by then is left. */
  readonly signal: AbortSignal
}

/** Who leaves does so within so many milliseconds. */
const leaveWithinMs = 15

export class Client {
  readonly place: Place
  readonly cookies = new Map<string, string>()
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  constructor(place: Place) {
    this.place = place
  }

  /** Asks, and counts the answer under its kind. Returns undefined when the client left, or nothing came back. */
  async ask(kind: string, path: string, question: Question = {}): Promise<Reply | undefined> {
    const { pace, signal } = this.place
    await pace.turn(signal)
    return this.#send(kind, path, question)
  }

  /** Closes its connection. */
  close(): void {
    this.#agent.destroy()
  }

  #send(kind: string, path: string, question: Question): Promise<Reply | undefined> {
    const { tallies, random, signal, port } = this.place
    const { body, method = body === undefined ? 'GET' : 'POST', expected = [200], leaving = 0, onPiece } = question
    const headers = { 'user-agent': `soak/1 (${kind})`, ...this.#cookieField(), ...question.headers }
    return new Promise((resolve) => {
      const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: this.#agent })
      const leaves = random.next() < leaving
      const timer = leaves ? setTimeout(leave, random.integer(leaveWithinMs)) : undefined
      let left = false
      let settled = false
      let counted = false

      function leave(): void {
        left = true
        sent.destroy()
      }
      const count = (status: number | undefined): void => {
        counted = true
        if (status === undefined) tallies.left(kind)
        else tallies.answered(kind, status, expected)
      }
      const settle = (reply: Reply | undefined): void => {
        if (settled) return
        settled = true
        clearTimeout(timer)
        signal.removeEventListener('abort', leave)
        if (!counted) count(reply?.status)
        resolve(reply)
      }
      const failed = (error: Error): void => {
        if (!left && !settled) tallies.complain(`${kind}: ${error.message}`)
        settle(undefined)
      }
      signal.addEventListener('abort', leave)
      sent.on('error', failed).on('close', () => settle(undefined))
      sent.on('response', (response) => {
        this.#keepCookies(response)
        let text = ''
        if (onPiece !== undefined) count(response.statusCode)
        response.setEncoding('utf8')
        response.on('data', (piece: string) => {
          if (onPiece === undefined) text += piece
          else if (!onPiece(piece)) leave()
        })
        response.on('error', failed)
        response.on('end', () => settle({ status: response.statusCode ?? 0, headers: response.headers, text }))
      })
      if (signal.aborted) leave()
      else if (leaves && typeof body === 'object') sent.write(body.subarray(0, body.length >> 1)) // Leaves in its midst.
      else sent.end(body)
    })
  }

  #cookieField(): Record<string, string> {
    if (this.cookies.size === 0) return {}
    return { cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ') }
  }

  #keepCookies(response: IncomingMessage): void {
    for (const field of response.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(field) ?? []
      if (/; *max-age=0(?:;|$)/i.test(field)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
  }
}
