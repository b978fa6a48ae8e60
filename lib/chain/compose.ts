/**
 * Composes a route's middleware and its action into one function, once, when the route is registered.
 *
 * Middleware is an onion: `(ctx, next) => { before; await next(); after }`. Its return value is ignored: the reply is
 * the action's return value, or is set by `ctx.json()` and the like.
 *
 * Surprise: a chain of synchronous functions is answered without a promise, which is why `next()` returns `void |
 * Promise<void>`: write `await next()` or `return next()`, not `next().then()`. A middleware that does neither causes a
 * log line; the middleware before it and the response still wait for the rest of the chain.
 */
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import { dropStream, replyOf } from '../http/returned.ts'

/** Runs the rest of the chain. Call it at most once. */
export type Next = () => void | Promise<void>

/**
 * Declared as methods, so that the compiler accepts a function that requires a context with members of features, such
 * as `CoreContext & SessionMembers`. `app.ts`, which assembles the server, decides which features it has.
 */
interface Functions {
  middleware(ctx: CoreContext, next: Next): void | Promise<void>
  action(ctx: CoreContext): unknown
}

/** A middleware function. */
export type Middleware = Functions['middleware']

/** A middleware with the name that routes use for it. */
interface NamedMiddleware {
  readonly name: string
  readonly run: Middleware
}

/** An action: its return value becomes the reply; undefined keeps the reply of the context. */
export type Action = Functions['action']

/** A whole route, ready to run. It throws or rejects with the error of the chain. */
export type Chain = (ctx: CoreContext) => Reply | Promise<Reply>

/** Receives problems that no response can report. */
export interface ChainReports {
  /** An error after the request was answered; caused only by a `next()` that is not awaited. */
  readonly late: (ctx: CoreContext, error: unknown) => void
  /** A mistake in a middleware or an action. The message says how to fix it. */
  readonly misuse: (ctx: CoreContext, message: string) => void
}

/** A layer with all layers below it. */
type Step = (ctx: CoreContext) => void | Promise<void>

/** A middleware with the rest of its chain. */
interface Layer extends NamedMiddleware {
  readonly rest: Step
  readonly reports: ChainReports
}

/** A failure, and the reply at that time. */
interface Failure {
  readonly error: unknown
  readonly reply: Reply | undefined
}

/**
 * Makes the chain of a route.
 * @param layers outermost first
 * @returns a chain that throws Error when a middleware calls `next()` twice
 */
export function compose(layers: readonly NamedMiddleware[], action: Action, reports: ChainReports): Chain {
  if (layers.length === 0) return (ctx) => runAction(ctx, action, reports)
  let whole: Step = (ctx) => {
    const outcome = runAction(ctx, action, reports)
    return outcome instanceof Promise ? outcome.then(noValue) : undefined
  }
  for (const { name, run } of layers.toReversed()) {
    const layer = { name, run, rest: whole, reports }
    whole = (ctx) => new Pass(ctx, layer).enter()
  }
  return (ctx) => {
    const outcome = whole(ctx)
    return isThenable(outcome) ? Promise.resolve(outcome).then(() => ctx.currentReply()) : ctx.currentReply()
  }
}

/**
 * One run of a layer with all layers below it. It does not end before the layers below, even if the middleware does not
 * wait: layers above it save a session when everything has ended. It fails with the error from below, unless the
 * middleware waited for that and either failed as well or set a reply.
 *
 * Created for each layer of each request, so it is one object, with one function for `next`. No method is private: V8
 * marks each object of a class with private methods, by a runtime call.
 */
class Pass {
  readonly #ctx: CoreContext
  readonly #layer: Layer
  #state: 'entered' | 'called' | 'over' = 'entered'
  /** The promise of the layers below while they run; undefined when they are done or needed no promise. */
  #below: Promise<void> | undefined = undefined
  #failure: Failure | undefined = undefined

  constructor(ctx: CoreContext, layer: Layer) {
    this.#ctx = ctx
    this.#layer = layer
  }

  enter(): void | Promise<void> {
    let outcome: void | Promise<void>
    try {
      outcome = this.#layer.run(this.#ctx, () => this.next())
    } catch (error) {
      return this.threw(error)
    }
    const below = this.#below
    const isOrdinary = this.#state === 'called' && this.#failure === undefined
    if (isOrdinary && (below === undefined || outcome === below)) return outcome
    if (!isThenable(outcome)) return this.returned()
    return Promise.resolve(outcome).then(
      () => this.returned(),
      (error: unknown) => this.threw(error),
    )
  }

  next(): void | Promise<void> {
    const { name, rest, reports } = this.#layer
    if (this.#state === 'called') {
      throw new Error(`Middleware ${name} called next() twice: the rest of the chain runs once`)
    }
    if (this.#state === 'over') {
      return reports.late(this.#ctx, new Error(`Middleware ${name} called next() after it had returned`))
    }
    this.#state = 'called'
    let outcome: void | Promise<void>
    try {
      outcome = rest(this.#ctx)
    } catch (error) {
      this.failed(error)
      throw error
    }
    if (!isThenable(outcome)) return
    const below = Promise.resolve(outcome)
    this.#below = below
    below.then(
      () => (this.#below = undefined),
      (error: unknown) => this.failed(error),
    )
    return below
  }

  failed(error: unknown): void {
    this.#below = undefined
    this.#failure = { error, reply: this.#ctx.reply }
  }

  returned(): void | Promise<void> {
    const { name, reports } = this.#layer
    // A layer that does not call `next()` ends the chain, so it must reply.
    if (this.#state === 'entered' && this.#ctx.reply === undefined) {
      const problem = `middleware ${name} neither replied nor called next(): the client gets 404`
      reports.misuse(this.#ctx, `${problem}; write \`await next()\` in it`)
    }
    this.#state = 'over'
    if (this.#failure !== undefined && this.#failure.reply === this.#ctx.reply) throw this.#failure.error
    if (this.#below !== undefined) this.reportMissingAwait()
    return this.#below
  }

  threw(error: unknown): Promise<void> {
    this.#state = 'over'
    if (this.#below === undefined) throw error
    this.reportMissingAwait()
    const rethrow = (): never => {
      throw error
    }
    return this.#below.catch((later: unknown) => this.#layer.reports.late(this.#ctx, later)).then(rethrow)
  }

  reportMissingAwait(): void {
    const { name, reports } = this.#layer
    reports.misuse(
      this.#ctx,
      `middleware ${name} returned before next() was done: write \`await next()\` in it`,
    )
  }
}

function runAction(ctx: CoreContext, action: Action, reports: ChainReports): Reply | Promise<Reply> {
  const value = action(ctx)
  if (!isThenable(value)) return replyOfAction(ctx, value, reports)
  return Promise.resolve(value).then((settled) => replyOfAction(ctx, settled, reports))
}

function replyOfAction(ctx: CoreContext, value: unknown, reports: ChainReports): Reply {
  const { redirection } = ctx
  if (redirection === undefined || value === undefined || value === redirection) return replyOf(ctx, value)
  reports.misuse(ctx, 'the action returned a value after ctx.redirect(), which is dropped: return one of them')
  dropStream(value)
  ctx.status = redirection.status
  return (ctx.reply = redirection)
}

function noValue(): void {}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
