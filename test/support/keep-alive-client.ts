import * as http from 'node:http'
import * as https from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'

/** The outcomes of the requests. */
export interface Tally {
  /** Responses with status 200. */
  answered: number
  /** Failures, by status or error code. */
  readonly failed: string[]
  /** The received bodies, with their counts. */
  readonly bodies: Map<string, number>
  /** The longest request, in milliseconds. */
  slowestMs: number
}

export interface ClientOptions {
  readonly url: string
  /** The number of connections, each with one request after the other. */
  readonly connections: number
  /** `false`: a connection for each request, with a handshake of its own. */
  readonly keepAlive?: boolean
  /** Header fields of each request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Makes the body of each request, which then is a POST. */
  readonly body?: () => string
  /** The longest pause between two requests of a connection, in milliseconds; random below that. None by default. */
  readonly pauseMs?: number
}

/** A running client. */
export interface KeepAliveClient {
  /** The outcomes so far. */
  readonly tally: Tally
  /** Starts no more requests. Resolves when all have ended. */
  stop(): Promise<Tally>
}

/** Sends requests on connections that are kept alive, over TLS to any certificate, and repeats none. */
export function startClient(given: ClientOptions): KeepAliveClient {
  const { url, connections, keepAlive = true, pauseMs = 0 } = given
  const options = { keepAlive, maxSockets: connections, maxCachedSessions: 0, rejectUnauthorized: false }
  const agent = url.startsWith('https:') ? new https.Agent(options) : new http.Agent(options)
  const tally: Tally = { answered: 0, failed: [], bodies: new Map(), slowestMs: 0 }
  let stopped = false
  const loop = async (): Promise<void> => {
    while (!stopped) {
      const begun = performance.now()
      const { problem, body } = await ask(given, agent)
      tally.slowestMs = Math.max(tally.slowestMs, performance.now() - begun)
      if (problem === undefined) tally.answered += 1
      else tally.failed.push(problem)
      tally.bodies.set(body, (tally.bodies.get(body) ?? 0) + 1)
      if (pauseMs > 0) await delay(Math.random() * pauseMs)
    }
  }
  const loops = Promise.all(Array.from({ length: connections }, loop))
  return {
    tally,
    stop: async () => {
      stopped = true
      await loops
      agent.destroy()
      return tally
    },
  }
}

function ask(
  { url, headers = {}, body: makeBody }: ClientOptions,
  agent: http.Agent,
): Promise<{ problem: string | undefined; body: string }> {
  const method = makeBody === undefined ? 'GET' : 'POST'
  const { request } = agent instanceof https.Agent ? https : http
  return new Promise((resolve) => {
    const sent = request(url, { agent, method, headers }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('error', (error) => resolve({ problem: `after ${body.length} characters: ${error.message}`, body: '' }))
      response.on('end', () => resolve({ problem: response.statusCode === 200 ? undefined : `status ${response.statusCode}`, body }))
    })
    sent.on('error', (error: NodeJS.ErrnoException) => {
      resolve({ problem: `${error.code ?? error.message}${sent.reusedSocket ? ' on a used connection' : ''}`, body: '' })
    })
    sent.end(makeBody?.())
  })
}
