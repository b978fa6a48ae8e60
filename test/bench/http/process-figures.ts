/**
 * What Linux tells of a process: its time on the processor and its memory.
 */
import { readFileSync } from 'node:fs'

/** Clock ticks a second: what Linux reports processor time in, on every architecture that Node has a build for. */
const ticksPerSecond = 100

/** The processor time that a process has taken, all threads, user and system, in milliseconds in steps of 10. */
export function cpuMs(pid: number): number {
  // The name in the second field may have blanks; user and system time are fields 14 and 15.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond
}

/** The resident memory of a process in MiB. */
export function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
