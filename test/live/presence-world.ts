// Members of a channel across several processes or nodes: streams that open and close, and how fast that spreads.
import { Agent, get, type ClientRequest } from 'node:http'
import { until } from '../support/until.ts'

/** The files of the application. */
export const presenceFiles = {
  'routes/presence.json': [
    { name: 'room', url: '/room/:id', method: 'GET', action: 'presence.mjs' },
    { name: 'alone', url: '/alone/:id', method: 'GET', action: 'presence.mjs@alone' },
  ],
  'presence.mjs': `
    export default (ctx) => {
      ctx.presence(ctx.channel('room'), { id: ctx.params.id })
      return ctx.live(ctx.channel('room'))
    }
    export const alone = (ctx) => ctx.live(ctx.channel('room'))`,
}

/** A stream, and the members that it knows. */
export class Observer {
  readonly known = new Set<string>()
  /** The messages it received. */
  messages = 0
  readonly #sent: ClientRequest
  #rest = ''

  /** @param listens whether it reads presence; other streams are only members */
  constructor(url: string, id: string, agent: Agent, listens: boolean) {
    this.#sent = get(`${url}/room/${id}`, { agent, headers: { accept: 'text/event-stream' } }, (response) => {
      response.on('error', () => {})
      if (listens) response.setEncoding('utf8').on('data', (text: string) => this.#read(text))
      else response.resume()
    })
    this.#sent.on('error', () => {})
  }

  leave(): void {
    this.#sent.destroy()
  }

  #read(text: string): void {
    const frames = (this.#rest + text).split('\n\n')
    this.#rest = frames.pop() ?? ''
    for (const frame of frames) {
      const json = /^event: presence\ndata: (.*)$/m.exec(frame)?.[1]
      if (json === undefined) continue
      this.messages += 1
      const { type, members } = JSON.parse(json) as { type: string; members: { id: string }[] }
      if (type === 'list') this.known.clear()
      for (const { id } of members) if (type === 'leave') this.known.delete(id); else this.known.add(id)
    }
  }
}

/**
 * The milliseconds until an observer on each server knew all members, then one more member, and then that all but the
 * observers had left.
 */
export interface PresenceReport {
  readonly comingMs: number
  readonly oneMoreMs: number
  readonly goingMs: number
  readonly messages: readonly number[]
}

/**
 * Lets this many members join on the servers in turn, and leave.
 * @param urls one for each server
 * @param whenThere called and awaited when all members are known
 */
export async function runPresence(
  t: { after(work: () => unknown): void },
  urls: readonly string[],
  count: number,
  whenThere: () => Promise<void> = async () => {},
): Promise<PresenceReport> {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
  t.after(() => agent.destroy())
  const observers = urls.map((url, at) => new Observer(url, `observer-${at}`, agent, true))
  await until(() => observers.every(({ known }) => known.size === observers.length))
  const members = Array.from({ length: count }, (_, at) => new Observer(urls[at % urls.length] as string, `member-${at}`, agent, false))
  const begun = performance.now()
  await until(() => observers.every(({ known }) => known.size === count + observers.length))
  const comingMs = performance.now() - begun
  await whenThere()
  const later = performance.now()
  members.push(new Observer(urls.at(-1) as string, 'one-more', agent, false))
  await until(() => observers.every(({ known }) => known.has('one-more')))
  const oneMoreMs = performance.now() - later
  for (const member of members) member.leave()
  const left = performance.now()
  await until(() => observers.every(({ known }) => known.size === observers.length))
  const goingMs = performance.now() - left
  const messages = observers.map((observer) => observer.messages)
  for (const observer of observers) observer.leave()
  return { comingMs, oneMoreMs, goingMs, messages }
}
