/**
 * The one error that views throw: it names the view's file and line, whatever went wrong there.
 */

/** A view that cannot be found, compiled or rendered. The message begins with the file and the line. */
export class ViewError extends Error {
  override readonly name = 'ViewError'
  /** The view's file relative to the application's root, with `/`; as asked for, when there is no such file. */
  readonly file: string
  /** The line, from 1; 0 when the file as a whole is meant. */
  readonly line: number
  /** What is wrong, without file and line. */
  readonly reason: string

  /** @param options `cause`: the error that the view's expression threw */
  constructor(file: string, line: number, reason: string, options: { cause?: unknown } = {}) {
    super(`${line === 0 ? file : `${file}:${line}`}: ${reason}`, options)
    this.file = file
    this.line = line
    this.reason = reason
  }
}
