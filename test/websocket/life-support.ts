// What the tests of the life of WebSockets need: gates, and what the log and the status say of them.
import { request } from '../support/request.ts'

/** A stop that takes so long was held up: a third of the time that it may take. */
export const heldUpMs = 10_000

/** The lines of a module, without their times. */
export const linesOf = (module: string, lines: readonly string[]): string[] =>
  lines.filter((line) => line.includes(`[${module}]`)).map((line) => line.slice(line.indexOf('] [') + 2))

/** A promise that a test settles when it likes. */
export function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { open, opened }
}

/** The WebSockets that are open by the status of a server in `dev`. */
export async function activeOn(url: string): Promise<number> {
  const { pool_ws } = (await request(`${url}/svc-status`)).json() as { pool_ws: { active: number } }
  return pool_ws.active
}
