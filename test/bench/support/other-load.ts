/**
 * What else the machine does while something is measured on it, as Linux tells it.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** Figures measured beside a process that takes more of a core than this are not written into a page. */
const quietPercent = 5

/** A process, and how much of a core it took. */
interface BusyProcess {
  readonly name: string
  readonly percent: number
}

interface Seen {
  readonly name: string
  readonly parent: number
  readonly ticks: number
}

/** Clock ticks a second: what Linux reports processor time in. */
const ticksPerSecond = 100
const watchMs = 2000

/** The busiest process within two seconds, but for this one and those that it started. */
async function busiestOther(): Promise<BusyProcess> {
  const before = readProcesses()
  const from = performance.now()
  await delay(watchMs)
  const seconds = (performance.now() - from) / 1000
  let busiest: BusyProcess = { name: 'none', percent: 0 }
  for (const [pid, { name, ticks }] of readProcesses()) {
    if (isOwn(pid, before)) continue
    const percent = ((ticks - (before.get(pid)?.ticks ?? 0)) * 100) / ticksPerSecond / seconds
    if (percent > busiest.percent) busiest = { name, percent }
  }
  return busiest
}

/**
 * Resolves to the percentage of a core that the busiest other process takes.
 * @throws Error when the machine is not quiet
 */
export async function requireQuiet(): Promise<number> {
  const { name, percent } = await busiestOther()
  if (percent <= quietPercent) return percent
  throw new Error(`Cannot write figures: ${name} takes ${percent.toFixed()} % of a core. End it, and measure again`)
}

function readProcesses(): Map<number, Seen> {
  const found = new Map<number, Seen>()
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = readStat(entry)
    // The name, in brackets, may have blanks; parent, user and system time are fields 4, 14 and 15.
    const [, name, rest] = /^\d+ \((.*)\) (.*)$/s.exec(stat) ?? []
    const fields = rest?.split(' ') ?? []
    if (name === undefined) continue
    found.set(Number(entry), { name, parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) })
  }
  return found
}

/** '' for a process that has ended meanwhile. */
function readStat(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return ''
  }
}

function isOwn(pid: number, processes: ReadonlyMap<number, Seen>): boolean {
  for (let at: number | undefined = pid; at !== undefined && at > 1; at = processes.get(at)?.parent) {
    if (at === process.pid) return true
  }
  return false
}
