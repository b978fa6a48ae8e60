/**
 * The public entry: what `import ... from 'svc'` gives. Its types are in `svc.d.ts`.
 *
 * ```ts
 * import { createApp } from 'svc'
 *
 * const app = createApp({ config: { server: { port: 8080 } }, folder: import.meta.dirname })
 * const { url } = await app.start()
 * ```
 *
 * An app never touches the process: signals, exit statuses and uncaught errors are left to the program around it. Its
 * last two calls are `await app.stop()` and `app.closeLogs()`.
 */
import { createApp as create, type App, type AppOptions } from './app.ts'
import { Dev } from './dev/dev.ts'
import { openShared } from './cluster/shared.ts'

/**
 * Builds a server from a configuration. It loads all parts of the server, also those that this configuration does not
 * need, since it returns at once.
 * @throws ConfigError
 */
export function createApp(options: AppOptions = {}): App {
  return create({ openShared, Dev, ...options })
}

/** The configuration cannot be used: `createApp` throws it. */
export { ConfigError } from './config/load.ts'
/** The middleware, or its `config.json`, cannot be loaded: `start` rejects with it. */
export { MiddlewareError } from './modules/middleware-config.ts'
/** Route files or modules cannot be used: `start` rejects with it. */
export { ReloadError } from './control/commands.ts'
/** Makes schemas for `ctx.validate`. */
export { fields } from './validation/fields.ts'
/** An error with an HTTP status of its own, as `ctx.fail()` throws it. */
export { HttpError } from './http/errors.ts'
