/**
 * A server whose durable channel gets events while it, or one of its workers, is killed again and again. A client that
 * continues from its cursor must get every event that was acknowledged, in order and without a gap.
 */
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { applicationFolder } from '../support/application-folder.ts'
import { launch, type Launched } from '../support/launch.ts'
import { Seeded } from '../support/seeded.ts'

export interface EventsRun {
  /** How often something is killed. */
  readonly kills: number
  /** The number of events that are published, in all. */
  readonly events: number
  /** `server.processes`: with several, every other kill ends one worker. */
  readonly processes: number
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
  const folder = applicationFolder(eventFiles, { 'app.env': 'dev', 'dev.watch': false, 'server.processes': run.processes })
  const acknowledged = new Map<number, number>()
  const received: number[] = []
  let server: Launched | undefined
  let base = ''
  let sent = 0
  let gaps = 0
  let cursor = 0
  let isDone = false
  const ensureServer = async (): Promise<void> => {
    if (server !== undefined) return
    server = launch(t, ['start'], { cwd: folder })
    base = await server.listening()
  }
  const publishTo = async (to: number): Promise<void> => {
    while (sent < to) {
      const first = sent
      sent += batch
      const ids = await ask<{ ids: number[] }>(`${base}/publish?first=${first}`)
      ids?.ids.forEach((id, at) => acknowledged.set(id, first + at))
      if (ids === undefined && server === undefined) return
    }
  }
  const follow = async (): Promise<void> => {
    while (!isDone) {
      const answer = await ask<Answer>(`${base}/poll?since=${cursor}`)
      if (answer === undefined) {
        await delay(5)
        continue
      }
      if (answer.gap === true && cursor !== 0) gaps += 1
      for (const { id } of answer.events) received.push(id)
      cursor = answer.last_id
    }
  }
  await ensureServer()
  const following = follow()
  for (let kill = 1; kill <= run.kills; kill += 1) {
    await ensureServer()
    const publishing = publishTo(Math.round((run.events * kill) / run.kills))
    await delay(seeded.integer(300))
    if (run.processes > 1 && kill % 2 === 0) await killWorker(base)
    else {
      const killed: Launched | undefined = server
      server = undefined
      killed?.child.kill('SIGKILL')
      await killed?.ended
    }
    await publishing
  }
  await ensureServer()
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

async function killWorker(base: string): Promise<void> {
  try {
    process.kill(Number(await (await fetch(`${base}/pid`)).text()), 'SIGKILL')
  } catch {
    // It is being replaced.
  }
}
