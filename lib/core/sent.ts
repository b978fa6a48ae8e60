/**
 * What has become of an answer that was written: the versions of Node tell it at different times.
 */
import type { ServerResponse } from 'node:http'
import type { CoreContext } from '../http/context.ts'

/**
 * Whether the operating system has all of an answer, so that nobody need wait to be told. `writableFinished` says so at
 * once on Node 20 and 22 alone. A socket that is gone has taken nothing.
 */
export function isSent(response: ServerResponse): boolean {
  return response.writableEnded && response.writableLength === 0 && response.socket?.destroyed !== true
}

/** Whether the connection was lost before the answer had left it. Node 20 calls the answer finished then. */
export function isLost({ request, response }: CoreContext): boolean {
  return request.socket.errored !== null || response.socket?.destroyed === true
}

/** Whether an answer that had begun was lost with its connection. */
export function wasCut(ctx: CoreContext): boolean {
  return isLost(ctx) && ctx.response.headersSent && ctx.upgrading === undefined
}
