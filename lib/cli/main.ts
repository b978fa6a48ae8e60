/**
 * The command line: takes the words apart, runs what they ask for, and turns what happens into an exit status.
 *
 * Surprise: the handlers for signals and for what nobody caught live here and not in the app, so that whoever embeds the
 * server keeps their own process.
 */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApp, type App } from '../app.ts'
import { findConfigFile, loadConfig, type LoadedConfig } from '../config/load.ts'
import { ReloadError, type CommandType } from '../control/commands.ts'
import { takeAppKey, type GivenAppKey } from '../systemd/credentials.ts'
import { takeListenFds } from '../systemd/listen-fds.ts'
import { createNotifier, type Notifier } from '../systemd/notify.ts'
import { version } from '../version.ts'
import { isFileError, textOfFileError } from './failure.ts'
import { helpText, parseOptions, type CommandOptions } from './options.ts'

/** Exit statuses: stopped as asked, failed at run time, used wrongly, configured wrongly (EX_CONFIG of sysexits.h). */
export const exitStatus = { ok: 0, failed: 1, usage: 2, config: 78 } as const

/**
 * Runs the program. Resolves when a word is done that loads no modules; the others end the process themselves, since
 * modules may have left timers and sockets behind.
 */
export async function main(args: readonly string[]): Promise<void> {
  process.stdout.on('error', ignoreConsoleError)
  process.stderr.on('error', ignoreConsoleError)
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
      process.exitCode = init(options.folder)
      return
    }
    case 'check': {
      const { check } = await import('./check.ts')
      return exit(await check(() => load(options, takeAppKey(process.env))))
    }
    case 'routes': {
      const { printRoutes } = await import('./routes.ts')
      return exit(await printRoutes(() => load(options, takeAppKey(process.env))))
    }
    case 'passwd': {
      const { passwd } = await import('./passwd.ts')
      process.exitCode = await passwd(configFile(options), () => load(options, takeAppKey(process.env)))
      return
    }
    case 'start':
      await start(options)
  }
}

/** Reads the configuration that the options ask for, and the key that stands above it. Throws ConfigError. */
function load(options: CommandOptions, given: GivenAppKey | undefined): LoadedConfig {
  return loadConfig(configFile(options), { ...options.overrides, ...(given !== undefined && { app_key: given.key }) })
}

function configFile(options: CommandOptions): string {
  const packageFolder = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
  return findConfigFile({ config: options.config, env: process.env, cwd: process.cwd(), packageFolder })
}

async function start(options: CommandOptions): Promise<void> {
  let app: App | undefined
  try {
    const given = takeAppKey(process.env)
    const passed = takeListenFds(process.env, process.pid)
    const warn = (message: string): void => app?.logger('server').warn(message)
    const notifier = createNotifier({ env: process.env, pid: process.pid, warn })
    const loaded = load(options, given)
    app = createApp({
      loaded,
      configFile: configFile(options),
      ...(passed.fd !== undefined && { listenFd: passed.fd }),
      onStop: () => notifier.stopping(),
    })
    handleSignals(app, notifier)
    handleUncaught(app)
    if (given !== undefined) app.logger('config').info(`app_key comes from ${given.from}`)
    if (passed.warning !== undefined) warn(passed.warning)
    // A stop that comes during the start does not wait for what the start waits for.
    await Promise.race([app.start().then(({ url }) => notifier.ready(`listening on ${url}`)), app.stopped])
    await app.stopped
    await notifier.told()
    process.exit(exitStatus.ok)
  } catch (error) {
    const status = isFileError(error) ? exitStatus.config : exitStatus.failed
    if (app === undefined) process.stderr.write(isFileError(error) ? textOfFileError(error) : `${describe(error)}\n`)
    else {
      logFatal(app, 'server', error instanceof Error ? error.message : String(error), isFileError(error) ? undefined : error)
      await app.stop()
    }
    process.exit(status)
  }
}

function handleSignals(app: App, notifier: Notifier): void {
  const log = app.logger('server')
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) {
        log.warn(`${signal} again: exiting at once`)
        process.exit(exitStatus.failed)
      }
      stopping = true
      log.info(`${signal}: stopping`)
      void applyEach(app, signal, ['stop'])
    })
  }
  process.on('SIGHUP', () => void reload(app, notifier))
  process.on('SIGUSR2', () => void applyEach(app, 'SIGUSR2', ['logs.reopen']))
}

async function reload(app: App, notifier: Notifier): Promise<void> {
  notifier.reloading()
  const failed = await applyEach(app, 'SIGHUP', ['logs.reopen', 'certificates.reload', 'routes.reload'])
  notifier.reloaded(failed === 0 ? 'reloaded' : 'the last reload failed, so the old state is in use: see the log')
}

/**
 * What a signal asks for: each is done, whatever becomes of the others, and each failure is logged.
 * @returns how many failed
 */
async function applyEach(app: App, signal: NodeJS.Signals, types: readonly CommandType[]): Promise<number> {
  let failed = 0
  for (const type of types) {
    try {
      await app.control.apply({ type })
    } catch (error) {
      failed += 1
      app.logger('server').error(`${signal}: ${(error as Error).message}`, error instanceof ReloadError ? undefined : error)
    }
  }
  return failed
}

/** What nobody caught leaves the process in an unknown state: it is logged, and the service manager starts it anew. */
function handleUncaught(app: App): void {
  process.on('uncaughtException', (error: unknown, origin) => {
    logFatal(app, 'error', `${origin}: ${error instanceof Error ? error.message : String(error)}`, error)
    process.exit(exitStatus.failed)
  })
  process.on('exit', () => app.closeLogs())
}

/** Says on standard error too why the server ends, when its log does not go to the console. */
function logFatal(app: App, module: string, message: string, thrown: unknown): void {
  app.logger(module).fatal(message, thrown)
  if (!app.config['log.console']) process.stderr.write(`${message}\n`)
}

/** Ends the process once what was printed is on its way. */
function exit(status: number): void {
  process.stdout.write('', () => process.exit(status))
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Whoever read our output has gone, or its disk is full; that is no reason to stop serving. */
function ignoreConsoleError(): void {}
