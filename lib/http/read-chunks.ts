/**
 * Reads a request to its end, chunk by chunk, with backpressure. A failure only stops the read: the request is not
 * destroyed, so that a response can still be sent on its connection.
 */
import type { IncomingMessage } from 'node:http'

/** A read in progress. */
export interface Reading {
  /** Resolves when everything was read and accepted; rejects as incomplete, or with the error of `accept`. */
  readonly done: Promise<void>
  /** Ends the read as incomplete. Does nothing after its end. */
  stop(): void
}

/** Called while a read waits for its client. */
export interface ReadingWait {
  /**
   * Sets the bytes that the read holds in memory.
   * @throws HttpError 503 when all reads together hold too much
   */
  hold(bytes: number): void
  /**
   * Call when the read has ended.
   * @param proceed called later, when the request may continue
   * @returns whether it may continue at once; then `proceed` is not called
   */
  end(proceed: () => void): boolean
}

/**
 * Starts to read.
 * @param request a request that has not ended and that no other code reads
 * @param accept receives a chunk. If it returns a promise, the next chunk and `done` wait for it, even after a failure.
 *   If it throws, the read ends
 * @param incomplete makes the error of a read that was stopped, or whose client has disconnected
 * @param wait its `end` is called before `done` settles
 */
export function readChunks(
  request: IncomingMessage,
  accept: (chunk: Buffer) => Promise<void> | undefined,
  incomplete: () => Error,
  wait?: ReadingWait,
): Reading {
  let accepting: Promise<void> | undefined
  let ended = false
  let resolve = (_accepting?: Promise<void>): void => {}
  let reject = (_reason: unknown): void => {}
  const done = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })

  const fail = (reason: unknown): void => {
    if (ended) return
    ended = true
    request.pause()
    const settle = (): void => settleAfterWait(() => reject(reason))
    Promise.resolve(accepting).then(settle, settle)
  }
  const settleAfterWait = (proceed: () => void): void => {
    if (wait === undefined || wait.end(proceed)) proceed()
  }
  const stop = (): void => {
    if (!ended) fail(incomplete())
  }
  const onData = (chunk: Buffer): void => {
    if (ended) return // Node discards the rest of the body.
    try {
      accepting = accept(chunk)
    } catch (error) {
      return fail(error)
    }
    if (accepting === undefined) return
    request.pause()
    accepting.then(onAccepted, fail)
  }
  const onAccepted = (): void => {
    accepting = undefined
    if (!ended) request.resume()
  }
  // `end` comes right after the last chunk, even while the request is paused.
  const onEnd = (): void => {
    if (ended) return
    ended = true
    settleAfterWait(() => resolve(accepting))
  }

  // The listeners stay: removing them costs more than checking whether the read has ended.
  request.on('data', onData).on('end', onEnd).on('close', stop)
  return { done, stop }
}
