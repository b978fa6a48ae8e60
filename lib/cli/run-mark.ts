/**
 * A file in `paths.cache` while the server serves. The next start finds it when this run did not end as it should:
 * after a kill or a loss of power, which leave no line in the log themselves, or a crash.
 *
 * Surprise: the process id in it may be that of another process by now, after a boot or in a container, where ids begin
 * anew. One that is this process, or was started before the boot, is gone.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import { dirname, join } from 'node:path'
import { isObject } from '../base/object.ts'

/** The run that a file is about. */
interface Run {
  readonly pid: number
  readonly host: string
  /** Milliseconds since 1970. */
  readonly startedAtMs: number
}

/** How exact the time of the boot is, in milliseconds. */
const bootToleranceMs = 5000

/** The mark of a server. A folder that cannot be written is no problem of its own: there is no mark then. */
export class RunMark {
  readonly #file: string
  #isMarked = false

  /** @param folder `paths.cache`, absolute */
  constructor(folder: string) {
    this.#file = join(folder, 'running')
  }

  /**
   * Takes the mark of the last run away.
   * @returns a line for the log when that run did not end as it should
   */
  takeLast(): string | undefined {
    const last = this.#read()
    if (last === undefined || last.host !== hostname() || isRunning(last)) return undefined
    rmSync(this.#file, { force: true })
    const since = new Date(last.startedAtMs).toISOString()
    return `the last run, process ${last.pid} since ${since}, did not end well: it crashed or was killed, or the `
      + 'machine went down; FATAL lines before this one, and the journal, may say why'
  }

  /** Marks this run, unless another server has marked its own. */
  begin(): void {
    if (this.#read() !== undefined) return
    const run: Run = { pid: process.pid, host: hostname(), startedAtMs: Date.now() }
    this.#isMarked = attempt(() => {
      mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 })
      writeFileSync(this.#file, `${JSON.stringify(run)}\n`, { mode: 0o600 })
    })
  }

  /** Takes the mark away: this run ends as it should. */
  end(): void {
    if (this.#isMarked) attempt(() => rmSync(this.#file, { force: true }))
  }

  /** Undefined when there is none, or one that cannot be read. */
  #read(): Run | undefined {
    let run: unknown
    attempt(() => (run = JSON.parse(readFileSync(this.#file, 'utf8'))))
    if (!isObject(run)) return undefined
    const { pid, host, startedAtMs } = run
    if (typeof pid !== 'number' || typeof host !== 'string' || typeof startedAtMs !== 'number') return undefined
    return Number.isInteger(pid) && pid > 0 && Math.abs(startedAtMs) < 8.64e15 ? { pid, host, startedAtMs } : undefined
  }
}

function isRunning({ pid, startedAtMs }: Run): boolean {
  const bootedAtMs = Date.now() - uptime() * 1000
  if (pid === process.pid || startedAtMs < bootedAtMs - bootToleranceMs) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // It runs, for another user.
  }
}

/** Whether it was done. */
function attempt(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
