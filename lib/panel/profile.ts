/**
 * Profiles of the process that gets the request: a page, and with a query the profile as a file for DevTools.
 */
import type { CoreContext } from '../http/context.ts'
import { BodyReply, jsonType, type Reply } from '../http/reply.ts'
import type { AdminPort } from './admin-port.ts'
import { refuse } from './json-body.ts'
import { ofRoom, panelPage, type PagePort } from './page.ts'

/** The part of the panel's port that the profiles use. */
type ProfilePort = PagePort & Pick<AdminPort, 'audit' | 'process' | 'profiler' | 'stopping'>

const defaultSeconds = 10
const maxSeconds = 60

/** Makes the handlers, by the names of their rows in `table.ts`. */
export function createProfiles(port: ProfilePort) {
  const { number } = port.process

  async function take(ctx: CoreContext): Promise<Reply> {
    const kind = ctx.query.get('kind') ?? 'cpu'
    const given = ctx.query.get('seconds') ?? String(defaultSeconds)
    const seconds = /^\d{1,2}$/.test(given) ? Number(given) : 0
    if (kind !== 'cpu' && kind !== 'heap') {
      return refuse(ctx, 400, `kind must be cpu or heap: it is ${JSON.stringify(kind)}`)
    }
    if (seconds < 1 || seconds > maxSeconds) {
      return refuse(ctx, 400, `seconds must be a whole number from 1 to ${maxSeconds}: it is ${JSON.stringify(given)}`)
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
    /** With a query, takes a profile; else the page. */
    async 'svc.profile'(ctx: CoreContext): Promise<Reply> {
      if (ctx.rawQuery.length > 1) return take(ctx)
      const { problem } = await ofRoom(port.profiler())
      return panelPage(ctx, port, 'profile.html', {
        title: 'Profile',
        problem,
        ...port.process,
        defaultSeconds,
        maxSeconds,
      })
    },

    /** Takes a profile. */
    'svc.profile.take': take,
  }
}
