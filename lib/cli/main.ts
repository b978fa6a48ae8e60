/**
 * The command line: takes the words apart, runs what they ask for, and turns what happens into an exit status.
 *
 * Surprise: the handlers for signals and for what nobody caught live here and not in the app, so that whoever embeds the
 * server keeps their own process.
 */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApp, type App } from '../app.ts'
import { ConfigError, findConfigFile, loadConfig, type LoadedConfig } from '../config/load.ts'
import { ReloadError } from '../control/commands.ts'
import { MiddlewareError } from '../middleware/config-file.ts'
import { version } from '../version.ts'
import { helpText, parseOptions, type CommandOptions } from './options.ts'

/** Exit statuses: stopped as asked, failed at run time, used wrongly, configured wrongly (EX_CONFIG of sysexits.h). */
export const exitStatus = { ok: 0, failed: 1, usage: 2, config: 78 } as const

/** Runs the program. Resolves when a word other than `start` is done; `start` ends the process itself. */
export async function main(args: readonly string[]): Promise<void> {
  process.stdout.on('error', ignoreClosedPipe)
  process.stderr.on('error', ignoreClosedPipe)
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
      process.exitCode = await check(() => load(options))
      return
    }
    case 'routes': {
      const { printRoutes } = await import('./routes.ts')
      process.exitCode = await printRoutes(() => load(options))
      return
    }
    case 'start':
      await start(options)
  }
}

/** Reads the configuration that the options ask for. Throws ConfigError. */
function load(options: CommandOptions): LoadedConfig {
  const packageFolder = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
  const file = findConfigFile({ config: options.config, env: process.env, cwd: process.cwd(), packageFolder })
  return loadConfig(file, options.overrides)
}

async function start(options: CommandOptions): Promise<void> {
  let app: App | undefined
  try {
    app = createApp({ loaded: load(options) })
    handleSignals(app)
    handleUncaught(app)
    await app.start()
    await app.stopped
    process.exit(exitStatus.ok)
  } catch (error) {
    const isConfiguration =
      error instanceof ConfigError || error instanceof MiddlewareError || error instanceof ReloadError
    if (app === undefined) {
      process.stderr.write(`${isConfiguration ? error.message : describe(error)}\n`)
    } else {
      app.logger('server').fatal((error as Error).message, isConfiguration ? undefined : error)
      await app.stop()
    }
    process.exit(isConfiguration ? exitStatus.config : exitStatus.failed)
  }
}

function handleSignals(app: App): void {
  const log = app.logger('server')
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) {
        log.warn(`${signal} again: exiting at once`)
        app.closeLogs()
        process.exit(exitStatus.failed)
      }
      stopping = true
      log.info(`${signal}: stopping`)
      void app.control.apply({ type: 'stop' })
    })
  }
  process.on('SIGHUP', () => void reload(app))
  process.on('SIGUSR2', () => void app.control.apply({ type: 'logs.reopen' }))
}

/** SIGHUP: each of the three is done, whatever becomes of the others; each failure is logged by name. */
async function reload(app: App): Promise<void> {
  const log = app.logger('server')
  for (const type of ['logs.reopen', 'certificates.reload', 'routes.reload'] as const) {
    try {
      await app.control.apply({ type })
    } catch (error) {
      log.error(`SIGHUP: ${(error as Error).message}`, error instanceof ReloadError ? undefined : error)
    }
  }
}

/** What nobody caught leaves the process in an unknown state: it is logged, and the service manager starts it anew. */
function handleUncaught(app: App): void {
  process.on('uncaughtException', (error, origin) => {
    app.logger('error').fatal(`${origin}: ${error instanceof Error ? error.message : String(error)}`, error)
    app.closeLogs()
    process.exit(exitStatus.failed)
  })
  process.on('exit', () => app.closeLogs())
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Whoever read our output has gone; that is no reason to stop serving. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}
