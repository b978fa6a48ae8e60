/**
 * The thread that watches the main thread of this process. When the event loop is blocked, it logs the running requests
 * and the stack of the JavaScript. It also keeps the last state of the process in a file.
 *
 * Modules for a report are loaded with the first report, so that an idle thread uses little memory.
 *
 * Surprise: time is counted in ticks, not read from a clock. The time of a suspended process or a sleeping machine
 * counts as one tick.
 */
import { writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { LogTarget } from '../log/log-file.ts'
import type { Logger } from '../log/logger.ts'
import type { LogRecord } from '../log/record.ts'
import { LastState, stateOf, textOfState } from '../process/last-state.ts'
import { RunningRequests } from '../process/running-requests.ts'
import { beatMs, type HangThreadData } from './hang-watch.ts'

const data = workerData as HangThreadData // From hang-watch.ts.
const running = new RunningRequests(data.running)
const lastState = data.stateFile === undefined ? undefined : new LastState(data.stateFile)
let lastBeat = -1
let missed = 0

/** Opens the log of the process. It has what the main thread wrote; what that one has buffered comes later. */
async function openLog(): Promise<Logger> {
  const [{ Logger }, { createJournalForm, isJournal }] = await Promise.all([
    import('../log/logger.ts'),
    import('../log/journal.ts'),
  ])
  const { config, logFolder, pipe, origin } = data
  const form = isJournal(1) ? createJournalForm() : undefined
  const parts = { origin, consolePort: { out: print, error: print, waitingBytes: 0, form } }
  if (pipe !== undefined) return new Logger(config, logFolder, { ...parts, target: targetOf(pipe) })
  // Only the main thread rotates the file.
  return new Logger({ ...config, 'log.max_size_mb': Number.MAX_SAFE_INTEGER }, logFolder, parts)
}

/** Prints without `process.stdout`, which needs the main thread. Lines that a full console refuses are in the file. */
function print(text: string): void {
  try {
    writeSync(1, text)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
  }
}

function targetOf({ fd, path }: { readonly fd: number; readonly path: string }): LogTarget {
  const nothing = (): void => {}
  return {
    path,
    room: Number.POSITIVE_INFINITY,
    open: nothing,
    reopen: nothing,
    write: (bytes, offset) => writeSync(fd, bytes, offset),
    isAtPath: () => true,
    batchWritten: nothing,
    close: nothing,
  }
}

async function report(): Promise<void> {
  const { stackOfMainThread } = await import('./blocked-stack.ts')
  const { who, afterS } = data
  const state = textOfState(stateOf(running))
  const blocked = `the event loop${who} has been blocked for ${afterS} s`
  const { where, thrown }: { where: string; thrown?: Error } = await stackOfMainThread().then(
    (stack) => (stack === undefined ? { where: ' in native code' } : { where: '', thrown: errorOf(blocked, stack) }),
    (error: Error) => ({ where: ` (no stack: ${error.message})` }), // Node throws Errors.
  )
  const timeMs = Date.now()
  const text = `${blocked}${where}; ${state}`
  const logger = await openLog()
  logger.module('server').error(text, { thrown })
  logger.close()
  // The panel groups errors by the first line, which must not differ by request, and shows the stack of the last one.
  const stack = thrown?.stack?.replace('\n', () => `\n    ${state}\n`) ?? ''
  parentPort?.postMessage({ timeMs, level: 'error', module: 'server', message: text, stack } satisfies LogRecord)
}

function errorOf(message: string, stack: readonly string[]): Error {
  const error = new Error(message)
  error.name = 'Blocked'
  error.stack = [`    ${error.name}: ${error.message}`, ...stack].join('\n')
  return error
}

function tick(): void {
  const beat = Atomics.load(data.beats, 0)
  const isDebugged = Atomics.load(data.beats, 1) === 1
  missed = beat === lastBeat && !isDebugged ? missed + 1 : 0
  lastBeat = beat
  lastState?.write(stateOf(running))
  if (missed === Math.ceil((data.afterS * 1000) / beatMs)) void report()
}

setInterval(tick, beatMs)
