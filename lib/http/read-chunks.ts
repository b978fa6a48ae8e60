/**
 * Reads a request to its end, chunk by chunk, no faster than the chunks are accepted. A failure only stops the reading:
 * the request is not destroyed, so that an answer can still be sent on its connection.
 */
import type { IncomingMessage } from 'node:http'

/** A reading. */
export interface Reading {
  /** Resolves when everything was read and accepted; rejects with the reason of `stop` or the error of `accept`. */
  readonly done: Promise<void>
  /** Ends the reading with a reason. Does nothing after its end. */
  stop(makeReason: () => unknown): void
}

/**
 * Begins to read.
 * @param request that has not ended and is not read elsewhere
 * @param accept takes a chunk. The next chunk waits for a promise that it returns, and so does `done`, even after a
 *   failure. An error that it throws ends the reading
 * @param clientClosed makes the reason when the client disconnects
 */
export function readChunks(
  request: IncomingMessage,
  accept: (chunk: Buffer) => Promise<void> | undefined,
  clientClosed: () => Error,
): Reading {
  let accepting: Promise<void> | undefined
  let ended = false
  let resolve = (): void => {}
  let reject = (_reason: unknown): void => {}
  const done = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })

  const end = (): void => {
    ended = true
    request.off('data', onData).off('end', onEnd).off('close', onClose)
  }
  const stop = (makeReason: () => unknown): void => {
    if (ended) return
    end()
    request.pause()
    const reason = makeReason()
    const settle = (): void => reject(reason)
    if (accepting === undefined) settle()
    else accepting.then(settle, settle)
  }
  const onData = (chunk: Buffer): void => {
    try {
      accepting = accept(chunk)
    } catch (error) {
      return stop(() => error)
    }
    if (accepting === undefined) return
    request.pause()
    accepting.then(onAccepted, (error: unknown) => stop(() => error))
  }
  const onAccepted = (): void => {
    accepting = undefined
    if (!ended) request.resume()
  }
  // `end` comes right after the last chunk, even while the request is paused.
  const onEnd = (): void => {
    end()
    if (accepting === undefined) resolve()
    else accepting.then(resolve, reject)
  }
  const onClose = (): void => stop(clientClosed)

  request.on('data', onData).on('end', onEnd).on('close', onClose)
  return { done, stop }
}
