/**
 * Functions of one process that another one calls over their channel: one side serves an object, the other has the same
 * functions with promises.
 */
import type { Peer } from './peer.ts'

/** Functions that can be served. What they take and give is JSON, and `undefined` is `null` where it is taken. */
type Functions<F> = { readonly [K in keyof F]: (...taken: never[]) => unknown }

/** The same functions as the other side has them: each rejects as `Peer.call` does. */
export type Remote<F extends Functions<F>> = {
  readonly [K in keyof F]: (...taken: Parameters<F[K]>) => Promise<Awaited<ReturnType<F[K]>>>
}

/**
 * Serves functions under a name; call it before anything has come from the other side.
 * @throws Error for a name that is served already
 */
export function serve<F extends Functions<F>>(peer: Peer, name: string, functions: F): void {
  for (const [key, run] of Object.entries<(...taken: never[]) => unknown>(functions)) {
    // The other side is of the same program, and calls what `Remote` has.
    peer.on(`${name}.${key}`, (taken) => run(...(taken as never[])))
  }
}

/** The functions that the other side serves under a name. */
export function remote<F extends Functions<F>>(peer: Peer, name: string): Remote<F> {
  const functions: Record<string, (...taken: unknown[]) => Promise<unknown>> = {}
  const get = (_: object, key: string): unknown =>
    (functions[key] ??= (...taken: unknown[]) => peer.call(`${name}.${key}`, taken))
  return new Proxy(functions, { get }) as unknown as Remote<F> // Whatever is asked for, `serve` has it.
}
