/**
 * The command line: takes the words apart, runs what they ask for, and turns what happens into an exit status.
 *
 * Surprise: the handlers for signals and for what nobody caught live here and not in the app, so that whoever embeds
 * the server keeps their own process.
 */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApp, loadAsked, type App } from '../app.ts'
import { reasonOf } from '../base/reason.ts'
import { numberVariable, takeProcessNumber } from '../group/process-number.ts'
import { processCount } from '../config/process-count.ts'
import { ConfigError, findConfigFile, loadConfig, type FoundConfigFile, type LoadedConfig } from '../config/load.ts'
import { ReloadError, type CommandType } from '../application/commands.ts'
import { problemsOfNamedFiles } from '../application/named-files.ts'
import { takeSecret, type GivenSecret } from '../systemd/credentials.ts'
import { takeListenFds, type PassedSocket } from '../systemd/listen-fds.ts'
import { configOfService, isServiceManaged } from '../systemd/managed.ts'
import { createNotifier, type Notifier } from '../systemd/notify.ts'
import { version } from '../base/version.ts'
import { isFileError, textOfFileError } from './failure.ts'
import { helpText, parseOptions, type CommandOptions } from './options.ts'
import { handleSignals } from './signals.ts'
import { handleUncaught, logFatal } from './uncaught.ts'

/** A line for the log of a module. */
interface Note {
  readonly module: string
  readonly level: 'info' | 'warn'
  readonly message: string
}

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
      return exit(await check(() => load(options, takeSecret(process.env, 'app_key'))))
    }
    case 'routes': {
      const { printRoutes } = await import('./routes.ts')
      return exit(await printRoutes(() => load(options, takeSecret(process.env, 'app_key'))))
    }
    case 'passwd': {
      const { passwd } = await import('./passwd.ts')
      process.exitCode = await passwd(configFile(options).file, () => load(options, takeSecret(process.env, 'app_key')))
      return
    }
    case 'start': {
      const number = takeProcessNumber(process.env)
      await (number === undefined ? start(options) : startWorker(number))
    }
  }
}

/**
 * Reads the configuration that the options ask for, and the key that stands above it.
 * @throws ConfigError; where values are wrong, with what is wrong with the files that the others name
 */
function load(options: CommandOptions, given: GivenSecret | undefined): LoadedConfig {
  try {
    const { file, namedBy } = configFile(options)
    if (namedBy !== undefined && !existsSync(file)) {
      throw new ConfigError(file, [`there is no such file, which ${namedBy} names`])
    }
    return loadConfig(file, { ...options.overrides, ...(given !== undefined && { app_key: given.secret }) })
  } catch (error) {
    throw error instanceof ConfigError && error.rest !== undefined
      ? error.also(problemsOfNamedFiles(error.rest))
      : error
  }
}

function configFile(options: CommandOptions): FoundConfigFile {
  const packageFolder = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
  return findConfigFile({ config: options.config, env: process.env, cwd: process.cwd(), packageFolder })
}

async function start(options: CommandOptions): Promise<void> {
  let app: App | undefined
  try {
    const isManaged = isServiceManaged(process.env)
    const given = takeSecret(process.env, 'app_key')
    const password = takeSecret(process.env, 'shared_password')
    const passed = takeListenFds(process.env, process.pid)
    const warn = (message: string): void => app?.logger('server').warn(message)
    const notifier = createNotifier({ env: process.env, pid: process.pid, warn })
    const read = load(options, given)
    const loaded = isManaged ? { ...read, config: configOfService(read.config) } : read
    const count = processCount(loaded.config)
    if (count > 1) {
      const { runPrimary } = await import('./primary.ts')
      const status = await runPrimary({
        loaded,
        configFile: configFile(options).file,
        sharedPassword: password?.secret,
        count,
        listenFd: passed.fd,
        notifier,
        notes: notesOf(options, given, password, passed),
        failed: exitStatus.failed,
      })
      process.exit(status)
    }
    app = createApp({
      loaded,
      ...(await loadAsked(loaded.config)),
      configFile: configFile(options).file,
      ...(password !== undefined && { sharedPassword: password.secret }),
      ...(passed.fd !== undefined && { listenFd: passed.fd }),
      onStop: () => notifier.stopping(),
    })
    takeSignals(app, notifier)
    handleUncaught(app, exitStatus.failed)
    const started = app.start().then(({ url }) => notifier.ready(`listening on ${url}`)) // Its first line is the first.
    for (const { module, level, message } of notesOf(options, given, password, passed)) {
      app.logger(module)[level](message)
    }
    // A stop that comes during the start does not wait for what the start waits for.
    await Promise.race([started, app.stopped])
    await app.stopped
    await notifier.told()
    process.exit(exitStatus.ok)
  } catch (error) {
    const status = isFileError(error) ? exitStatus.config : exitStatus.failed
    if (app === undefined) process.stderr.write(isFileError(error) ? textOfFileError(error) : `${describe(error)}\n`)
    else {
      logFatal(
        app,
        'server',
        reasonOf(error),
        isFileError(error) ? undefined : error,
      )
      await app.stop()
    }
    process.exit(status)
  }
}

/** Runs one of several processes. */
async function startWorker(number: number): Promise<void> {
  if (process.send === undefined) {
    process.stderr.write(
      `${numberVariable} is set, which the first of several processes sets for the others: unset it\n`,
    )
    process.exitCode = exitStatus.usage
    return
  }
  const { runWorker } = await import('./worker.ts')
  await runWorker(number, exitStatus)
}

/** What is to be said of what this process was given. */
function notesOf(
  options: CommandOptions,
  given: GivenSecret | undefined,
  password: GivenSecret | undefined,
  passed: PassedSocket,
): Note[] {
  const notes: Note[] = []
  if (configFile(options).isDemo) {
    notes.push({ module: 'server', level: 'info', message: 'no svc.json here: running the demo application' })
  }
  const secrets = [['app_key', given], ['the password of shared.url', password]] as const
  for (const [what, secret] of secrets) {
    if (secret !== undefined) {
      notes.push({ module: 'config', level: 'info', message: `${what} comes from ${secret.from}` })
    }
  }
  if (passed.warning !== undefined) notes.push({ module: 'server', level: 'warn', message: passed.warning })
  return notes
}

function takeSignals(app: App, notifier: Notifier): void {
  const log = app.logger('server')
  const apply = (type: CommandType) => () => app.control.apply({ type })
  handleSignals({
    log,
    notifier,
    stop: apply('stop'),
    exit: () => process.exit(exitStatus.failed),
    reload: [apply('logs.reopen'), apply('certificates.reload'), apply('routes.reload')],
    reopenLogs: apply('logs.reopen'),
    failed: (signal, error) =>
      log.error(`${signal}: ${(error as Error).message}`, error instanceof ReloadError ? undefined : error),
  })
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
