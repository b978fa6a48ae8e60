/**
 * The turn of all nodes: whoever has it may change what they have in common. It is a lock in the shared engine that runs
 * out unless it is renewed, so that a node that died holds up nobody for long.
 *
 * Surprise: a node that stood still may have lost its turn without knowing. So nothing relies on having it but a script
 * that looks.
 */
import { randomUUID } from 'node:crypto'
import type { Redis } from '../redis/client.ts'
import { integerIn, listIn } from '../redis/reply.ts'
import { positionIn, type Position } from './position.ts'
import type { NodeKeys, NodeScripts } from './scripts.ts'

/** A turn that one has. */
export interface HeldTurn {
  /** What shows that one has it. */
  readonly token: string
  /** Where the state stood when the turn began. */
  readonly position: Position
  /** The engine's time then, in milliseconds. */
  readonly nowMs: number
  /** Lets the next one begin. To be called once; never rejects. */
  end(): Promise<void>
}

export interface TurnLockOptions {
  readonly redis: Redis
  readonly keys: NodeKeys
  readonly scripts: NodeScripts
  /** After how many milliseconds the turn of a node that died ends; 5000 unless given. */
  readonly holdMs?: number
  /** How often to look, in milliseconds, where nobody said that a turn has ended; 250 unless given. */
  readonly lookEveryMs?: number
}

/** What is told on the channel of all when a turn has ended. */
export const turnEnded = JSON.stringify({ kind: 'turn-ended' })

/** Takes turns, one after the other. */
export class TurnLock {
  readonly #options: TurnLockOptions
  #last: Promise<unknown> = Promise.resolve()
  #wake = (): void => {}

  constructor(options: TurnLockOptions) {
    this.#options = options
  }

  /**
   * Waits until no other node, and nobody else here, has the turn.
   * @throws RedisAwayError, RedisReplyError
   */
  take(): Promise<HeldTurn> {
    let free: () => void = () => {}
    const freed = new Promise<void>((resolve) => (free = resolve))
    const taken = this.#last.then(() => this.#acquire(free))
    this.#last = taken.then(
      () => freed,
      () => {},
    )
    return taken
  }

  /** To be called when a turn of another node has ended. */
  look(): void {
    this.#wake()
  }

  async #acquire(free: () => void): Promise<HeldTurn> {
    const { scripts, keys, holdMs = 5000 } = this.#options
    const token = randomUUID()
    for (;;) {
      const woken = this.#next()
      const reply = listIn(await scripts.lock.run([keys.state, keys.lock], token, holdMs))
      if (integerIn(reply[0]) === 1) {
        this.#wake()
        return { token, position: positionIn(reply[1], reply[2]), nowMs: integerIn(reply[3]), end: this.#hold(token, free) }
      }
      await woken
    }
  }

  /** Resolves when it is time to try again. */
  #next(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#options.lookEveryMs ?? 250)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Renews the lock until the turn ends. */
  #hold(token: string, free: () => void): () => Promise<void> {
    const { scripts, keys, holdMs = 5000 } = this.#options
    const goOn = (): void => {} // The script that records the change looks whether the turn is still had.
    const renewal = setInterval(() => void scripts.renew.run([keys.lock], token, holdMs).catch(goOn), holdMs / 4)
    return async () => {
      clearInterval(renewal)
      await scripts.unlock.run([keys.lock], token, keys.channel, turnEnded).catch(goOn) // It runs out by itself.
      free()
    }
  }
}
