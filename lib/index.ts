/**
 * The public entry of the package: `createApp()` for programs that embed the server, and the types for actions and
 * middleware in TypeScript.
 *
 * ```ts
 * import { createApp, type Action } from 'svc'
 *
 * const app = createApp({ config: { server: { port: 8080 } }, folder: import.meta.dirname })
 * const { url } = await app.start()
 * ```
 *
 * An app never touches the process: signals, exit statuses and uncaught errors are left to the program around it. Its
 * last two calls are `await app.stop()` and `app.closeLogs()`.
 */
import { createApp as create, type App, type AppOptions } from './app.ts'
import { createDevErrorPage } from './application/dev-error-page.ts'
import { openShared } from './group/shared.ts'

/**
 * Builds a server from a configuration. It loads all parts of the server, also those that this configuration does not
 * need, since it returns at once.
 * @throws ConfigError
 */
export function createApp(options: AppOptions = {}): App {
  return create({ openShared, createDevErrorPage, ...options })
}

/** A server, its options, and the address that it listens on. */
export type { App, AppOptions } from './app.ts'
export type { Address } from './core/listener.ts'
/** The argument of a middleware module's `setup(app)`, and the types of that function and its teardown. */
export type { SetupApp } from './application/build.ts'
export type { Setup, Teardown } from './application/middleware-host.ts'

/** The configuration cannot be used: `createApp` throws it. */
export { ConfigError } from './config/load.ts'
/** The configuration by dotted key, with a value for each. */
export type { Config, ConfigKey } from './config/table.ts'

/** The middleware, or its `config.json`, cannot be loaded: `start` rejects with it. */
export { MiddlewareError } from './application/middleware-config.ts'
/** Route files or modules cannot be used: `start` and the command `routes.reload` reject with it. */
export { ReloadError } from './application/commands.ts'
/** Commands that change a running server: `app.control.apply({ type: 'routes.reload' })`. */
export type { Command, CommandType, Control, ReloadProblem, ReloadResult } from './application/commands.ts'

/** The context of a request, an action, and a middleware. */
export type { Action, Context, Middleware } from './application/context.ts'
/** Runs the rest of the chain. */
export type { Next } from './chain/compose.ts'
/** The record of a route, as `ctx.route` has it. */
export type { RouteRecord } from './routing/route.ts'
/** The return value of `ctx.json()` and the other replies. */
export type { Reply } from './http/reply.ts'
/** The result of `ctx.readForm()`. */
export type { Form, FormFile } from './http/form.ts'
/** The attributes that `ctx.setCookie()` accepts. */
export type { CookieAttributes } from './http/cookie.ts'
/** Makes schemas for `ctx.validate`. */
export { fields } from './kit/fields.ts'
/** An error with an HTTP status of its own, as `ctx.fail()` throws it. */
export { HttpError } from './http/errors.ts'
/** The session and a flash bag, as `ctx.session` and `ctx.flash(id)` have them. */
export type { Session } from './session/session.ts'
export type { FlashBag } from './flash/bag.ts'
/** Channels and queues, as `ctx.channel(name)` and `ctx.queue(name)` have them. */
export type { Channel } from './events/channel.ts'
export type { Queue } from './events/queue.ts'
/** The export `websocket` of a module, and the connection that its functions receive. */
export type { WebSocketConnection, WebSocketHandlers } from './websocket/connection.ts'
/** The log of a module, as `ctx.logger()` and `app.logger()` return it. */
export type { Level, ModuleLogger } from './log/logger.ts'
