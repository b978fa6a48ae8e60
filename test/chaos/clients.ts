/** Who publishes, polls, pushes, takes and signs in while the nodes of a chaos run come and go. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Seeded } from '../support/seeded.ts'
import { kept } from './application.ts'
import type { Asking } from './asking.ts'
import type { Arrived, ChannelLedger, QueueLedger } from './ledger.ts'

/** The most events in one request. */
const burst = 60

/** How far the work is. */
export interface Progress {
  /** How many events may have been acknowledged by now. */
  allowed(): number
  /** Whether so many are acknowledged that nobody begins to publish any more. */
  enough: boolean
  /** Whether every publisher has had its last answer: clients may end when they have all. */
  published: boolean
  /** Whether a client failed: the others end. */
  failed: boolean
}

/** Publishes under names of its own, never the same twice, as far as is allowed and the slowest client follows. */
export async function publish(publisher: number, asking: Asking, ledger: ChannelLedger, progress: Progress, random: Seeded): Promise<void> {
  const mayGoOn = (): boolean => {
    const { most, least } = ledger.arrived
    return ledger.acknowledged < progress.allowed() && Math.max(most, ledger.acknowledged) - least < kept / 4
  }
  for (let number = 0; !progress.enough && !progress.failed; ) {
    if (!mayGoOn()) {
      await delay(5)
      continue
    }
    const names = Array.from({ length: 1 + random.integer(burst) }, () => `${publisher}:${number++}`)
    for (const name of names) ledger.send(name)
    const answer = await asking.ask('/publish', JSON.stringify(names))
    if (answer === undefined) continue
    const ids = JSON.parse(answer.text) as (number | null)[]
    for (const [at, id] of ids.entries()) if (id !== null) ledger.acknowledge(id, names[at] as string) // An id for each name.
  }
}

/** Follows the channel by long polls from an id on, until it has all. */
export async function follow(client: number, from: number, asking: Asking, ledger: ChannelLedger, progress: Progress): Promise<void> {
  let since = from
  while (!progress.failed && !(progress.published && ledger.hasAll(client))) {
    const { text } = await asking.askUntilAnswered(`/poll?since=${since}`)
    const { events, last_id, gap } = JSON.parse(text) as { events: Arrived[]; last_id: number; gap?: true }
    if (gap) throw new Error(`Client ${client} was told of a gap behind ${since}`)
    ledger.arrive(client, events)
    const last = events.at(-1)?.id ?? since
    if (last_id !== last) throw new Error(`Client ${client} was told to go on from ${last_id}, and has ${last}`)
    since = last_id
  }
}

/** Pushes one thing after the other while events are published. */
export async function push(pusher: number, asking: Asking, ledger: QueueLedger, progress: Progress, random: Seeded): Promise<void> {
  for (let number = 0; !progress.published && !progress.failed; number += 1) {
    const name = `${pusher}:${number}`
    ledger.send(name)
    if ((await asking.ask('/push', JSON.stringify(name))) !== undefined) ledger.acknowledge(name)
    await delay(random.integer(50))
  }
}

/** Takes from the queue until it is empty at the end. */
export async function take(asking: Asking, ledger: QueueLedger, progress: Progress): Promise<void> {
  while (!progress.failed) {
    const ending = progress.published
    const { text } = await asking.askUntilAnswered('/take')
    const { event } = JSON.parse(text) as { event: string | null }
    if (event !== null) ledger.take(event)
    else if (ending) return
  }
}

/** Counts in a session: it is this user's all the time, and no step that was answered is undone. Returns the steps. */
export async function keepSession(client: number, asking: Asking, progress: Progress): Promise<number> {
  const user = `user ${client}`
  const { cookie } = await asking.askUntilAnswered('/in', user)
  let most = 0
  let answered = 0
  while (!progress.published && !progress.failed) {
    const before = answered
    most += 1 // One more, if it is carried out.
    const answer = await asking.ask('/count', '', cookie)
    if (answer === undefined) continue
    const { user: found, count } = JSON.parse(answer.text) as { user: string | null; count: number }
    if (found !== user) throw new Error(`The session of ${user} is that of ${found}`)
    if (count <= before || count > most) throw new Error(`${user} counted ${count}, after ${before} and ${most} at most`)
    answered = most = count
  }
  return answered
}
