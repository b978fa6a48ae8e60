/**
 * A file in `paths.cache` that exists while the server serves. The next start finds it if this run did not stop
 * cleanly: after a kill or a power failure, which leave no line in the log, or a crash. A second file has the outcome
 * of the last SIGHUP, for the command `reload`.
 *
 * Surprise: its process id may belong to another process after a boot or in a container, where ids restart. A run with
 * the id of this process, or started before the boot, has ended.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import { dirname, join } from 'node:path'
import { attempt, readJson } from './optional-file.ts'
import { replaceFileSync } from '../files/replace-file.ts'
import { lastStateFile, readLastState } from './last-state.ts'

/** The run recorded in the file. */
interface Run {
  readonly pid: number
  readonly host: string
  /** Milliseconds since 1970. */
  readonly startedAtMs: number
}

/** The tolerance of the boot time, in milliseconds. */
const bootToleranceMs = 5000

/** The mark of a server. If the folder cannot be written, there is no mark, and no error. */
export class RunMark {
  /** Its path. */
  readonly file: string
  readonly #report: string
  #isMarked = false

  /** @param folder `paths.cache`, absolute */
  constructor(folder: string) {
    this.file = join(folder, 'running')
    this.#report = join(folder, 'reloaded')
  }

  /**
   * Removes the mark of the last run.
   * @returns a line for the log if that run did not stop cleanly
   */
  takeLast(): string | undefined {
    const last = this.#read()
    if (last === undefined || last.host !== hostname() || isRunning(last)) return undefined
    rmSync(this.file, { force: true })
    const since = new Date(last.startedAtMs).toISOString()
    const state = readLastState(lastStateFile(dirname(this.file)), last.pid)
    return `the last run, process ${last.pid} since ${since}, did not stop cleanly: it crashed or was killed, or the `
      + 'machine went down; earlier FATAL lines, and the journal, may show why'
      + (state === undefined ? '' : `. Last seen: ${state}`)
  }

  /** Marks this run, unless another server has a mark. */
  begin(): void {
    if (this.#read() !== undefined) return
    const run: Run = { pid: process.pid, host: hostname(), startedAtMs: Date.now() }
    this.#isMarked = attempt(() => {
      mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 })
      writeFileSync(this.file, `${JSON.stringify(run)}\n`, { mode: 0o600 })
    })
  }

  /** Removes the mark: this run stops cleanly. */
  end(): void {
    if (this.#isMarked) attempt(() => rmSync(this.file, { force: true }))
  }

  /** Returns the process id of the server that serves on this machine; undefined if there is none. */
  running(): number | undefined {
    const run = this.#read()
    return run !== undefined && run.host === hostname() && isRunning(run) ? run.pid : undefined
  }

  /**
   * Records the outcome of a reload of this process.
   * @param begunAtMs by `monotonicMs`
   * @param problems why parts of it were refused
   */
  reportReload(begunAtMs: number, problems: readonly string[]): void {
    const report = JSON.stringify({ pid: process.pid, begunAtMs, problems })
    attempt(() => replaceFileSync(this.#report, (file) => writeFileSync(file, report, { mode: 0o600 })))
  }

  /** Removes the outcome of an earlier reload. Throws if it cannot. */
  dropReport(): void {
    rmSync(this.#report, { force: true })
  }

  /** Returns the problems of a reload that a process has begun since a time; undefined until it has ended. */
  reportSince(sinceMs: number, pid: number): readonly string[] | undefined {
    const report = readJson(this.#report)
    if (report?.['pid'] !== pid || !(Number(report['begunAtMs']) >= sinceMs)) return undefined
    const { problems } = report
    return Array.isArray(problems) ? problems.map(String) : undefined
  }

  /** @returns undefined when there is no mark, or an unreadable one */
  #read(): Run | undefined {
    const run = readJson(this.file)
    if (run === undefined) return undefined
    const { pid, host, startedAtMs } = run
    if (typeof pid !== 'number' || typeof host !== 'string' || typeof startedAtMs !== 'number') return undefined
    return Number.isInteger(pid) && pid > 0 && Math.abs(startedAtMs) < 8.64e15 ? { pid, host, startedAtMs } : undefined
  }
}

/** Returns a time in milliseconds that does not jump, and is the same in all processes of a machine. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function isRunning({ pid, startedAtMs }: Run): boolean {
  const bootedAtMs = Date.now() - uptime() * 1000
  if (pid === process.pid || startedAtMs < bootedAtMs - bootToleranceMs) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // It runs as another user.
  }
}
