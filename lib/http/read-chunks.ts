/**
 * Reads a request to its end, chunk by chunk, no faster than the chunks are accepted. A failure only stops the reading:
 * the request is not destroyed, so that an answer can still be sent on its connection.
 */
import type { IncomingMessage } from 'node:http'

/** A reading. */
export interface Reading {
  /** Resolves when everything was read and accepted; rejects as incomplete, or with the error of `accept`. */
  readonly done: Promise<void>
  /** Ends the reading as incomplete. Does nothing after its end. */
  stop(): void
}

/** What is done while a reading waits for its client. */
export interface ReadingWait {
  /**
   * Counts the bytes that the reading holds in memory now.
   * @throws HttpError 503 when all readings together hold too much
   */
  hold(bytes: number): void
  /**
   * Call when the reading has ended.
   * @param proceed called later, when the request may go on
   * @returns whether it may go on at once; `proceed` is not called then
   */
  end(proceed: () => void): boolean
}

/**
 * Begins to read.
 * @param request that has not ended and is not read elsewhere
 * @param accept takes a chunk. The next chunk waits for a promise that it returns, and so does `done`, even after a
 *   failure. An error that it throws ends the reading
 * @param incomplete makes the error of a reading that was stopped, or whose client has disconnected
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
    const settle = (): void => goOn(() => reject(reason))
    Promise.resolve(accepting).then(settle, settle)
  }
  const goOn = (proceed: () => void): void => {
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
    goOn(() => resolve(accepting))
  }

  // The listeners stay: to remove them costs more than to ask whether the reading has ended.
  request.on('data', onData).on('end', onEnd).on('close', stop)
  return { done, stop }
}
