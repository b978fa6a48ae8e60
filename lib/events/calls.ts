/** The calls of this process to a broker elsewhere that are not answered yet. */
import { randomBytes } from 'node:crypto'

/**
 * Each call has a tag, which the scripts of Redis publish along with an event: so the process recognizes its own
 * events, and holds them back until the call has been answered.
 */
export class Calls {
  /** Random, so that no two processes have the same. */
  readonly process = randomBytes(9).toString('base64url')
  readonly #underWay = new Map<string, Promise<unknown>>()
  #count = 0

  /** Starts a call. @param work receives the tag of the call, which has no spaces */
  run<T>(work: (tag: string) => Promise<T>): Promise<T> {
    const tag = `${this.process}.${++this.#count}`
    const call = work(tag)
    const over = (): void => void this.#underWay.delete(tag)
    this.#underWay.set(tag, call)
    call.then(over, over)
    return call
  }

  /**
   * Calls `go` once the call with this tag has been answered and its caller has continued.
   * @returns false when no such call is under way here; `go` is not called then
   */
  waitFor(tag: string, go: () => void): boolean {
    const call = this.#underWay.get(tag)
    if (call === undefined) return false
    const later = (): void => void setImmediate(go)
    call.then(later, later)
    return true
  }

  /** Resolves when no call is under way, including calls that the callers of these make next. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) {
      await Promise.allSettled(this.#underWay.values())
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}
