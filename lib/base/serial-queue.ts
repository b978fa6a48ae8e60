/** Runs tasks one at a time, in the order in which they were added. A failing task does not stop the next. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs a task when all earlier ones have ended. Resolves and rejects as the task does. */
  run<Result>(task: () => Result | Promise<Result>): Promise<Result> {
    const result = this.#last.then(task)
    this.#last = result.catch(() => undefined) // The caller gets the rejection.
    return result
  }

  /** Resolves when all tasks so far have ended, successfully or not. */
  async ended(): Promise<void> {
    await this.#last
  }
}
