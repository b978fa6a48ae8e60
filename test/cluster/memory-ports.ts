import type { PeerPort } from '../../lib/cluster/peer.ts'

/** One end of an in-memory channel. */
export interface MemoryPort extends PeerPort {
  /** The messages sent from this end, as JSON, oldest first. */
  readonly sent: readonly string[]
  /** Closes both ends, at once. */
  close(): void
}

/**
 * Two ends of a channel in this process. As with processes, a message is JSON, arrives whole, in order, and in a
 * later turn; messages in transit at a close are lost.
 */
export function memoryPorts(): readonly [MemoryPort, MemoryPort] {
  let isOpen = true
  const closeListeners: (() => void)[] = []
  const close = (): void => {
    if (!isOpen) return
    isOpen = false
    for (const listener of closeListeners) listener()
  }
  const ends = [new End(close, closeListeners, () => isOpen), new End(close, closeListeners, () => isOpen)] as const
  ends[0].other = ends[1]
  ends[1].other = ends[0]
  return ends
}

class End implements MemoryPort {
  readonly sent: string[] = []
  readonly close: () => void
  readonly #closeListeners: (() => void)[]
  readonly #isOpen: () => boolean
  #listener: (message: unknown) => void = () => {}
  other: End | undefined = undefined

  constructor(close: () => void, closeListeners: (() => void)[], isOpen: () => boolean) {
    this.close = close
    this.#closeListeners = closeListeners
    this.#isOpen = isOpen
  }

  send(message: unknown, written: () => void): void {
    const text = JSON.stringify(message)
    this.sent.push(text)
    setImmediate(() => {
      written()
      if (this.#isOpen()) this.other?.receive(JSON.parse(text))
    })
  }

  receive(message: unknown): void {
    this.#listener(message)
  }

  onMessage(listener: (message: unknown) => void): void {
    this.#listener = listener
  }

  onClose(listener: () => void): void {
    this.#closeListeners.push(listener)
  }
}
