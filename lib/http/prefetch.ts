/**
 * Whether a request is a prefetch: the browser asks ahead, and perhaps nobody will ever see the answer.
 *
 * Surprise: a prerendered page counts too, although it may be shown later without another request.
 */
import type { CoreContext } from './context.ts'

/** Whether `Sec-Purpose` (Fetch standard, section 3.2.8) or the `Purpose` of older browsers says prefetch. */
export function isPrefetch(ctx: Pick<CoreContext, 'header'>): boolean {
  return /\bprefetch\b/i.test(`${ctx.header('sec-purpose') ?? ''} ${ctx.header('purpose') ?? ''}`)
}
