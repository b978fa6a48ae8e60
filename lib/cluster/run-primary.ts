/**
 * The process of the primary: its logs, signals and exit status.
 */
import { resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { loadRooms } from '../composition/rooms.ts'
import { startLine } from '../base/version.ts'
import { auditKeysOf, chooseAppKey } from '../config/app-key.ts'
import { Primary } from './primary.ts'
import { prepareWorkers } from './worker-process.ts'
import type { LoadedConfig } from '../config/load.ts'
import { openLogs } from '../log/logs.ts'
import type { PassedToProcess } from '../systemd/service.ts'
import { exitStatus, handleSignals, handleUncaught } from '../process/process.ts'
import { dropPermissions } from '../process/permission.ts'
import type { RunMark } from '../process/run-mark.ts'
import { RunningRequests } from '../process/running-requests.ts'
import { loadWatch } from '../composition/watch-process.ts'
import { codeDigest } from '../proof/code-digest.ts'

/**
 * Runs the primary. Resolves with the exit status when all processes have ended.
 * @param configFile where setup saves the admin's credentials
 * @param count the number of workers, from 2
 * @param mark set while all workers serve
 */
export async function runPrimary(
  loaded: LoadedConfig,
  configFile: string,
  count: number,
  { sharedPassword, listenFd, notifier, notes }: PassedToProcess,
  mark: RunMark,
): Promise<number> {
  const { config } = loaded
  const appKey = chooseAppKey(config)
  const logs = openLogs(config, resolve(loaded.folder, config['paths.log']), auditKeysOf(config, appKey))
  const log = logs.module('server')
  const running = new RunningRequests() // It serves none.
  let isEnding = false
  handleUncaught({ log: logs.module, config, closeLogs: () => logs.close() }, { running, isEnding: () => isEnding })
  const code = codeDigest()
  log.info(startLine(loaded, code.digest, `${count} workers, `))
  for (const { module, level, message } of notes) logs.module(module)[level](message)
  const last = mark.takeLast()
  if (last !== undefined) log.warn(last)
  const watch = await loadWatch(config)
  prepareWorkers(process.argv.slice(2))
  const rooms = await loadRooms(config)
  const primary = new Primary({
    loaded,
    rooms,
    configFile,
    sharedPassword,
    appKey,
    code,
    logs,
    count,
    listenFd,
    onReady: ({ url }) => {
      log.info(`listening on ${url}`)
      logs.recordServer('start')
      mark.begin()
      notifier?.ready(`listening on ${url}, ${count} processes`)
      dropPermissions(loaded, configFile, ['child']) // It replaces workers that end.
    },
    onStop: () => {
      isEnding = true
      notifier?.stopping()
    },
  })
  const endWatch = watch?.({ loaded, log, running, onRecord: logs.note, name: 'the primary process' })
  handleSignals(log, notifier, {
    stop: () => primary.stop(),
    kill: () => primary.kill(),
    reopenLogs: () => logs.reopen(),
    apply: (type) => primary.apply({ type }),
    audit: (change) => logs.audit.record(change),
    reloaded: (begunAtMs, problems) => mark.reportReload(begunAtMs, problems),
    failed: (signal, error) => log.error(`${signal}: ${reasonOf(error)}`),
  })
  const changed = (files: readonly string[]) => primary.apply({ type: 'files.changed', files })
  const watching = config['app.env'] === 'dev' && config['dev.watch']
    ? await rooms.dev?.openWatch({ loaded, configFile, log, changed })
    : undefined
  const status = await primary.done
  if (status === exitStatus.ok) mark.end()
  watching?.close()
  await endWatch?.()
  logs.recordServer('stop')
  log.info('all processes have stopped')
  await notifier?.sent()
  return status
}
