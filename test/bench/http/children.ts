/**
 * The processes that a benchmark starts: servers and loads. None outlives it, however it ends.
 */
import type { ChildProcess } from 'node:child_process'

const running = new Set<ChildProcess>()

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Kills a child when this process exits before it. */
export function endWithThis(child: ChildProcess): void {
  running.add(child)
  child.once('exit', () => running.delete(child))
}
