/**
 * The calls that one process has under way, each with a tag that what it causes is announced with: so the process knows
 * its own events when it hears of them, and holds them back until their call was answered.
 */
import { randomBytes } from 'node:crypto'

export class Calls {
  /** Random, so that no two processes have the same. */
  readonly process = randomBytes(9).toString('base64url')
  readonly #underWay = new Map<string, Promise<unknown>>()
  #count = 0

  /** Makes a call. @param work is given its tag, without spaces */
  run<T>(work: (tag: string) => Promise<T>): Promise<T> {
    const tag = `${this.process}.${++this.#count}`
    const call = work(tag)
    const over = (): void => void this.#underWay.delete(tag)
    this.#underWay.set(tag, call)
    call.then(over, over)
    return call
  }

  /**
   * Calls `go` when the call with a tag is over and who waited for it has gone on.
   * @returns false when it is over, or was another process's: then nothing is called
   */
  waitFor(tag: string, go: () => void): boolean {
    const call = this.#underWay.get(tag)
    if (call === undefined) return false
    const later = (): void => void setImmediate(go)
    call.then(later, later)
    return true
  }

  /** Resolves when all are over, those too that who waited for one has made then. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) {
      await Promise.allSettled(this.#underWay.values())
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}
