/**
 * The command `reload`: has the running server reload, as SIGHUP does, waits for the end, and says what was refused. A
 * service manager that runs it reports a refused reload as failed.
 */
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { reasonOf } from '../base/reason.ts'
import type { LoadedConfig } from '../config/load.ts'
import { exitStatus, isFileError, textOfFileError } from '../process/process.ts'
import { monotonicMs, RunMark } from '../process/run-mark.ts'

/** Shorter than `TimeoutStartSec` of the unit, which limits a reload too. */
const limitMs = 50_000
const pauseMs = 50

/**
 * Runs the command.
 * @param load reads the configuration; rejects with ConfigError
 * @returns the exit status: 0; 1 when the reload was refused, or no server answers; 78 when the configuration is wrong
 */
export async function reload(load: () => Promise<LoadedConfig>): Promise<number> {
  try {
    const { folder, config } = await load()
    const problem = await reloadServer(new RunMark(resolve(folder, config['paths.cache'])))
    if (problem === undefined) process.stdout.write('reloaded\n')
    else process.stderr.write(`${problem}\n`)
    return problem === undefined ? exitStatus.ok : exitStatus.failed
  } catch (error) {
    if (!isFileError(error)) throw error
    process.stderr.write(textOfFileError(error))
    return exitStatus.config
  }
}

/** @returns why the server has not reloaded; undefined when it has */
async function reloadServer(mark: RunMark): Promise<string | undefined> {
  const pid = mark.running()
  if (pid === undefined) return `no server is running: ${mark.file} names none on this machine`
  mark.dropReport()
  const sentAtMs = monotonicMs()
  try {
    process.kill(pid, 'SIGHUP')
  } catch (error) {
    return `process ${pid} cannot be signalled: ${reasonOf(error)}`
  }
  while (monotonicMs() < sentAtMs + limitMs) {
    const problems = mark.reportSince(sentAtMs, pid)
    if (problems?.length === 0) return undefined
    if (problems !== undefined) return `the reload was refused, and the old state stays in use:\n${problems.join('\n')}`
    if (mark.running() !== pid) return `process ${pid} ended before it had reloaded`
    await delay(pauseMs)
  }
  return `process ${pid} has not reloaded within ${limitMs / 1000} seconds: see its log`
}
