/**
 * The heartbeat of all open connections of a server: at its beats they ping those from which nothing came for a while,
 * cut those that do not answer, and cut those whose closing takes too long.
 */
import { Heartbeat, type Beating } from '../base/heartbeat.ts'

/** A connection, as the heartbeat sees it. */
export interface Peer extends Beating {
  /** Begins the closing handshake. */
  close(code: number, reason: string): void
}

export interface PeerHeartbeatOptions {
  /** Milliseconds of silence after which a peer is pinged, and as many again after which it is cut; 30,000. */
  readonly silenceMs?: number
  /** The most milliseconds that closing takes once it has begun; 2000. */
  readonly closeTimeoutMs?: number
}

/** Beats in the time that closing may take. What begins between two beats ends up to one beat early, never late. */
const closeBeats = 4

export class PeerHeartbeat extends Heartbeat<Peer> {
  /** Beats after which a silent peer is pinged, or cut. */
  readonly silentBeats: number
  /** Beats after which a connection that is closing is cut. */
  readonly closeBeats = closeBeats

  /** @throws RangeError when a time is not above 0 */
  constructor({ silenceMs = 30_000, closeTimeoutMs = 2000 }: PeerHeartbeatOptions = {}) {
    if (!(silenceMs > 0 && closeTimeoutMs > 0)) {
      throw new RangeError(`A heartbeat needs times above 0: silenceMs ${silenceMs}, closeTimeoutMs ${closeTimeoutMs}`)
    }
    const beatMs = closeTimeoutMs / closeBeats
    super(beatMs)
    this.silentBeats = Math.ceil(silenceMs / beatMs)
  }

  /** Begins to close all, as a server does that stops: 1001. They are gone within the close time-out. */
  closeAll(code: number, reason: string): void {
    this.forEach((peer) => peer.close(code, reason))
  }
}
