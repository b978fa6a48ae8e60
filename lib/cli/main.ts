/**
 * The command line: reads the arguments, runs the command that they name, and ends with its exit status.
 */
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApp, loadAsked, type App } from '../app.ts'
import { reasonOf } from '../base/reason.ts'
import { version } from '../base/version.ts'
import { numberVariable, takeProcessNumber } from '../cluster/process-number.ts'
import { ConfigError, errorOfValues, findConfigFile, loadConfig, type LoadedConfig } from '../config/load.ts'
import { processCount } from '../config/together.ts'
import { ReloadError, type CommandType } from '../control/commands.ts'
import { ignoreConsoleErrors } from '../log/console.ts'
import type { Given, PassedSecrets } from '../systemd/service.ts'
import { foreignCluster, foreignWorkers, severalInCluster } from './foreign-cluster.ts'
import { helpText, parseOptions, type CommandOptions } from './options.ts'
import { exitStatus, handleSignals, handleUncaught, isFileError, isOfOperator, logFatal } from './process.ts'
import { textOfFileError } from './process.ts'
import { RunMark } from './run-mark.ts'

/** With one of these variables a service manager, or an operator, may pass something to this process. */
const passedIn = [
  ...['SVC_APP_KEY', 'SVC_APP_KEY_PREVIOUS', 'SVC_SHARED_PASSWORD', 'SVC_METRICS_TOKEN'],
  ...['CREDENTIALS_DIRECTORY', 'INVOCATION_ID', 'NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'],
  ...['LISTEN_FDS', 'LISTEN_PID', 'LISTEN_FDNAMES'],
]

/**
 * Runs the program. Resolves when a command is done that loads no modules of the application; the other commands end
 * the process themselves, since such modules may have left timers and sockets behind.
 */
export async function main(args: readonly string[]): Promise<void> {
  ignoreConsoleErrors()
  const options = parseOptions(args)
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
      const { init } = await import('./init.ts')
      process.exitCode = init(options.folder, options.typeScript)
      return
    }
    case 'check': {
      const { check } = await import('./check.ts')
      return exit(await check(() => loadWithKey(options)))
    }
    case 'routes': {
      const { printRoutes } = await import('./check.ts')
      return exit(await printRoutes(() => loadWithKey(options)))
    }
    case 'passwd': {
      const { passwd } = await import('./passwd.ts')
      process.exitCode = await passwd(configFile(options).file, () => loadWithKey(options))
      return
    }
    case 'permissions': {
      const { permissions } = await import('./permissions.ts')
      process.exitCode = await permissions(configFile(options).file, () => loadWithKey(options), options)
      return
    }
    case 'start': {
      const number = takeProcessNumber(process.env)
      await (number === undefined ? start(options) : startWorker(number))
    }
  }
}

/**
 * Loads the module that takes what was passed to this process, where there may be something: most servers are started
 * by hand or in a container.
 */
async function loadService(): Promise<typeof import('../systemd/service.ts') | undefined> {
  return passedIn.some((name) => process.env[name] !== undefined) ? import('../systemd/service.ts') : undefined
}

/** Reads the configuration for a command that starts no server. */
async function loadWithKey(options: CommandOptions): Promise<LoadedConfig> {
  return load(options, (await loadService())?.takeSecrets(process.env) ?? {})
}

/**
 * Reads the configuration that the options name.
 * @param secrets replace those of the files
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
  const packageFolder = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
  return findConfigFile({ config: options.config, env: process.env, cwd: process.cwd(), packageFolder })
}

/** Runs a server: this process alone, or as the primary of several. */
async function start(options: CommandOptions): Promise<void> {
  let app: App | undefined
  try {
    const service = await loadService()
    const warn = (message: string): void => app?.log('server').warn(message)
    const given: Given = service?.takeGiven(process.env, process.pid, warn) ?? { notes: [] }
    const { sharedPassword, listenFd, notifier, adapt } = given
    const read = load(options, given)
    const foreign = foreignWorkers(process.env)
    const warnings = foreign > 1 ? [...read.warnings, foreignCluster] : read.warnings
    const loaded = { ...read, warnings, config: adapt?.(read.config) ?? read.config }
    const { file, isDemo } = configFile(options)
    const demo = { module: 'server', level: 'info', message: 'no svc.json here: running the demo application' } as const
    const notes = isDemo ? [demo, ...given.notes] : given.notes
    const count = processCount(loaded.config)
    if (count > 1 && foreign > 0) throw errorOfValues(loaded, [{ key: 'server.processes', text: severalInCluster }])
    const mark = new RunMark(resolve(loaded.folder, loaded.config['paths.cache']))
    if (count > 1) {
      const { runPrimary } = await import('./primary.ts')
      process.exit(await runPrimary(loaded, file, count, { ...given, notes }, mark))
    }
    app = createApp({
      loaded,
      ...(await loadAsked(loaded.config)),
      configFile: file,
      watch: true,
      ...(sharedPassword !== undefined && { sharedPassword }),
      ...(listenFd !== undefined && { listenFd }),
      onStop: () => notifier?.stopping(),
    })
    handleSignalsOf(app, notifier)
    handleUncaught(app)
    // Started before the notes are logged: the first line of the log is that of the start.
    const started = app.start().then(({ url }) => {
      mark.begin()
      notifier?.ready(`listening on ${url}`)
    })
    for (const { module, level, message } of notes) app.log(module)[level](message)
    const last = mark.takeLast()
    if (last !== undefined) app.log('server').warn(last)
    // A stop that comes during the start does not wait for the start.
    await Promise.race([started, app.stopped])
    await app.stopped
    mark.end()
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
  const { runWorker } = await import('./worker.ts')
  await runWorker(number)
}

function handleSignalsOf(app: App, notifier: Given['notifier']): void {
  const log = app.log('server')
  const apply = (type: CommandType): unknown => app.control.apply({ type })
  handleSignals(log, notifier, {
    stop: () => apply('stop'),
    reopenLogs: () => apply('logs.reopen'),
    apply,
    audit: app.audit,
    failed: (signal, error) =>
      log.error(`${signal}: ${reasonOf(error)}`, { thrown: error instanceof ReloadError ? undefined : error }),
  })
}

/** Ends the process when its output has been handed to the system. */
function exit(status: number): void {
  process.stdout.write('', () => process.exit(status))
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
