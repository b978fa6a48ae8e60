/**
 * Checks that the workers still answer, as the watchdog of a service manager does with a single process. A worker that
 * hangs, for example in an endless loop, is killed, and the supervisor starts another one.
 *
 * Surprise: time is counted in beats of this process. A primary that was suspended, or a machine that slept, would
 * otherwise kill healthy workers.
 */
import { Heartbeat } from '../base/heartbeat.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { DisconnectedError, type Peer } from './peer.ts'
import type { WorkerProcess } from './worker-process.ts'

type Watched = Pick<WorkerProcess, 'number' | 'peer' | 'kill'>

interface WatchOptions {
  readonly log: ModuleLogger
  /** Called with the number of a worker before it is killed. */
  readonly onHang?: (number: number) => void
  /** Beats without an answer after which a worker is killed; 0: never. */
  readonly patience: number
  /** Milliseconds between two beats; by default 1000. */
  readonly beatMs?: number
}

/** Beats without an answer after which a warning is logged; fewer when `patience` is short. */
const warnBeats = 10
/** The minimum patience for the first answer: starting takes time on a busy machine. */
const startPatience = 60
/** Unread characters of messages above which a worker counts as hung. */
const maxBacklog = 2 ** 26
/** The most missed beats of a worker that commands are sent to. */
const fewBeats = 2

/** Makes a watch without workers. */
export function createWatch({ log, patience, onHang = () => {}, beatMs = 1000 }: WatchOptions) {
  const heartbeat = new Heartbeat<Pulse>(beatMs)
  const pulses = new Map<number, Pulse>()
  return {
    /** Watches a worker until its channel closes. */
    attach: (worker: Watched): void => {
      const pulse = new Pulse(worker, log, patience, onHang)
      pulses.set(worker.number, pulse)
      heartbeat.add(pulse)
      void worker.peer.closed.then(() => {
        heartbeat.remove(pulse)
        if (pulses.get(worker.number) === pulse) pulses.delete(worker.number)
      })
    },
    /** Whether a worker has answered recently. */
    answers: (number: number): boolean => (pulses.get(number)?.missed ?? Infinity) <= fewBeats,
    /** Runs one beat, as the interval does. */
    beat: (): void => heartbeat.beat(),
    close: (): void => {
      for (const pulse of pulses.values()) heartbeat.remove(pulse)
    },
  }
}

/** The heartbeat of one worker. */
class Pulse {
  /** Beats since the call that the worker has not answered yet. */
  missed = 0
  readonly #worker: Watched
  readonly #log: ModuleLogger
  readonly #patience: number
  readonly #onHang: (number: number) => void
  #isPending = false
  #hasAnswered = false
  #isKilled = false

  constructor(worker: Watched, log: ModuleLogger, patience: number, onHang: (number: number) => void) {
    this.#worker = worker
    this.#log = log
    this.#patience = patience
    this.#onHang = onHang
    void this.#ask(worker.peer) // The worker answers as soon as it listens.
  }

  beat(): void {
    const { peer } = this.#worker
    if (peer.backlog > maxBacklog) {
      return this.#kill(`has not read ${Math.round(peer.backlog / 2 ** 20)} MB of messages`)
    }
    if (!this.#isPending) return void this.#ask(peer)
    this.missed += 1
    const patience = this.#hasAnswered ? this.#patience : Math.max(this.#patience, startPatience)
    if (this.#patience > 0 && this.missed >= patience) return this.#kill(`has not answered for ${this.missed} s`)
    if (this.missed === this.#warnAt) this.#log.warn(`${this.#name} has not answered for ${this.missed} s`)
  }

  async #ask(peer: Peer): Promise<void> {
    this.#isPending = true
    try {
      await peer.call('process.alive')
    } catch (error) {
      if (error instanceof DisconnectedError) return // The supervisor notices its end. Any other error is an answer.
    }
    if (this.missed >= this.#warnAt) this.#log.info(`${this.#name} answers again, after ${this.missed} s`)
    this.#isPending = false
    this.#hasAnswered = true
    this.missed = 0
  }

  get #name(): string {
    return `process ${this.#worker.number}`
  }

  get #warnAt(): number {
    return this.#patience === 0 ? warnBeats : Math.min(warnBeats, Math.ceil(this.#patience / 2))
  }

  #kill(why: string): void {
    if (this.#isKilled) return
    this.#isKilled = true
    this.#log.error(`${this.#name} ${why}: killing it`)
    this.#onHang(this.#worker.number)
    this.#worker.kill('SIGKILL')
  }
}
