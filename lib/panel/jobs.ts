/**
 * The background jobs: their names with counts and next times, the jobs themselves, and buttons that retry, discard and
 * run them. With `?format=json` the page is JSON.
 */
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { JobQuery, JobState } from '../jobs/job-store.ts'
import { createTextClock } from '../log/line.ts'
import type { AdminPort } from './admin-port.ts'
import { readObject, refuse } from './json-body.ts'
import { asksForJson, panelPage, type PagePort } from './page.ts'

/** The part of the panel's port that the jobs use. */
type JobsPort = PagePort & Pick<AdminPort, 'audit'>

/** As in `job-store.ts`, whose room may be missing. */
const states: readonly JobState[] = ['waiting', 'running', 'dead']
/** The most jobs on one page. */
const pageSize = 200

/** Makes the handlers, by the names of their rows in `table.ts`. */
export function createJobEndpoints(port: JobsPort) {
  /** Changes the job with the id, or all dead jobs of the name, in the body. */
  const changing = (change: (jobs: Jobs, id: string) => Promise<boolean>, what: string, needs: string) =>
    async (ctx: CoreContext): Promise<Reply> => {
      const body = await readObject(ctx)
      if ('refusal' in body) return body.refusal
      const { id, name } = body.value
      const jobs = port.jobs()
      if (id === undefined && typeof name === 'string') {
        const changeDead = async (all: Jobs): Promise<readonly boolean[]> => {
          const dead = await all.list({ name, state: 'dead', offset: 0, count: -1 })
          return Promise.all(dead.map((job) => change(all, job.id)))
        }
        const count = jobs === undefined ? 0 : (await changeDead(jobs)).filter(Boolean).length
        if (count === 0) return refuse(ctx, 404, `There is no dead job ${JSON.stringify(name)}`, { name })
        port.audit(ctx, `dead jobs "${name}" ${what}`, { detail: String(count), to: count })
        return ctx.json({ ok: true, name, count })
      }
      if (typeof id !== 'string') return refuse(ctx, 400, 'id is missing: give an id, or the name of dead jobs')
      if (jobs === undefined || !(await change(jobs, id))) {
        return refuse(ctx, 404, `There is no job ${JSON.stringify(id)} that ${needs}`, { id })
      }
      port.audit(ctx, `job ${id} ${what}`)
      return ctx.json({ ok: true, id })
    }
  const retry = changing((jobs, id) => jobs.retry(id), 'retried', 'is dead or waits')

  return {
    /** The names, and a page of the jobs that the query selects by `name` and `state`. */
    async 'svc.jobs'(ctx: CoreContext): Promise<Reply> {
      const { page, ...query } = queryOf(ctx)
      const jobs = port.jobs()
      const [names, found] = jobs === undefined ? [[], []] : await Promise.all([jobs.names(), jobs.list(query)])
      const listed = found.slice(0, pageSize)
      if (asksForJson(ctx)) return ctx.json({ names, jobs: listed })
      const clock = createTextClock()
      const pageAt = (to: number): string => addressOf(query, to)
      return panelPage(ctx, port, 'jobs.html', {
        title: 'Jobs',
        names,
        jobs: listed.map((job) => ({ ...job, summary: job.error.split('\n', 1).join() })),
        states,
        ...query,
        previous: page > 1 ? pageAt(page - 1) : '',
        next: found.length > pageSize ? pageAt(page + 1) : '',
        time: (ms: number) => clock(ms).slice(0, 19),
        addressOf: (change: Partial<JobQuery>) => addressOf({ ...query, ...change }, 1),
      })
    },

    /** Makes a dead job wait again with all its tries, and a waiting one due. */
    'svc.jobs.retry': retry,

    /** Removes a job that does not run. */
    'svc.jobs.discard': changing((jobs, id) => jobs.discard(id), 'discarded', 'is dead or waits'),

    /** Makes the job of the body's `id` due, or adds one of its `name`, without data. */
    async 'svc.jobs.run'(ctx: CoreContext): Promise<Reply> {
      const body = await readObject(ctx)
      if ('refusal' in body) return body.refusal
      const { id, name } = body.value
      if (id !== undefined) return retry(ctx)
      if (typeof name !== 'string') return refuse(ctx, 400, 'name is missing: name a job, or give the id of one')
      const jobs = port.jobs()
      if (jobs?.has(name) !== true) return refuse(ctx, 404, `No job file has a job ${JSON.stringify(name)}`, { name })
      const added = await jobs.enqueue(name)
      port.audit(ctx, `job "${name}" run`, { detail: `job ${added}`, to: added })
      return ctx.json({ ok: true, id: added, name })
    },
  }
}

function queryOf({ query }: CoreContext): JobQuery & { readonly page: number } {
  const page = Math.max(1, Math.trunc(Number(query.get('page') ?? 1)) || 1)
  const state = states.find((each) => each === query.get('state')) ?? null
  // One more shows whether there is another page.
  return { page, name: query.get('name') || null, state, offset: (page - 1) * pageSize, count: pageSize + 1 }
}

function addressOf({ name, state }: Pick<JobQuery, 'name' | 'state'>, page: number): string {
  const query = new URLSearchParams({
    ...(name !== null && { name }),
    ...(state !== null && { state }),
    ...(page > 1 && { page: String(page) }),
  }).toString()
  return query === '' ? '/svc-jobs' : `/svc-jobs?${query}`
}
