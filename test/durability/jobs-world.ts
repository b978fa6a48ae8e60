/**
 * Servers whose jobs are enqueued while they are killed again and again. Afterwards each job that was acknowledged must
 * have been done at least once.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { KilledServers, type Serving } from './killed-servers.ts'

export interface JobsRun extends Serving {
  /** How often something is killed. */
  readonly kills: number
  /** The number of jobs that are enqueued, in all. */
  readonly jobs: number
  readonly seed: number
}

/** The counts of a run. */
export interface JobsSeen {
  readonly acknowledged: number
  /** Acknowledged jobs that were never done. */
  readonly lost: number
  /** Jobs that were done more than once. */
  readonly twice: number
  /** Jobs that were dead because their process ended three times, and were then retried. */
  readonly dead: number
}

const batch = 50
const filesOf = (done: string) => ({
  'jobs/work.json': [{ name: 'work', action: 'work.mjs' }],
  'routes/add.json': [
    { name: 'add', url: '/add', action: 'work.mjs@add' },
    { name: 'pid', url: '/pid', action: 'work.mjs@pid' },
  ],
  'work.mjs': `
    import { appendFileSync } from 'node:fs'
    export default async ({ data }) => {
      await new Promise(setImmediate)
      appendFileSync(${JSON.stringify(done)}, data + '\\n')
    }
    export const add = async ({ query, enqueue }) => {
      const first = Number(query.get('first'))
      await Promise.all(Array.from({ length: Number(query.get('count')) }, (_, at) => enqueue('work', first + at)))
      return 'ok'
    }
    export const pid = () => String(process.pid)`,
})

/** Runs it. */
export async function killWhileJobsRun(t: Pick<TestContext, 'after'>, run: JobsRun): Promise<JobsSeen> {
  const seeded = new Seeded(run.seed)
  const doneFile = join(temporaryFolder(), 'done.txt')
  const servers = await KilledServers.create(t, run, filesOf(doneFile))
  const acknowledged: number[] = []
  let sent = 0
  const addBatches = async (to: number): Promise<void> => {
    while (sent < to) {
      const first = sent
      sent += batch
      try {
        const answer = await fetch(`${servers.base}/add?first=${first}&count=${batch}`)
        if (answer.status === 200) for (let at = 0; at < batch; at += 1) acknowledged.push(first + at)
      } catch {
        if (servers.areDown) return
      }
    }
  }
  for (let kill = 1; kill <= run.kills; kill += 1) {
    await servers.start()
    const adding = addBatches(Math.round((run.jobs * kill) / run.kills))
    await new Promise((resolve) => setTimeout(resolve, seeded.integer(300)))
    await servers.killNext()
    await adding
  }
  await servers.start()
  await addBatches(run.jobs)
  let dead = 0
  await until(async () => {
    const { base } = servers
    // The worker that was killed last may still end a connection.
    const response = await fetch(`${base}/svc-jobs?format=json&state=dead`).catch(() => undefined)
    if (response?.status !== 200) return false
    const { names, jobs } = (await response.json()) as {
      names: { waiting: number; running: number }[]
      jobs: { id: string }[]
    }
    for (const { id } of jobs) {
      await fetch(`${base}/svc-jobs/retry`, { method: 'POST', body: JSON.stringify({ id }) })
      dead += 1
    }
    return jobs.length === 0 && names.length > 0 && names.every(({ waiting, running }) => waiting + running === 0)
  })
  await servers.killAll()
  const done = new Map<number, number>()
  for (const line of readFileSync(doneFile, 'utf8').split('\n')) {
    if (line !== '') done.set(Number(line), (done.get(Number(line)) ?? 0) + 1)
  }
  return {
    acknowledged: acknowledged.length,
    lost: acknowledged.filter((number) => !done.has(number)).length,
    twice: [...done.values()].filter((times) => times > 1).length,
    dead,
  }
}
