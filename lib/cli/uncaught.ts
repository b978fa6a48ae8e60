/**
 * The last words of a server: what nobody caught, and what keeps it from starting.
 */
import type { App } from '../app.ts'
import { reasonOf } from '../base/reason.ts'

/**
 * What nobody caught leaves the process in an unknown state: it is logged, and whoever watches starts it anew.
 * @param isHarmless whether something is no reason for that
 */
export function handleUncaught(app: App, status: number, isHarmless: (error: unknown) => boolean = () => false): void {
  process.on('uncaughtException', (error: unknown, origin) => {
    if (isHarmless(error)) return
    logFatal(app, 'error', `${origin}: ${reasonOf(error)}`, error)
    process.exit(status)
  })
  process.on('exit', () => app.closeLogs())
}

/** Says on standard error too why the server ends, when its log does not go to the console. */
export function logFatal(app: Pick<App, 'logger' | 'config'>, module: string, message: string, thrown: unknown): void {
  app.logger(module).fatal(message, thrown)
  if (!app.config['log.console']) process.stderr.write(`${message}\n`)
}
