/**
 * The life cycle of one server: each part registers its warnings, its readiness condition, and its steps for the stop
 * and the end of the server.
 */

/** Collects the warnings, conditions and steps of the parts. */
export class Life {
  #isLoaded = false
  #isStopping = false
  readonly #warnings: (() => readonly string[])[] = []
  readonly #needs: (() => boolean)[] = []
  readonly #atStop: (() => void)[] = []
  readonly #atEnd: (() => unknown)[] = []

  /** @param source returns a line for each current warning for the operator */
  warns(source: () => readonly string[]): void {
    this.#warnings.push(source)
  }

  /** @param isMet returns whether the part can serve now */
  needs(isMet: () => boolean): void {
    this.#needs.push(isMet)
  }

  /** @param step called when a stop begins */
  atStop(step: () => void): void {
    this.#atStop.push(step)
  }

  /** @param step called once no request runs; parts end in reverse order of registration */
  atEnd(step: () => unknown): void {
    this.#atEnd.unshift(step)
  }

  /** Returns the current warnings, as `/svc-status` shows them. */
  warnings(): readonly string[] {
    return this.#warnings.flatMap((source) => source())
  }

  /** Returns `stopping` once a stop begins; `not ready` until everything is loaded and while a part cannot serve. */
  readiness(): 'ready' | 'not ready' | 'stopping' {
    if (this.#isStopping) return 'stopping'
    return this.#isLoaded && this.#needs.every((isMet) => isMet()) ? 'ready' : 'not ready'
  }

  /** Call it when everything is loaded. */
  loaded(): void {
    this.#isLoaded = true
  }

  /** Call it when a stop begins. */
  stop(): void {
    this.#isStopping = true
    for (const step of this.#atStop) step()
  }

  /** Ends the parts, one after the other. Rejects when one cannot be ended. */
  async end(): Promise<void> {
    for (const step of this.#atEnd) await step()
  }
}
