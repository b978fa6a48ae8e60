/**
 * The command line: reads the arguments, runs the command, and exits with its status.
 */
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { App } from '../app.ts'
import { reasonOf } from '../base/reason.ts'
import { version } from '../base/version.ts'
import { loadRoom, MissingRoomError } from '../config/load-room.ts'
import { loadRooms } from '../composition/rooms.ts'
import { numberVariable, takeProcessNumber } from '../process/process-number.ts'
import { ConfigError, errorOfValues, findConfigFile, loadConfig, type LoadedConfig } from '../config/load.ts'
import { processCount } from '../config/together.ts'
import { ReloadError, type CommandType } from '../control/commands.ts'
import { ignoreConsoleErrors } from '../log/console.ts'
import type { PassedSecrets, PassedToProcess } from '../systemd/service.ts'
import type { Outcome } from './proof.ts'
import { foreignCluster, foreignWorkers, severalInCluster } from './foreign-cluster.ts'
import { helpText, parseOptions, type CommandOptions } from './options.ts'
import { exitStatus, handleSignals, handleUncaught, isFileError, isOfOperator, logFatal } from '../process/process.ts'
import { textOfFileError } from '../process/process.ts'
import { dropPermissions } from '../process/permission.ts'
import { RunMark } from '../process/run-mark.ts'
import { RunningRequests } from '../process/running-requests.ts'
import { loadWatch } from '../composition/watch-process.ts'

/** The folder of this server. */
const packageFolder = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
/** The variables by which a service manager, or an operator, may pass something to this process. */
const passedIn = [
  ...['SVC_APP_KEY', 'SVC_APP_KEY_PREVIOUS', 'SVC_SHARED_PASSWORD', 'SVC_METRICS_TOKEN'],
  ...['CREDENTIALS_DIRECTORY', 'INVOCATION_ID', 'NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'],
  ...['LISTEN_FDS', 'LISTEN_PID', 'LISTEN_FDNAMES'],
]

/**
 * Runs the program. Resolves after a command that loads no modules of the application; the other commands exit the
 * process themselves, since such modules may leave timers and sockets open.
 */
export async function main(args: readonly string[]): Promise<void> {
  ignoreConsoleErrors()
  try {
    await run(parseOptions(args))
  } catch (error) {
    if (!(error instanceof MissingRoomError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = exitStatus.config
  }
}

async function run(options: ReturnType<typeof parseOptions>): Promise<void> {
  switch (options.word) {
    case 'usage':
      process.stderr.write(`${options.error}\n\n${helpText}`)
      process.exitCode = exitStatus.usage
      return
    case 'help':
      process.stdout.write(helpText)
      return
    case 'version':
      process.stdout.write(`svc ${version}\n`)
      return
    case 'init': {
      const { init } = await loadRoom('svc init', () => import('../commands/init.ts'))
      process.exitCode = init(options.folder, options.typeScript)
      return
    }
    case 'docs': {
      const { docs } = await loadRoom('svc docs', () => import('../manual/docs.ts'))
      process.exitCode = await docs(packageFolder, options.port)
      return
    }
    case 'check': {
      const { check } = await loadRoom('svc check', () => import('../commands/check.ts'))
      return exit(await check(() => loadWithKey(options)))
    }
    case 'routes': {
      const { printRoutes } = await loadRoom('svc routes', () => import('../commands/check.ts'))
      return exit(await printRoutes(() => loadWithKey(options)))
    }
    case 'types': {
      const { types } = await loadRoom('svc types', () => import('../commands/types.ts'))
      process.exitCode = await types(() => loadWithKey(options), options.checks)
      return
    }
    case 'openapi': {
      const { openapi } = await loadRoom('svc openapi', () => import('../commands/openapi.ts'))
      return exit(await openapi(() => loadWithKey(options), options.out))
    }
    case 'reload': {
      const { reload } = await loadRoom('svc reload', () => import('../commands/reload.ts'))
      // Without secrets: systemd keeps its credentials from the program of ExecReload=, and it needs none.
      process.exitCode = await reload(async () => load(options, {}))
      return
    }
    case 'backup': {
      const { backup } = await loadRoom('svc backup', () => import('../commands/backup.ts'))
      process.exitCode = await backup(() => loadWithKey(options), options.target)
      return
    }
    case 'audit': {
      const { audit } = await loadRoom('svc audit', () => import('../commands/audit.ts'))
      process.exitCode = await audit(() => loadWithKey(options), options)
      return
    }
    case 'passwd': {
      const { passwd } = await loadRoom('svc passwd', () => import('../commands/passwd.ts'))
      process.exitCode = await passwd(configFile(options).file, () => loadWithKey(options), options.totp)
      return
    }
    case 'permissions': {
      const { permissions } = await loadRoom('svc permissions', () => import('../commands/permissions.ts'))
      process.exitCode = await permissions(configFile(options).file, () => loadWithKey(options), options)
      return
    }
    case 'digest': {
      const { digest } = await import('./proof.ts')
      return print(digest(options.manifest))
    }
    case 'verify': {
      const { verify } = await import('./proof.ts')
      return print(verify(options.manifest, options.key))
    }
    case 'start': {
      const number = takeProcessNumber(process.env)
      await (number === undefined ? start(options) : startWorker(number))
    }
  }
}

/**
 * Loads the module that reads what was passed to this process, only if something may have been: most servers are
 * started by hand or in a container.
 */
async function loadService(): Promise<typeof import('../systemd/service.ts') | undefined> {
  const found = passedIn.find((name) => process.env[name] !== undefined)
  return found === undefined ? undefined : loadRoom(`the variable ${found}`, () => import('../systemd/service.ts'))
}

/** Reads the configuration for a command that starts no server. */
async function loadWithKey(options: CommandOptions): Promise<LoadedConfig> {
  return load(options, (await loadService())?.takeSecrets(process.env) ?? {})
}

/**
 * Reads the configuration file named by the options.
 * @param secrets replace those in the files
 * @throws ConfigError
 */
function load(options: CommandOptions, secrets: PassedSecrets): LoadedConfig {
  const { file, namedBy } = configFile(options)
  if (namedBy !== undefined && !existsSync(file)) {
    throw new ConfigError(file, [`there is no such file, which ${namedBy} names`])
  }
  return loadConfig(file, { ...options.overrides, ...secrets.overrides }, secrets.from)
}

function configFile(options: CommandOptions): ReturnType<typeof findConfigFile> {
  return findConfigFile({ config: options.config, env: process.env, cwd: process.cwd(), packageFolder })
}

/** Runs a server: as a single process, or as the primary of several. */
async function start(options: CommandOptions): Promise<void> {
  let app: App | undefined
  try {
    const service = await loadService()
    const warn = (message: string): void => app?.log('server').warn(message)
    const passed: PassedToProcess = service?.takePassed(process.env, process.pid, warn) ?? { notes: [] }
    const { sharedPassword, listenFd, notifier, adapt } = passed
    const read = load(options, passed)
    const foreign = foreignWorkers(process.env)
    const warnings = foreign > 1 ? [...read.warnings, foreignCluster] : read.warnings
    const loaded = { ...read, warnings, config: adapt?.(read.config) ?? read.config }
    const { file, isDemo } = configFile(options)
    const demo = { module: 'server', level: 'info', message: 'no svc.json here: running the demo application' } as const
    const notes = isDemo ? [demo, ...passed.notes] : passed.notes
    const count = processCount(loaded.config)
    if (count > 1 && foreign > 0) throw errorOfValues(loaded, [{ key: 'server.processes', text: severalInCluster }])
    const running = new RunningRequests()
    const watch = await loadWatch(loaded.config)
    const mark = new RunMark(resolve(loaded.folder, loaded.config['paths.cache']))
    if (count > 1) {
      const { runPrimary } = await loadRoom('server.processes', () => import('../cluster/run-primary.ts'))
      process.exit(await runPrimary(loaded, file, count, { ...passed, notes }, mark))
    }
    const { createApp } = await import('../app.ts') // Only here: `digest` and `verify` should not run what they check.
    app = createApp({
      loaded,
      rooms: await loadRooms(loaded.config),
      configFile: file,
      watch: true,
      running,
      ...(sharedPassword !== undefined && { sharedPassword }),
      ...(listenFd !== undefined && { listenFd }),
      onStop: () => notifier?.stopping(),
    })
    handleSignalsOf(app, notifier, mark)
    handleUncaught(app, { running, isEnding: () => app?.stopping === true })
    // Start before logging the notes: the first line of the log announces the start.
    const started = app.start().then(({ url }) => {
      mark.begin()
      notifier?.ready(`listening on ${url}`)
      const keep = notifier?.feedsWatchdog === true ? ['child'] : []
      queueMicrotask(() => dropPermissions(loaded, file, keep)) // The child that notifies systemd runs by then.
    })
    const endWatch = watch?.({ loaded, log: app.log('server'), running, onRecord: app.noteRecord })
    for (const { module, level, message } of notes) app.log(module)[level](message)
    const last = mark.takeLast()
    if (last !== undefined) app.log('server').warn(last)
    // A stop during the start does not wait for the start.
    await Promise.race([started, app.stopped])
    await app.stopped
    mark.end()
    await endWatch?.()
    await notifier?.sent()
    process.exit(exitStatus.ok)
  } catch (error) {
    const isOfFile = isFileError(error)
    if (app === undefined) process.stderr.write(isOfFile ? textOfFileError(error) : `${describe(error)}\n`)
    else {
      logFatal(app, 'server', reasonOf(error), isOfOperator(error) ? undefined : error)
      await app.stop()
    }
    process.exit(isOfFile ? exitStatus.config : exitStatus.failed)
  }
}

/** Runs one of several processes. */
async function startWorker(number: number): Promise<void> {
  if (process.send === undefined) {
    process.stderr.write(`${numberVariable} is set, which only the primary process does, for its workers: unset it\n`)
    process.exitCode = exitStatus.usage
    return
  }
  const { runWorker } = await loadRoom(numberVariable, () => import('../cluster/run-worker.ts'))
  await runWorker(number)
}

function handleSignalsOf(app: App, notifier: PassedToProcess['notifier'], mark: RunMark): void {
  const log = app.log('server')
  const apply = (type: CommandType): unknown => app.control.apply({ type })
  handleSignals(log, notifier, {
    stop: () => apply('stop'),
    reopenLogs: () => apply('logs.reopen'),
    apply,
    audit: app.audit,
    reloaded: (begunAtMs, problems) => mark.reportReload(begunAtMs, problems),
    failed: (signal, error) =>
      log.error(`${signal}: ${reasonOf(error)}`, { thrown: error instanceof ReloadError ? undefined : error }),
  })
}

function print({ status, out, error }: Outcome): void {
  process.stderr.write(error)
  process.stdout.write(out)
  process.exitCode = status
}

/** Exits once the output has been written. */
function exit(status: number): void {
  process.stdout.write('', () => process.exit(status))
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
