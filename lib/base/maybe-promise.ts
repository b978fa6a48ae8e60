/**
 * Values that need no promise if they are available at once, such as from a store in memory.
 */

/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>

/** Calls `next` with a value: at once if it is not a promise. */
export function after<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}
