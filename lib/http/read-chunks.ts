/**
 * Reads a request to its end, chunk by chunk, no faster than the chunks are accepted.
 *
 * Surprise: when it fails it only stops reading. It does not destroy the request, so that an answer can still be sent
 * over its connection.
 */
import type { IncomingMessage } from 'node:http'

/** A reading that has begun. */
export interface Reading {
  /** Resolves when everything has come and was accepted; rejects with what `stop`, `accept` or its promise gave. */
  readonly done: Promise<void>
  /** Ends the reading with the reason that is made then. Does nothing once it has ended. */
  stop(makeReason: () => unknown): void
}

/**
 * Begins to read.
 *
 * @param request that nobody else reads from, and that has not ended
 * @param accept takes a chunk; while a promise that it returned is open no other chunk comes, and `done` waits for it
 * even after a failure. What it throws ends the reading.
 * @param clientClosed makes the reason for the case that the client leaves
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
  // The end comes right after the last chunk, even while the request is paused.
  const onEnd = (): void => {
    end()
    if (accepting === undefined) resolve()
    else accepting.then(resolve, reject)
  }
  const onClose = (): void => stop(clientClosed)

  request.on('data', onData).on('end', onEnd).on('close', onClose)
  return { done, stop }
}
