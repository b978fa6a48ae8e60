/** The requests of a chaos run: over kept TLS connections, each sent once. */
import { Agent, request } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { Seeded } from '../support/seeded.ts'

/** An answer of status 200. */
export interface Answer {
  readonly text: string
  readonly cookie: string
}

export interface Asking {
  /**
   * Asks once; a POST with a body. Returns undefined when there was no answer, or one of another status than 200: what was
   * asked may have been done.
   */
  ask(path: string, body?: string, cookie?: string): Promise<Answer | undefined>
  /** Asks until there is an answer: for what may be done twice. */
  askUntilAnswered(path: string, body?: string, cookie?: string): Promise<Answer>
  /** What was answered, by status, and what failed, by its code. */
  readonly outcomes: ReadonlyMap<string, number>
  close(): void
}

/** Answers come within the time of a poll, and the proxy's time to find another node. */
const timeoutMs = 30_000

export function createAsking(url: string, random: Seeded): Asking {
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })
  const outcomes = new Map<string, number>()
  const count = (outcome: string): void => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)

  function ask(path: string, body?: string, cookie = ''): Promise<Answer | undefined> {
    const method = body === undefined ? 'GET' : 'POST'
    return new Promise((resolve) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        count(`${method} ${error.code ?? error.message}`)
        resolve(undefined)
      }
      const sent = request(url + path, { agent, method, headers: cookie === '' ? {} : { cookie } }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
        response.on('error', fail)
        response.on('end', () => {
          count(`${method} ${response.statusCode}`)
          const given = response.headers['set-cookie']?.[0]?.split(';')[0] ?? cookie
          resolve(response.statusCode === 200 ? { text, cookie: given } : undefined)
        })
      })
      sent.setTimeout(timeoutMs, () => sent.destroy(Object.assign(new Error('no answer'), { code: 'no answer' })))
      sent.on('error', fail)
      sent.end(body)
    })
  }

  return {
    ask,
    askUntilAnswered: async (path, body, cookie) => {
      for (;;) {
        const answer = await ask(path, body, cookie)
        if (answer !== undefined) return answer
        await delay(50 + random.integer(200)) // Shorter than the docs ask of clients, for more of it.
      }
    },
    outcomes,
    close: () => agent.destroy(),
  }
}
