// Helpers for the lifecycle tests of WebSockets: gates, log lines and the status.
import { request } from '../support/request.ts'

/** A stop that takes this long was blocked: a third of its time-out. */
export const heldUpMs = 10_000

/** The lines of a module, without their times. */
export const linesOf = (module: string, lines: readonly string[]): string[] =>
  lines.filter((line) => line.includes(`[${module}]`)).map((line) => line.slice(line.indexOf('] [') + 2))

/** A promise that the test settles. */
export function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { open, opened }
}

/** The open WebSockets in the status of a server in `dev`. */
export async function activeOn(url: string): Promise<number> {
  const { pool_ws } = (await request(`${url}/svc-status`)).json() as { pool_ws: { active: number } }
  return pool_ws.active
}
