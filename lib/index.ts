/**
 * The public entry, imported as `svc`. Its types are in `svc.d.ts`.
 *
 * ```ts
 * import { createApp } from 'svc'
 *
 * const app = createApp({ config: { server: { port: 8080 } }, folder: import.meta.dirname })
 * const { url } = await app.start()
 * ```
 *
 * An app never touches the process: signals, exit statuses and uncaught errors are left to the embedding program. Its
 * last two calls are `await app.stop()` and `app.closeLogs()`.
 */
import { createApp as create, loadedOf, type App, type AppOptions } from './app.ts'
import { requireRooms } from './composition/rooms.ts'
import { loadRoom } from './config/load-room.ts'
import type { testApp as loadForTests } from './testing/test-app.ts'

/**
 * Builds a server from a configuration.
 * @throws ConfigError
 */
export function createApp(options: AppOptions = {}): App {
  const loaded = loadedOf(options)
  return create({ ...options, loaded, rooms: requireRooms(loaded.config) })
}

/**
 * Loads the application of a folder for its tests, as `testing/test-app.ts` describes.
 * @throws MissingRoomError, as a rejection, when this installation does not have it
 */
export const testApp: typeof loadForTests = async (...args) => {
  const { testApp: load } = await loadRoom('testApp', () => import('./testing/test-app.ts'))
  return await load(...args)
}

/** Thrown by `createApp` when the configuration cannot be used. */
export { ConfigError } from './config/load.ts'
/** `start` rejects with it when the middleware, or its `config.json`, cannot be loaded. */
export { MiddlewareError } from './modules/middleware-config.ts'
/** `start` rejects with it when route files or modules cannot be used. */
export { ReloadError } from './control/commands.ts'
/** Makes an action that declares its input. */
export { action } from './validation/action.ts'
/** Creates schemas for `ctx.validate`. */
export { fields } from './validation/fields.ts'
/** Thrown by the action of a job that another try cannot help. */
export { JobFailed } from './application/job-failed.ts'
/** An error with an HTTP status, as thrown by `ctx.fail()`. */
export { HttpError } from './http/errors.ts'
