/**
 * The process of the primary: its logs, its signals, its exit status.
 */
import { resolve } from 'node:path'
import { loadAsked } from '../app.ts'
import { chooseAppKey } from '../config/app-key.ts'
import { reasonOf } from '../base/reason.ts'
import { startPrimary } from '../group/primary.ts'
import { prepareWorkers } from '../group/worker-process.ts'
import type { LoadedConfig } from '../config/load.ts'
import { openLogs } from '../log/logs.ts'
import type { Notifier } from '../systemd/notify.ts'
import { startLine } from '../base/version.ts'
import { handleSignals } from './signals.ts'

export interface RunPrimaryOptions {
  readonly loaded: LoadedConfig
  readonly configFile: string
  /** The password of `shared.url`, where it does not stand there. */
  readonly sharedPassword: string | undefined
  /** How many workers, from 2. */
  readonly count: number
  readonly listenFd: number | undefined
  readonly notifier: Notifier
  /** What is to be said first: where the key comes from, what is wrong with a passed socket. */
  readonly notes: readonly { readonly module: string; readonly level: 'info' | 'warn'; readonly message: string }[]
  /** The exit status of a failure. */
  readonly failed: number
}

/** Runs the primary. Resolves with the exit status when all has ended. */
export async function runPrimary(options: RunPrimaryOptions): Promise<number> {
  const { loaded, count, notifier } = options
  const { config } = loaded
  const logs = openLogs(config, resolve(loaded.folder, config['paths.log']))
  const log = logs.module('server')
  process.on('exit', () => logs.close())
  process.on('uncaughtException', (error: unknown, origin) => {
    logs.module('error').fatal(`${origin}: ${reasonOf(error)}`, error)
    process.exit(options.failed)
  })
  log.info(startLine(loaded, `${count} workers, `))
  for (const { module, level, message } of options.notes) logs.module(module)[level](message)
  prepareWorkers(process.argv.slice(2))
  const primary = startPrimary({
    loaded,
    ...(await loadAsked(config)),
    configFile: options.configFile,
    sharedPassword: options.sharedPassword,
    appKey: chooseAppKey(config),
    logs,
    count,
    listenFd: options.listenFd,
    onReady: ({ url }) => {
      log.info(`listening on ${url}`)
      notifier.ready(`listening on ${url}, ${count} processes`)
    },
    onStop: () => notifier.stopping(),
  })
  const apply = (type: 'certificates.reload' | 'routes.reload') => () => primary.apply({ type })
  handleSignals({
    log,
    notifier,
    stop: primary.stop,
    exit: () => {
      primary.kill()
      process.exit(options.failed)
    },
    reload: [primary.reopenLogs, apply('certificates.reload'), apply('routes.reload')],
    reopenLogs: primary.reopenLogs,
    failed: (signal, error) => log.error(`${signal}: ${(error as Error).message}`),
  })
  const status = await primary.done
  log.info('all processes have stopped')
  await notifier.told()
  return status
}
