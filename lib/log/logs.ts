/**
 * The logs of one server: the general log, the access log if enabled, the audit log, and the last lines and the errors
 * for the panel.
 *
 * The general log always closes last: the others report to it, for example about a full disk.
 */
import { Recent } from '../base/recent.ts'
import { version } from '../base/version.ts'
import type { AuditKeys } from '../config/app-key.ts'
import type { Config } from '../config/table.ts'
import { AccessLog } from './access-log.ts'
import { AuditLog, readAudit, type AuditRecord } from './audit-log.ts'
import { ErrorGroups } from './error-groups.ts'
import type { LogReports, LogTarget } from './log-file.ts'
import { Logger, type ModuleLogger } from './logger.ts'
import { keptLines, logLine, type LogLine } from './recent-lines.ts'
import { originOf, type LogRecord } from './record.ts'

/** The open logs. */
export type Logs = ReturnType<typeof openLogs>

const notLasting = 'the audit log begins a new chain at each start, which nobody can check after the stop: set app_key'

/** A worker of several processes. */
interface LogsOfWorker {
  /** The destinations of its lines, instead of files and console. */
  readonly targets: { readonly general: LogTarget; readonly access: LogTarget; readonly audit: LogTarget }
  /** The number of the process. */
  readonly number: number
}

/**
 * Opens the logs.
 * @param folder `paths.log`, absolute
 * @param writer the keys of the audit log, for the process that writes the files; for others where their lines go
 */
export function openLogs(config: Config, folder: string, writer: AuditKeys | LogsOfWorker) {
  const { targets, number, keys } = 'targets' in writer
    ? { ...writer, keys: undefined }
    : { targets: undefined, number: undefined, keys: writer }
  const origin = originOf(config, number)
  const recent = new Recent<LogLine>(keptLines)
  const errors = new ErrorGroups()
  const onRecord = (record: LogRecord): void => {
    recent.add(logLine(record))
    if (record.level === 'error' || record.level === 'fatal') errors.add(record)
  }
  const general = new Logger(config, folder, { onRecord, origin, target: targets?.general })
  const report: LogReports['report'] = (level, message) => general.module('logger')[level](message)
  const isEnabled = config['access_log.enabled']
  const access = isEnabled ? new AccessLog(config, folder, { report, target: targets?.access }) : undefined
  const audit = new AuditLog(folder, { report, origin, target: targets?.audit, keys })
  const all = [access, audit, general]
  let isStarted = false
  return {
    general,
    /** Undefined when `access_log.enabled` is false. */
    access,
    audit,
    /**
     * Records that the server has started, or that one which was recorded ends. Logs the head of the audit log, so
     * that a journal has it that this server cannot change.
     */
    recordServer: (what: 'start' | 'stop'): void => {
      if (what === 'stop' && !isStarted) return
      isStarted = what === 'start'
      if (what === 'stop') audit.writeFailures()
      audit.record({ by: 'server', what, ...(what === 'start' && { to: { version, pid: process.pid } }) })
      audit.flush()
      const { seq, mac } = audit.head
      const log = general.module('server')
      if (seq > 0) log.info(`audit log: record ${seq}, head ${mac}`)
      if (what === 'start' && keys?.isLasting === false) log.warn(notLasting)
    },
    /** The last changes of this machine, newest first. */
    changes: (most: number): Promise<readonly AuditRecord[]> => {
      audit.flush()
      return readAudit(folder, most)
    },
    /** The last lines of the general log. */
    recent,
    /** The errors of the general log by cause. */
    errors,
    /** Adds a record that another thread has written to the file: to the last lines and the errors. */
    note: onRecord,
    /** The general log's logger of a module. */
    module: (name: string): ModuleLogger => general.module(name),
    /** Why the logs cannot be written now; empty when they can. */
    problems: (): readonly string[] => {
      const ofAll = [access?.problem, audit.problem, general.problem, general.consoleProblem]
      return ofAll.filter((problem) => problem !== undefined)
    },
    flush: () => all.forEach((log) => log?.flush()),
    reopen: () => all.forEach((log) => log?.reopen()),
    close: () => all.forEach((log) => log?.close()),
  }
}
