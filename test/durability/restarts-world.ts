// A server that is restarted under load, on a socket that the service manager keeps: publishers, cursors and queue clients.
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { applicationFolder } from '../support/application-folder.ts'
import { serviceManager } from '../support/service-manager.ts'
import { until } from '../support/until.ts'

const files = {
  'routes/home.json': [
    { name: 'add', url: '/add/:number', method: 'POST', action: 'a.mjs@add' },
    { name: 'last', url: '/last', method: 'GET', action: 'a.mjs@last' },
    { name: 'news', url: '/news', method: 'GET', action: 'a.mjs@news' },
    { name: 'job', url: '/job', method: 'GET', action: 'a.mjs@job' },
  ],
  'a.mjs': `
    const options = { events: 100000 }
    export const add = async ({ channel, queue, params }) => {
      await queue('jobs', options).push(Number(params.number))
      return { id: await channel('news', options).publish(Number(params.number)) }
    }
    export const last = async ({ channel }) => ({ id: await channel('news', options).last_id })
    export const news = (ctx) => ctx.live(ctx.channel('news', options))
    export const job = (ctx) => ctx.longPoll(ctx.queue('jobs', options), { timeout_s: 2 })`,
}

interface RestartsOptions {
  readonly events: number
  readonly restarts: number
  /** The signal that ends the server: SIGTERM, as a planned restart does, or SIGKILL. */
  readonly by: 'SIGTERM' | 'SIGKILL'
  /** Keys of `svc.json`. */
  readonly config?: Readonly<Record<string, unknown>>
}

interface RestartsReport {
  readonly restarts: number
  readonly events: number
  /** Gaps told to each cursor client. */
  readonly gaps: readonly number[]
  /** Jobs that no client got, and that two got. */
  readonly lostJobs: number
  readonly doubledJobs: number
}

const cursorClients = 8
const queueClients = 4
const publishers = 4

/** Restarts a server while events are published and read. Asserts what holds for every kind of restart. */
export async function runRestarts(
  t: { after(work: () => unknown): void },
  { events, restarts, by, config = {} }: RestartsOptions,
): Promise<RestartsReport> {
  const service = await serviceManager(t, { cwd: applicationFolder(files, { 'access_log.enabled': false, ...config }) })
  await service.start()
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())

  const ask = (method: string, path: string): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const sent = request({ port: service.port, host: '127.0.0.1', method, path, agent }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
        response.on('error', reject)
        response.on('end', () => (response.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(`${response.statusCode} ${text}`))))
      })
      sent.on('error', reject)
      sent.end()
    })

  const begun = ((await ask('GET', '/last')) as { id: number }).id
  const acknowledged = new Set<number>()
  const jobs = new Map<number, number>()
  const gaps = Array.from({ length: cursorClients }, () => 0)
  const heard = Array.from({ length: cursorClients }, () => new Map<number, number>())
  let next = 0
  let isOver = false

  async function publish(): Promise<void> {
    while (next < events) {
      const number = (next += 1)
      // A connection that was idle when the server stopped fails before the request is read: it is sent again.
      for (let isDone = false; !isDone; ) {
        isDone = await ask('POST', `/add/${number}`).then(() => true, () => by === 'SIGKILL')
      }
      acknowledged.add(number)
    }
  }
  async function follow(client: number): Promise<void> {
    const own = heard[client] as Map<number, number>
    for (let since = begun; !isOver; ) {
      const poll = (await ask('GET', `/news?since=${since}`).catch(() => undefined)) as
        | { events: { id: number; data: number }[]; last_id: number; gap?: boolean }
        | undefined
      if (poll === undefined) continue
      if (poll.gap === true) gaps[client] = (gaps[client] ?? 0) + 1
      else for (const { data } of poll.events) own.set(data, (own.get(data) ?? 0) + 1)
      since = poll.last_id
    }
  }
  async function work(): Promise<void> {
    while (!isOver) {
      const answer = (await ask('GET', '/job').catch(() => undefined)) as { event: number | null } | undefined
      if (typeof answer?.event === 'number') jobs.set(answer.event, (jobs.get(answer.event) ?? 0) + 1)
    }
  }

  const following = heard.map((_, client) => follow(client))
  const working = Array.from({ length: queueClients }, work)
  const publishing = Promise.all(Array.from({ length: publishers }, publish))
  for (let count = 1; count <= restarts; count += 1) {
    await until(() => next >= (events * count) / (restarts + 1))
    await service.restart(by)
  }
  await publishing
  const hasAll = (own: ReadonlyMap<number, number>): boolean => own.size === events
  await until(() => (by === 'SIGKILL' ? gaps.every((told) => told >= restarts) : heard.every(hasAll) && hasAll(jobs)))
  isOver = true
  await Promise.all(working) // Their last polls end after 2 s without a job: none came twice.
  agent.destroy() // Ends the other polls, which would wait for 30 s.
  await Promise.all(following)
  for (const own of heard) assert.deepEqual([...own.values()].filter((times) => times !== 1), [], 'an event came twice')
  return {
    restarts,
    events,
    gaps,
    lostJobs: events - jobs.size,
    doubledJobs: [...jobs.values()].filter((times) => times !== 1).length,
  }
}
