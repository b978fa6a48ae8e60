/**
 * A server whose jobs are enqueued while it, or one of its workers, is killed again and again. Afterwards each job that
 * was acknowledged must have been done at least once.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { launch, type Launched } from '../support/launch.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'

export interface JobsRun {
  /** How often something is killed. */
  readonly kills: number
  /** The number of jobs that are enqueued, in all. */
  readonly jobs: number
  /** `server.processes`: with several, every other kill ends one worker. */
  readonly processes: number
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
const files = {
  'jobs/work.json': [{ name: 'work', action: 'work.mjs' }],
  'routes/add.json': [
    { name: 'add', url: '/add', action: 'work.mjs@add' },
    { name: 'pid', url: '/pid', action: 'work.mjs@pid' },
  ],
  'work.mjs': `
    import { appendFileSync } from 'node:fs'
    const file = new URL('done.txt', import.meta.url)
    export default async ({ data }) => {
      await new Promise(setImmediate)
      appendFileSync(file, data + '\\n')
    }
    export const add = async ({ query, enqueue }) => {
      const first = Number(query.get('first'))
      await Promise.all(Array.from({ length: Number(query.get('count')) }, (_, at) => enqueue('work', first + at)))
      return 'ok'
    }
    export const pid = () => String(process.pid)`,
}

/** Runs it. */
export async function killWhileJobsRun(t: Pick<TestContext, 'after'>, run: JobsRun): Promise<JobsSeen> {
  const seeded = new Seeded(run.seed)
  const config = { 'app.env': 'dev', 'dev.watch': false, 'server.processes': run.processes }
  const folder = applicationFolder({}, config)
  writeFiles(folder, { ...files, 'done.txt': '' })
  const acknowledged: number[] = []
  let server: Launched | undefined
  let base = ''
  let sent = 0
  const ensureServer = async (): Promise<void> => {
    if (server !== undefined) return
    server = launch(t, ['start'], { cwd: folder })
    base = await server.listening()
  }
  const addBatches = async (to: number): Promise<void> => {
    while (sent < to) {
      const first = sent
      sent += batch
      try {
        const answer = await fetch(`${base}/add?first=${first}&count=${batch}`)
        if (answer.status === 200) for (let at = 0; at < batch; at += 1) acknowledged.push(first + at)
      } catch {
        return // The server was killed.
      }
    }
  }
  for (let kill = 1; kill <= run.kills; kill += 1) {
    await ensureServer()
    const adding = addBatches(Math.round((run.jobs * kill) / run.kills))
    await new Promise((resolve) => setTimeout(resolve, seeded.integer(300)))
    const isWorker = run.processes > 1 && kill % 2 === 0
    if (isWorker) await killWorker(base)
    else {
      server?.child.kill('SIGKILL')
      await server?.ended
      server = undefined
    }
    await adding
  }
  await ensureServer()
  await addBatches(run.jobs)
  let dead = 0
  await until(async () => {
    const { names, jobs } = (await (await fetch(`${base}/svc-jobs?format=json&state=dead`)).json()) as {
      names: { waiting: number; running: number }[]
      jobs: { id: string }[]
    }
    for (const { id } of jobs) {
      await fetch(`${base}/svc-jobs/retry`, { method: 'POST', body: JSON.stringify({ id }) })
      dead += 1
    }
    return jobs.length === 0 && names.every(({ waiting, running }) => waiting + running === 0)
  })
  server?.child.kill('SIGKILL')
  const done = new Map<number, number>()
  for (const line of readFileSync(join(folder, 'done.txt'), 'utf8').split('\n')) {
    if (line !== '') done.set(Number(line), (done.get(Number(line)) ?? 0) + 1)
  }
  return {
    acknowledged: acknowledged.length,
    lost: acknowledged.filter((number) => !done.has(number)).length,
    twice: [...done.values()].filter((times) => times > 1).length,
    dead,
  }
}

async function killWorker(base: string): Promise<void> {
  try {
    process.kill(Number(await (await fetch(`${base}/pid`)).text()), 'SIGKILL')
  } catch {
    // It is being replaced.
  }
}
