/** Thrown by the action of a job that another try cannot help: the job is dead at once. */
export class JobFailed extends Error {
  override readonly name = 'JobFailed'

  /** @param reason the error of the job, as the panel shows it */
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options)
  }
}
