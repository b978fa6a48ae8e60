/**
 * Watches whether the workers still answer, as the watchdog of a service manager does for a server of one process: one that
 * hangs, in a loop that never ends say, is killed, and the supervisor puts another in its place.
 *
 * Surprise: time is counted in beats of this process. One that stood still itself, or a machine that slept, takes nobody
 * for dead.
 */
import { Heartbeat } from '../base/heartbeat.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { DisconnectedError, type Peer } from './peer.ts'

/** A worker as the watch sees it. */
export interface Watched {
  /** From 1. */
  readonly number: number
  readonly peer: Peer
  kill(signal: 'SIGKILL'): void
}

export interface WatchOptions {
  readonly log: ModuleLogger
  /** After so many beats without an answer a worker is killed; 0: never. */
  readonly patience: number
  /** Milliseconds from one beat to the next; 1000 unless given. */
  readonly beatMs?: number
}

export interface Watch {
  /** Watches a worker until its channel closes. */
  attach(worker: Watched): void
  /** Whether a worker has answered of late, so that it can be asked for something. */
  answers(number: number): boolean
  /** One beat: what the interval does. */
  beat(): void
  close(): void
}

/** After so many beats without an answer it is said; sooner, where a worker is killed sooner. */
const remarkable = 10
/** What has not answered yet is starting, which takes its time on a busy machine: it has so many beats at least. */
const startPatience = 60
/** What a worker has not read of what it was told, in characters, when it is taken for one that will never read it. */
const mostBacklog = 2 ** 26
/** Who has missed more beats than that is not the one to ask. */
const fewBeats = 2

/** Begins to watch; nobody as yet. */
export function createWatch({ log, patience, beatMs = 1000 }: WatchOptions): Watch {
  const heartbeat = new Heartbeat<Pulse>(beatMs)
  const pulses = new Map<number, Pulse>()
  return {
    attach: (worker) => {
      const pulse = new Pulse(worker, log, patience)
      pulses.set(worker.number, pulse)
      heartbeat.add(pulse)
      void worker.peer.closed.then(() => {
        heartbeat.remove(pulse)
        if (pulses.get(worker.number) === pulse) pulses.delete(worker.number)
      })
    },
    answers: (number) => (pulses.get(number)?.missed ?? Infinity) <= fewBeats,
    beat: () => heartbeat.beat(),
    close: () => {
      for (const pulse of pulses.values()) heartbeat.remove(pulse)
    },
  }
}

/** What is known of the life of one worker. */
class Pulse {
  /** Beats since it was asked something that it has not answered. */
  missed = 0
  readonly #worker: Watched
  readonly #log: ModuleLogger
  readonly #patience: number
  #isAsked = false
  #hasAnswered = false
  #isKilled = false

  constructor(worker: Watched, log: ModuleLogger, patience: number) {
    this.#worker = worker
    this.#log = log
    this.#patience = patience
    void this.#ask(worker.peer) // It answers as soon as it listens.
  }

  beat(): void {
    const { peer } = this.#worker
    if (peer.backlog > mostBacklog) {
      return this.#kill(`has not read ${Math.round(peer.backlog / 2 ** 20)} MB of what it was told`)
    }
    if (!this.#isAsked) return void this.#ask(peer)
    this.missed += 1
    const patience = this.#hasAnswered ? this.#patience : Math.max(this.#patience, startPatience)
    if (this.#patience > 0 && this.missed >= patience) return this.#kill(`has not answered for ${this.missed} s`)
    if (this.missed === this.#remarkable) this.#log.warn(`process ${this.#worker.number} has not answered for ${this.missed} s`)
  }

  async #ask(peer: Peer): Promise<void> {
    this.#isAsked = true
    try {
      await peer.call('process.alive')
    } catch (error) {
      if (error instanceof DisconnectedError) return // Its end is seen elsewhere. Any other error is an answer.
    }
    if (this.missed >= this.#remarkable) this.#log.info(`process ${this.#worker.number} answers again, after ${this.missed} s`)
    this.#isAsked = false
    this.#hasAnswered = true
    this.missed = 0
  }

  get #remarkable(): number {
    return this.#patience === 0 ? remarkable : Math.min(remarkable, Math.ceil(this.#patience / 2))
  }

  #kill(why: string): void {
    if (this.#isKilled) return
    this.#isKilled = true
    this.#log.error(`process ${this.#worker.number} ${why}: it is killed`)
    this.#worker.kill('SIGKILL')
  }
}
