/**
 * Calls functions of another process over the channel: one side serves an object, the other side calls the same
 * functions, which return promises there.
 */
import type { Peer } from './peer.ts'

/** Functions that can be served. Arguments and results are JSON; an argument that is `undefined` arrives as `null`. */
type Functions<F> = { readonly [K in keyof F]: (...args: never[]) => unknown }

/** The same functions on the other side. Each rejects as `Peer.call` does. */
export type Remote<F extends Functions<F>> = {
  readonly [K in keyof F]: (...args: Parameters<F[K]>) => Promise<Awaited<ReturnType<F[K]>>>
}

/**
 * Serves functions under a name. Call it before the first message of the other side arrives.
 * @throws Error when the name is already served
 */
export function serve<F extends Functions<F>>(peer: Peer, name: string, functions: F): void {
  for (const [key, run] of Object.entries<(...args: never[]) => unknown>(functions)) {
    // The other side runs the same program, and calls the functions of `Remote`.
    peer.on(`${name}.${key}`, (args) => run(...(args as never[])))
  }
}

/** Returns the functions that the other side serves under a name. */
export function remote<F extends Functions<F>>(peer: Peer, name: string): Remote<F> {
  const functions: Record<string, (...args: unknown[]) => Promise<unknown>> = {}
  const get = (_: object, key: string): unknown =>
    (functions[key] ??= (...args: unknown[]) => peer.call(`${name}.${key}`, args))
  return new Proxy(functions, { get }) as unknown as Remote<F> // `serve` has a function for every name.
}
