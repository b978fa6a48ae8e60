/**
 * Servers whose durable channel gets events while they are killed again and again. A client that
 * continues from its cursor must get every event that was acknowledged, in order and without a gap.
 */
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Seeded } from '../support/seeded.ts'
import { KilledServers, type Serving } from './killed-servers.ts'

export interface EventsRun extends Serving {
  /** How often something is killed. */
  readonly kills: number
  /** The number of events that are published, in all. */
  readonly events: number
  readonly seed: number
}

/** The counts of a run. */
export interface EventsSeen {
  readonly acknowledged: number
  readonly received: number
  /** Acknowledged events that were not received. */
  readonly lost: number
  readonly twice: number
  /** Events that came after a later one. */
  readonly outOfOrder: number
  readonly gaps: number
}

interface Answer {
  readonly events: readonly { readonly id: number; readonly data: number }[]
  readonly last_id: number
  readonly gap?: true
}

const batch = 50
const options = '{ durable: true, events: 1_000_000, age_s: 86_400 }'
/** The files of an application that publishes in a durable channel. */
export const eventFiles = {
  'routes/events.json': [
    { name: 'publish', url: '/publish', action: 'events.mjs@publish' },
    { name: 'poll', url: '/poll', action: 'events.mjs@poll' },
    { name: 'pid', url: '/pid', action: 'events.mjs@pid' },
  ],
  'events.mjs': `
    const open = (ctx) => ctx.channel('news', ${options})
    export const publish = async (ctx) => {
      const first = Number(ctx.query.get('first'))
      return { ids: await Promise.all(Array.from({ length: ${batch} }, (_, at) => open(ctx).publish(first + at))) }
    }
    export const poll = (ctx) => ctx.longPoll(open(ctx), { timeout_s: 1 })
    export const pid = () => String(process.pid)`,
}

/** Runs it. */
export async function killWhileEventsPass(t: Pick<TestContext, 'after'>, run: EventsRun): Promise<EventsSeen> {
  const seeded = new Seeded(run.seed)
  const servers = await KilledServers.create(t, run, eventFiles)
  const acknowledged = new Map<number, number>()
  const received: number[] = []
  let sent = 0
  let gaps = 0
  let cursor = 0
  let isDone = false
  const publishTo = async (to: number): Promise<void> => {
    while (sent < to) {
      const first = sent
      sent += batch
      const ids = await ask<{ ids: number[] }>(`${servers.base}/publish?first=${first}`)
      ids?.ids.forEach((id, at) => acknowledged.set(id, first + at))
      if (ids === undefined && servers.areDown) return
    }
  }
  const follow = async (): Promise<void> => {
    while (!isDone) {
      const answer = await ask<Answer>(`${servers.base}/poll?since=${cursor}`)
      if (answer === undefined) {
        await delay(5)
        continue
      }
      if (answer.gap === true && cursor !== 0) gaps += 1
      for (const { id } of answer.events) received.push(id)
      cursor = answer.last_id
    }
  }
  await servers.start()
  const following = follow()
  for (let kill = 1; kill <= run.kills; kill += 1) {
    await servers.start()
    const publishing = publishTo(Math.round((run.events * kill) / run.kills))
    await delay(seeded.integer(300))
    await servers.killNext()
    await publishing
  }
  await servers.start()
  await publishTo(run.events)
  const last = Math.max(...acknowledged.keys())
  for (const end = Date.now() + 60_000; cursor < last && Date.now() < end;) await delay(20)
  isDone = true
  await following
  const times = new Map<number, number>()
  for (const id of received) times.set(id, (times.get(id) ?? 0) + 1)
  return {
    acknowledged: acknowledged.size,
    received: received.length,
    lost: [...acknowledged.keys()].filter((id) => !times.has(id)).length,
    twice: [...times.values()].filter((count) => count > 1).length,
    outOfOrder: received.filter((id, at) => at > 0 && id <= (received[at - 1] ?? 0)).length,
    gaps,
  }
}

/** Returns the answer of a request; undefined if there is none, as of a server that is killed. */
async function ask<T>(url: string): Promise<T | undefined> {
  try {
    const response = await fetch(url)
    return response.status === 200 ? ((await response.json()) as T) : undefined
  } catch {
    return undefined
  }
}
