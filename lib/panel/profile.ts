/**
 * Profiles of the process that gets the request: a page, and with `seconds` or `kind` a file for DevTools.
 */
import type { CoreContext } from '../http/context.ts'
import { BodyReply, jsonType, type Reply } from '../http/reply.ts'
import type { AdminPort } from './admin-port.ts'
import { readObject, refuse } from './json-body.ts'
import { ofRoom, panelPage, type PagePort } from './page.ts'

/** The part of the panel's port that the profiles use. */
type ProfilePort = PagePort & Pick<AdminPort, 'audit' | 'process' | 'profiler' | 'stopping'>

const defaultSeconds = 10
const maxSeconds = 60

/** Makes the handlers, by the names of their rows in `table.ts`. */
export function createProfiles(port: ProfilePort) {
  const { number } = port.process

  async function take(ctx: CoreContext, members: Readonly<Record<string, unknown>>): Promise<Reply> {
    const { kind = 'cpu', seconds = defaultSeconds } = members
    if (kind !== 'cpu' && kind !== 'heap') {
      return refuse(ctx, 400, `kind must be cpu or heap: it is ${JSON.stringify(kind)}`)
    }
    if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 1 || seconds > maxSeconds) {
      const rule = `seconds must be a whole number from 1 to ${maxSeconds}`
      return refuse(ctx, 400, `${rule}: it is ${JSON.stringify(seconds)}`)
    }
    const { signal } = ctx
    const profiler = await ofRoom(port.profiler())
    if (profiler.problem !== undefined) return refuse(ctx, 501, profiler.problem)
    if (profiler.endsAt !== undefined) {
      const left = Math.max(1, Math.ceil((profiler.endsAt - Date.now()) / 1000))
      ctx.setHeader('Retry-After', String(left))
      return refuse(ctx, 409, `Process ${number} is already taking a profile: try again in ${left} s`)
    }
    const taken = profiler.take(kind, seconds, signal, port.stopping)
    const time = new Date()
    port.audit(ctx, `${kind} profile started`, { detail: `${seconds} s of process ${number}`, to: `${seconds} s` })
    const profile = await taken
    const name = `${kind}-process-${number}-${time.toISOString().replace(/[-:]|\.\d+/g, '')}.${kind}profile`
    ctx.setHeader('Content-Disposition', `attachment; filename="${name}"`)
    return new BodyReply(jsonType, profile)
  }

  return {
    /** With `seconds` or `kind`, takes a profile; else the page. The guard takes any query for a change. */
    async 'svc.profile'(ctx: CoreContext): Promise<Reply> {
      const members = membersOfQuery(ctx)
      if (Object.keys(members).length > 0) return take(ctx, members)
      const { problem } = await ofRoom(port.profiler())
      return panelPage(ctx, port, 'profile.html', {
        title: 'Profile',
        problem,
        ...port.process,
        defaultSeconds,
        maxSeconds,
      })
    },

    /** Takes `{seconds?, kind?}`; a query has the members that are not in the body. */
    async 'svc.profile.take'(ctx: CoreContext): Promise<Reply> {
      const members = membersOfQuery(ctx)
      if ((await ctx.readBytes()).length === 0) return take(ctx, members)
      const body = await readObject(ctx)
      return 'refusal' in body ? body.refusal : take(ctx, { ...members, ...body.value })
    },
  }
}

/** Returns `seconds` and `kind`, those that the query has. */
function membersOfQuery({ query }: CoreContext): Record<string, unknown> {
  const [kind, seconds] = [query.get('kind'), query.get('seconds')]
  const number = seconds !== null && /^\d{1,15}$/.test(seconds) ? Number(seconds) : seconds
  return { ...(kind !== null && { kind }), ...(seconds !== null && { seconds: number }) }
}
