/**
 * Composes a route's middleware and its action into one function, once, when the route is registered.
 *
 * Middleware is an onion: `(ctx, next) => { before; await next(); after }`. Its return value is ignored: the reply is
 * what the action returned, or what `ctx.json()` and the like set.
 *
 * Surprise: a chain of synchronous functions is answered without a promise, which is why `next()` returns `void |
 * Promise<void>`: write `await next()` or `return next()`, not `next().then()`. A middleware that does neither gets a
 * line in the log; the middleware before it and the answer still wait for the rest of the chain.
 */
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'

/** Runs the rest of the chain. Call it once at most. */
export type Next = () => void | Promise<void>

/**
 * Written as methods, so that the compiler accepts a function that asks for a context with members of features, such as
 * `CoreContext & SessionMembers`. Which features a server has is decided where it is put together, in `app.ts`.
 */
interface Functions {
  middleware(ctx: CoreContext, next: Next): void | Promise<void>
  action(ctx: CoreContext): unknown
}

/** A middleware function. */
export type Middleware = Functions['middleware']

/** A middleware with the name under which a route asks for it. */
interface NamedMiddleware {
  readonly name: string
  readonly run: Middleware
}

/** An action: what it returns becomes the reply; undefined leaves what the context already replied. */
export type Action = Functions['action']

/** A whole route, ready to run. It throws or rejects with what the chain threw. */
export type Chain = (ctx: CoreContext) => Reply | Promise<Reply>

/** Receives problems that no answer can report. */
export interface ChainReports {
  /** An error after the request had been answered; only a `next()` that is not awaited causes one. */
  readonly late: (ctx: CoreContext, error: unknown) => void
  /** A middleware or an action did what has no effect, or a wrong one. The message says what to write. */
  readonly misuse: (ctx: CoreContext, message: string) => void
}

/**
 * Makes the chain of a route.
 * @param layers outermost first
 * @returns a chain that throws Error when a middleware calls `next()` twice
 */
export function compose(layers: readonly NamedMiddleware[], action: Action, reports: ChainReports): Chain {
  if (layers.length === 0) return (ctx) => runAction(ctx, action, reports)
  return (ctx) => {
    const pass = new Pass(ctx, layers, action, reports)
    let outcome: void | Promise<void>
    try {
      outcome = pass.enter(0)
    } catch (error) {
      return pass.fail(error)
    }
    if (!isThenable(outcome)) return pass.reply()
    return Promise.resolve(outcome).then(
      () => pass.reply(),
      (error: unknown) => pass.fail(error),
    )
  }
}

/** One run through the layers. */
class Pass {
  readonly #ctx: CoreContext
  readonly #layers: readonly NamedMiddleware[]
  readonly #action: Action
  readonly #reports: ChainReports
  /** Layers that have been called by `next()` and have not settled. */
  #open = 0
  /** The last error of a layer that was called by `next()`, and the reply at that time. */
  #failure: { readonly error: unknown; readonly reply: Reply | undefined } | undefined
  #finished = false
  /** Called when no layer is open any more. */
  #whenDone: (() => void) | undefined

  constructor(
    ctx: CoreContext,
    layers: readonly NamedMiddleware[],
    action: Action,
    reports: ChainReports,
  ) {
    this.#ctx = ctx
    this.#layers = layers
    this.#action = action
    this.#reports = reports
  }

  enter(index: number): void | Promise<void> {
    const layer = this.#layers[index]
    if (layer === undefined) {
      const outcome = runAction(this.#ctx, this.#action, this.#reports)
      return outcome instanceof Promise ? outcome.then(noValue) : undefined
    }
    let called = false
    let open = undefined as Promise<void> | undefined // The compiler does not see that `next` sets it.
    const outcome = layer.run(this.#ctx, () => {
      if (called) throw new Error(`Middleware ${layer.name} called next() twice: the rest of the chain runs once`)
      called = true
      if (this.#finished) {
        const error = new Error(`Middleware ${layer.name} called next() after the request had been answered`)
        return this.#reports.late(this.#ctx, error)
      }
      const below = this.#enterBelow(index + 1)
      if (!isThenable(below)) return
      open = this.#watch(Promise.resolve(below), () => (open = undefined))
      return open
    })
    if (!called) return this.#endsHere(layer, outcome)
    if (open === undefined || outcome === open) return outcome
    return Promise.resolve(outcome).then(() => open && this.#waitBelow(layer, open))
  }

  /** A synchronous error counts like a rejection, in case the middleware catches it without setting a reply. */
  #enterBelow(index: number): void | Promise<void> {
    try {
      return this.enter(index)
    } catch (error) {
      this.#noteFailure(error)
      throw error
    }
  }

  /** A layer that does not call `next()` ends the chain, so it must have replied. */
  #endsHere({ name }: NamedMiddleware, outcome: void | Promise<void>): void | Promise<void> {
    const check = (): void => {
      if (this.#ctx.reply !== undefined) return
      this.#reports.misuse(
        this.#ctx,
        `middleware ${name} neither replied nor called next(): the client gets 404; write \`await next()\` in it`,
      )
    }
    if (!isThenable(outcome)) return check()
    return Promise.resolve(outcome).then(check)
  }

  /** The layers before one that did not wait must wait all the same: a session is saved when the rest has ended. */
  #waitBelow({ name }: NamedMiddleware, below: Promise<void>): Promise<void> {
    this.#reports.misuse(
      this.#ctx,
      `middleware ${name} returned before next() was done: write \`await next()\` in it`,
    )
    return below
  }

  /**
   * The reply, when the outermost layer has returned. An error in the rest of the chain fails the request when no layer
   * awaited it, or when a middleware caught it without setting a reply.
   */
  reply(): Reply | Promise<Reply> {
    if (this.#open > 0) return this.#waitForLayers()
    this.#finished = true
    if (this.#failure !== undefined && this.#failure.reply === this.#ctx.reply) throw this.#failure.error
    return this.#ctx.currentReply()
  }

  /** Throws the error of the outermost layer. Layers that still run may fail later. */
  fail(error: unknown): never {
    this.#finished = true
    throw error
  }

  #waitForLayers(): Promise<Reply> {
    const names = this.#layers.map((layer) => layer.name).join(', ')
    this.#reports.misuse(
      this.#ctx,
      `a middleware returned before next() was done: write \`await next()\` in ${names}`,
    )
    return new Promise<void>((resolve) => {
      this.#whenDone = resolve
    }).then(() => this.reply())
  }

  #watch(outcome: Promise<void>, settled: () => void): Promise<void> {
    this.#open += 1
    outcome.then(
      () => {
        settled()
        this.#close()
      },
      (error: unknown) => {
        settled()
        this.#noteFailure(error)
        this.#close()
      },
    )
    return outcome
  }

  /** The same error passes through the layers; it counts once. */
  #noteFailure(error: unknown): void {
    if (this.#failure?.error === error) return
    this.#failure = { error, reply: this.#ctx.reply }
    if (this.#finished) this.#reports.late(this.#ctx, error)
  }

  #close(): void {
    this.#open -= 1
    if (this.#open === 0) this.#whenDone?.()
  }
}

function runAction(ctx: CoreContext, action: Action, reports: ChainReports): Reply | Promise<Reply> {
  const value = action(ctx)
  if (!isThenable(value)) return replyOf(ctx, value, reports)
  return Promise.resolve(value).then((settled) => replyOf(ctx, settled, reports))
}

function replyOf(ctx: CoreContext, value: unknown, reports: ChainReports): Reply {
  const { redirection } = ctx
  if (redirection === undefined || value === undefined || value === redirection) return ctx.replyOf(value)
  reports.misuse(ctx, 'the action returned a value after ctx.redirect(), which is dropped: return one of them')
  ctx.drop(value)
  ctx.status = redirection.status
  return (ctx.reply = redirection)
}

function noValue(): void {}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
