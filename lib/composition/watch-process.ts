/**
 * Watches the event loop of a process of the server, where `server.hang_trace_s` asks for it.
 */
import { resolve } from 'node:path'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/table.ts'
import { loadRoom } from '../config/load-room.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { originOf, type LogRecord } from '../log/record.ts'
import { lastStateFile } from '../process/last-state.ts'
import type { RunningRequests } from '../process/running-requests.ts'

interface WatchedProcess {
  readonly loaded: Pick<LoadedConfig, 'folder'>
  readonly log: ModuleLogger
  readonly running: RunningRequests
  /** Called with a record that another thread has written to the log. */
  readonly onRecord: (record: LogRecord) => void
  /** Its name in the log; undefined for a single process. */
  readonly name?: string
  /** Set in one of several processes: its number, and the pipe that takes its log lines. */
  readonly worker?: { readonly number: number; readonly logFd: number }
}

/** Ends the watch: the process stops cleanly. */
type EndWatch = () => Promise<void>

/**
 * Loads what the watch needs.
 * @returns starts it; call that before the rights of the start are given up. Undefined: the configuration wants none
 * @throws MissingRoomError
 */
export async function loadWatch(config: Config): Promise<((watched: WatchedProcess) => EndWatch) | undefined> {
  const afterS = config['server.hang_trace_s']
  if (afterS === 0 || afterS === 'auto') return undefined
  const { watchHangs } = await loadRoom('server.hang_trace_s', () => import('../diagnose/hang-watch.ts'))
  return ({ loaded: { folder }, name, worker, running, ...rest }) => {
    const isPrimary = name !== undefined && worker === undefined
    const cacheFolder = resolve(folder, config['paths.cache'])
    const logFolder = resolve(folder, config['paths.log'])
    return watchHangs({
      ...rest,
      config,
      afterS,
      who: name === undefined ? '' : ` of ${name}`,
      origin: originOf(config, worker?.number),
      logFolder,
      pipe: worker && { fd: worker.logFd, path: resolve(logFolder, config['log.file']) },
      stateFile: isPrimary ? undefined : lastStateFile(cacheFolder, worker?.number), // The primary serves no request.
      running: running.memory,
    })
  }
}
