/**
 * The configuration of middleware (`config.json`), and the error of one that cannot be used.
 */

/** The content of the file. */
export interface MiddlewareConfig {
  /** The file's absolute path. */
  readonly file: string
  /** Modules to load, relative to the folder, in this order. */
  readonly load: readonly string[]
  /** Settings of built-in middleware by group. */
  readonly setup: Readonly<Record<string, unknown>>
  /** Mistakes that do no harm, without the name of the file. */
  readonly warnings: readonly string[]
}

/** A middleware configuration or module that cannot be used. */
export class MiddlewareError extends Error {
  override readonly name = 'MiddlewareError'
  /** The file that is wrong; the first one where several are. */
  readonly file: string
  /** One for each file that is wrong; this one where it is alone. */
  readonly all: readonly MiddlewareError[]

  /** @param all the errors of several files that this one represents */
  constructor(file: string, message: string, options?: ErrorOptions & { readonly all?: readonly MiddlewareError[] }) {
    super(message, options)
    this.file = file
    this.all = options?.all ?? [this]
  }
}

/** One error for several, at least one. */
export function joinErrors(errors: readonly MiddlewareError[]): MiddlewareError {
  const [first, ...others] = errors as [MiddlewareError, ...MiddlewareError[]] // There is at least one.
  if (others.length === 0) return first
  return new MiddlewareError(first.file, errors.map(({ message }) => message).join('; '), { cause: first, all: errors })
}
