/** What the nodes of a chaos run serve: a channel that is published in and polled, a queue, and a session that counts. */
import type { Files } from '../support/application.ts'

/** So many events are kept for clients that are behind. */
export const kept = 20_000

export const files: Files = {
  'routes/chaos.json': [
    { name: 'last', url: '/last', method: 'GET', action: 'chaos.mjs@last' },
    { name: 'publish', url: '/publish', method: 'POST', action: 'chaos.mjs@publish' },
    { name: 'poll', url: '/poll', method: 'GET', action: 'chaos.mjs@poll' },
    { name: 'push', url: '/push', method: 'POST', action: 'chaos.mjs@push' },
    { name: 'take', url: '/take', method: 'GET', action: 'chaos.mjs@take' },
    { name: 'in', url: '/in', method: 'POST', action: 'chaos.mjs@begin', middleware: 'SVC_MwSession' },
    { name: 'count', url: '/count', method: 'POST', action: 'chaos.mjs@count', middleware: 'SVC_MwSession' },
  ],
  'chaos.mjs': `const limits = { events: ${kept}, age_s: 3600 }
    export const last = async ({ channel }) => ({ last_id: await channel('c', limits).last_id })
    // The id of each event that was published for certain, null for the others.
    export const publish = async ({ channel, readJson }) => {
      const events = channel('c', limits)
      const results = await Promise.allSettled((await readJson()).map(async (data) => events.publish(data)))
      return results.map(({ value = null }) => value)
    }
    export const poll = ({ channel, longPoll }) => longPoll(channel('c', limits), { timeout_s: 5 })
    export const push = async ({ queue, readJson }) => {
      await queue('q', limits).push(await readJson())
      return { ok: true }
    }
    export const take = ({ queue, longPoll }) => longPoll(queue('q', limits), { timeout_s: 2 })
    export const begin = async ({ session, readText }) => {
      session.set('user', await readText())
      return { ok: true }
    }
    export const count = ({ session }) => {
      const count = session.get('count', 0) + 1
      session.set('count', count)
      return { user: session.get('user', null), count }
    }`,
}
