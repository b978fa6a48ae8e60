/**
 * Runs tasks one after the other, in the order in which they came. A task that fails does not hold up the next one.
 */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs a task when all before it have ended. Resolves and rejects as the task does. */
  run<Result>(task: () => Result | Promise<Result>): Promise<Result> {
    const result = this.#last.then(task)
    this.#last = result.catch(() => undefined) // Its caller is told.
    return result
  }

  /** Resolves when all tasks that have come so far have ended, however they ended. */
  async ended(): Promise<void> {
    await this.#last
  }
}
