/** Shared by the tests of the logs: a log in its own folder, and the lines in it. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseConfig } from '../../lib/config/load.ts'
import type { Config } from '../../lib/config/table.ts'
import type { ConsolePort } from '../../lib/log/console.ts'
import type { LoggedRequest } from '../../lib/base/ports.ts'
import { Logger, type LoggerParts } from '../../lib/log/logger.ts'
import type { LogRecord } from '../../lib/log/record.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A console that keeps what is printed. */
export class KeptConsole implements ConsolePort {
  readonly waitingBytes = 0
  outText = ''
  errorText = ''

  out(text: string): void {
    this.outText += text
  }

  error(text: string): void {
    this.errorText += text
  }
}

/** A clock that the test sets. */
export class HeldClock {
  ms = Date.UTC(2026, 10, 20, 11, 27, 0, 123)
  readonly now = (): number => this.ms
}

/** Changes of the settings of `logConfig`. */
export type LogChanges = Partial<Config> & { readonly trace?: Readonly<Record<string, boolean>> }

/** A configuration that logs every line, without console, plus unchecked changes. */
export function logConfig(changes: LogChanges = {}): Config {
  const { trace = {}, ...others } = changes
  const { config } = parseConfig({ log: { level: 'debug', console: false, max_files: 0 }, trace }, '/')
  return { ...config, ...others }
}

/** A log that is closed when the test ends, with its parts. */
export function openLog(
  t: { after(work: () => void): void },
  changes: LogChanges = {},
  parts: LoggerParts & { readonly folder?: string } = {},
): { logger: Logger; folder: string; clock: HeldClock; terminal: KeptConsole } {
  const folder = parts.folder ?? temporaryFolder()
  const clock = new HeldClock()
  const terminal = new KeptConsole()
  const logger = new Logger(logConfig(changes), folder, { now: clock.now, consolePort: terminal, ...parts })
  t.after(() => logger.close())
  return { logger, folder, clock, terminal }
}

/** A record of an ERROR line of the module `error`, with changes. */
export function logRecord(changes: Partial<LogRecord> = {}): LogRecord {
  return { timeMs: 1, level: 'error', module: 'error', message: 'failed', stack: '', ...changes }
}

/** A request that a line may be about. */
export function loggedRequest(changes: Partial<LoggedRequest> = {}): LoggedRequest {
  return { id: 'request-1', idToSend: undefined, method: 'GET', path: '/orders/5', routeName: 'orders', ...changes }
}

/** The text of a file of the folder. */
export function textOf(folder: string, file = 'svc.log'): string {
  return readFileSync(join(folder, file), 'utf8')
}

/** The names of the rotated files, in the order of their names. */
export function rotatedFiles(folder: string): string[] {
  return readdirSync(folder).filter((name) => /^svc_\d{14}_\d{6}\.log$/.test(name)).sort()
}

/** All lines of all files of the folder. */
export function allLines(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => textOf(folder, name).split('\n')).filter((line) => line !== '')
}
