/**
 * Watches the event loop of this process with a thread, which logs what blocks it (`server.hang_trace_s`) and keeps the
 * last state of the process in a file. See `hang-thread.ts`.
 */
import { url as debuggerUrl } from 'node:inspector'
import * as nodeModule from 'node:module'
import { dirname, extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { reasonOf } from '../base/reason.ts'
import type { Config } from '../config/table.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { LogOrigin, LogRecord } from '../log/record.ts'
import { removeLastState } from '../process/last-state.ts'

/** What the thread needs. */
export interface HangThreadData {
  readonly config: Config
  /** Seconds. */
  readonly afterS: number
  /** Follows `the event loop` in its line. */
  readonly who: string
  readonly origin: LogOrigin
  /** `paths.log`, absolute. */
  readonly logFolder: string
  /** The pipe to the process that writes the log; undefined in that process. */
  readonly pipe: { readonly fd: number; readonly path: string } | undefined
  /** Where the last state is kept; undefined: nowhere. */
  readonly stateFile: string | undefined
  /** The memory of the running requests. */
  readonly running: SharedArrayBuffer
  /** The beats of the main thread, and whether a debugger may have stopped it. */
  readonly beats: Int32Array
}

interface HangWatchOptions extends Omit<HangThreadData, 'beats'> {
  readonly log: ModuleLogger
  /** Called with a record that the thread has written to the log, once the event loop runs again. */
  readonly onRecord: (record: LogRecord) => void
}

/** Milliseconds between two beats of the main thread, and between two looks of the thread. */
export const beatMs = 200

/** A limit, not a size: a deep stack with its variables takes some 5 kB a frame. */
const oldGenerationMb = 256
const bytesOfInt32 = 4
/** Milliseconds after which a thread that failed is started again. */
const restartMs = 10_000

/**
 * Starts the thread, which does not keep the process alive. Logs why it cannot run; the server works without it.
 * @returns ends it, and removes the file of the last state: the process stops cleanly
 */
export function watchHangs({ log, onRecord, ...options }: HangWatchOptions): () => Promise<void> {
  const beats = new Int32Array(new SharedArrayBuffer(2 * bytesOfInt32))
  const data: HangThreadData = { ...options, beats }
  const start = (): Worker => {
    const thread = new Worker(new URL(`./hang-thread${extname(import.meta.url)}`, import.meta.url), {
      workerData: data,
      env: environment(),
      resourceLimits: { maxOldGenerationSizeMb: oldGenerationMb, maxYoungGenerationSizeMb: 1 },
    })
    thread.unref()
    thread.on('message', onRecord)
    thread.on('error', (thrown) => {
      log.error('the thread that watches the event loop has failed: starting another', { thrown })
      restart = setTimeout(() => (running = attempt()), restartMs).unref()
    })
    return thread
  }
  const attempt = (): Worker | undefined => {
    try {
      return start()
    } catch (error) {
      log.warn(`server.hang_trace_s has no effect: ${reasonOf(error)}`)
      return undefined
    }
  }
  let restart: NodeJS.Timeout | undefined
  let running = attempt()
  const beat = (): void => {
    Atomics.add(beats, 0, 1)
    Atomics.store(beats, 1, debuggerUrl() === undefined ? 0 : 1)
  }
  const timer = setInterval(beat, beatMs).unref()
  return async () => {
    clearInterval(timer)
    clearTimeout(restart)
    await running?.terminate()
    if (options.stateFile !== undefined) removeLastState(options.stateFile)
  }
}

/** A thread uses the compile cache only if told; without it, it would need 12 MB more to read TypeScript. */
function environment(): NodeJS.ProcessEnv {
  const { getCompileCacheDir } = nodeModule as { getCompileCacheDir?: () => string | undefined } // Since Node 22.1.
  const cache = getCompileCacheDir?.() // A folder for this version, within that of the cache.
  return cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: dirname(cache) }
}
