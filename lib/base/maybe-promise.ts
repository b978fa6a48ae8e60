/**
 * Values that may be there at once: a store in memory answers without a promise.
 */

export type MaybePromise<T> = T | Promise<T>

/** Goes on with a value: at once when it is there. */
export function after<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}
