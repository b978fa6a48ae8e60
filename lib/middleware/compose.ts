/**
 * Joins a route's middleware and its action into one function, made once, when the route is registered.
 *
 * Middleware is an onion: `(ctx, next) => { before; await next(); after }`. What it returns is not looked at; the reply
 * is what the action returned or what somebody set with `ctx.json()` and the like.
 *
 * Surprise: nothing here is asynchronous by itself. A chain of synchronous functions is answered without a promise,
 * which is why `next()` returns `void | Promise<void>`: write `await next()` or `return next()`, not `next().then()`.
 */
import type { Context } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'

/** Runs the rest of the chain. It may be called once. */
export type Next = () => void | Promise<void>

/** A middleware function. */
export type Middleware = (ctx: Context, next: Next) => void | Promise<void>

/** A middleware with the name under which a route asks for it. */
export interface NamedMiddleware {
  readonly name: string
  readonly run: Middleware
}

/** An action: what it returns becomes the reply; undefined leaves what the context already replied. */
export type Action = (ctx: Context) => unknown

/** A whole route, ready to run. It throws or rejects with what the chain threw. */
export type Chain = (ctx: Context) => Reply | Promise<Reply>

/**
 * Makes the chain of a route.
 * @param layers outermost first
 * @param late is told of a failure that came after the reply had been given, which only an unawaited `next()` can cause
 * @returns a chain that throws Error when a middleware calls `next()` twice, or does not wait for it
 */
export function compose(
  layers: readonly NamedMiddleware[],
  action: Action,
  late: (ctx: Context, error: unknown) => void,
): Chain {
  if (layers.length === 0) return (ctx) => runAction(ctx, action)
  return (ctx) => {
    const pass = new Pass(ctx, layers, action, late)
    const outcome = pass.enter(0)
    return isThenable(outcome) ? Promise.resolve(outcome).then(() => pass.reply()) : pass.reply()
  }
}

/** One run through the layers. */
class Pass {
  readonly #ctx: Context
  readonly #layers: readonly NamedMiddleware[]
  readonly #action: Action
  readonly #late: (ctx: Context, error: unknown) => void
  /** Layers below that have been called and not yet settled. */
  #open = 0
  #finished = false

  constructor(
    ctx: Context,
    layers: readonly NamedMiddleware[],
    action: Action,
    late: (ctx: Context, error: unknown) => void,
  ) {
    this.#ctx = ctx
    this.#layers = layers
    this.#action = action
    this.#late = late
  }

  enter(index: number): void | Promise<void> {
    const layer = this.#layers[index]
    if (layer === undefined) {
      const outcome = runAction(this.#ctx, this.#action)
      return isThenable(outcome) ? outcome.then((reply) => this.#take(reply)) : this.#take(outcome)
    }
    let called = false
    return layer.run(this.#ctx, () => {
      if (called) throw new Error(`Middleware ${layer.name} called next() twice: the rest of the chain runs once`)
      called = true
      const outcome = this.enter(index + 1)
      return isThenable(outcome) ? this.#watch(Promise.resolve(outcome)) : outcome
    })
  }

  /** The reply, once the outermost layer has returned. */
  reply(): Reply {
    this.#finished = true
    if (this.#open === 0) return this.#ctx.currentReply()
    const names = this.#layers.map((layer) => layer.name).join(', ')
    throw new Error(`A middleware returned before next() was done: write \`await next()\` in one of ${names}`)
  }

  #take(reply: Reply): void {
    this.#ctx.reply = reply
  }

  #watch(outcome: Promise<void>): Promise<void> {
    this.#open += 1
    outcome.then(
      () => {
        this.#open -= 1
      },
      (error: unknown) => {
        this.#open -= 1
        if (this.#finished) this.#late(this.#ctx, error)
      },
    )
    return outcome
  }
}

function runAction(ctx: Context, action: Action): Reply | Promise<Reply> {
  const value = action(ctx)
  return isThenable(value) ? Promise.resolve(value).then((settled) => ctx.replyOf(settled)) : ctx.replyOf(value)
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
