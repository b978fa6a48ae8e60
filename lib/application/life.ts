/**
 * The life of one server, as its parts see it: each registers what it warns of, what the server needs of it to be
 * ready, and what it does when the server stops and when it ends.
 */

/** How far a server is. */
export type Phase = 'new' | 'started' | 'stopping'

/** Collects what the parts say. */
export class Life {
  phase: Phase = 'new'
  readonly #warnings: (() => readonly string[])[] = []
  readonly #needs: (() => boolean)[] = []
  readonly #atStop: (() => void)[] = []
  readonly #atEnd: (() => unknown)[] = []

  /** @param source gives a line for each thing that the operator should know now */
  warns(source: () => readonly string[]): void {
    this.#warnings.push(source)
  }

  /** @param isMet whether the part can serve now */
  needs(isMet: () => boolean): void {
    this.#needs.push(isMet)
  }

  /** @param step called when a stop begins */
  atStop(step: () => void): void {
    this.#atStop.push(step)
  }

  /** @param step called when no request runs any more; the part that was made last ends first */
  atEnd(step: () => unknown): void {
    this.#atEnd.unshift(step)
  }

  /** What the operator should know, as `/svc-status` shows it. */
  warnings(): readonly string[] {
    return this.#warnings.flatMap((source) => source())
  }

  /** Whether the server takes requests: not from the moment a stop begins, nor while a part cannot serve. */
  readiness(): 'ready' | 'not ready' | 'stopping' {
    if (this.phase === 'stopping') return 'stopping'
    return this.phase !== 'new' && this.#needs.every((isMet) => isMet()) ? 'ready' : 'not ready'
  }

  /** Call it when a stop begins. */
  stop(): void {
    this.phase = 'stopping'
    for (const step of this.#atStop) step()
  }

  /** Ends the parts, one after the other. Rejects when one cannot be ended. */
  async end(): Promise<void> {
    for (const step of this.#atEnd) await step()
  }
}
