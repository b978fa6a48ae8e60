/**
 * Lines for the journal of systemd, which takes each line of a stream as an entry with its own time. A number in angle
 * brackets at the beginning of a line is its priority (sd-daemon(3)), which the journal takes off.
 */
import { fstatSync } from 'node:fs'

/** The priorities of syslog(3): error, warning, informational, debug. */
const priorities: Readonly<Record<string, string>> = {
  fatal: '<3>', error: '<3>', warn: '<4>', info: '<6>', debug: '<7>',
}
/** The beginning of a line in the two forms of `record.ts`, with its time, up to the level. */
const textHead = /^\[[^\]]*\] (?=\[(\w+))/
const jsonHead = /^(?=\{"time":"[^"]*","level":"(\w+)")/

/**
 * Returns whether a file descriptor is a stream of the journal: its device and inode are those of `JOURNAL_STREAM`
 * (systemd.exec(5)). A child that inherited the variable may have another stream.
 */
export function isJournal(fd: number, env: NodeJS.ProcessEnv = process.env): boolean {
  const { JOURNAL_STREAM: stream } = env
  if (stream === undefined) return false
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true })
    return stream === `${dev}:${ino}`
  } catch {
    return false // It is closed.
  }
}

/**
 * Makes a function that prepares lines of the general log: each gets its priority, and a text line loses its time. The
 * lines of a stack get the priority of the line above.
 */
export function createJournalForm(): (lines: string) => string {
  let priority = '<6>'
  return (lines) => lines.replace(/^.+$/gm, (line) => {
    const head = textHead.exec(line) ?? jsonHead.exec(line)
    priority = priorities[head?.[1]?.toLowerCase() ?? ''] ?? priority
    return priority + line.slice(head?.[0].length ?? 0)
  })
}
