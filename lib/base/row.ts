/**
 * What a row of the configuration table may say, and the type of the values that it lets through.
 *
 * Surprise: the kind `switches` is one row in the table but many keys in the file, `trace.app`, `trace.server` and so
 * on.
 */

interface Common {
  /** One or two sentences for `docs/configuration.md`. */
  readonly meaning: string
  /** The value is a secret: no message shows it. */
  readonly secret?: true
}

/**
 * Looks at a value that has the right type. Returns what it must be (`must be ...`), undefined when it is that
 * already.
 */
export type Check<T> = (value: T) => string | undefined

/** A row of the table: the kind of its values, their limits, their default and what the key is for. */
export type Row = Common &
  (
    | { readonly kind: 'boolean'; readonly default: boolean }
    | { readonly kind: 'integer'; readonly min: number; readonly max: number; readonly default: number }
    | {
        readonly kind: 'integer or auto'
        readonly min: number
        readonly max: number
        readonly default: number | 'auto'
        readonly check?: Check<number | 'auto'>
      }
    | { readonly kind: 'string'; readonly default: string; readonly check?: Check<string> }
    | { readonly kind: 'choice'; readonly choices: readonly string[]; readonly default: string }
    | { readonly kind: 'list'; readonly default: readonly string[]; readonly check?: Check<string> }
    | { readonly kind: 'switches'; readonly names: readonly string[]; readonly default: boolean }
  )

/** The type of the values of a row. */
export type ValueOf<R extends Row> = R extends { kind: 'boolean' }
  ? boolean
  : R extends { kind: 'integer' }
    ? number
    : R extends { kind: 'integer or auto' }
      ? number | 'auto'
      : R extends { kind: 'choice'; choices: readonly (infer Choice)[] }
        ? Choice
        : R extends { kind: 'list' }
          ? readonly string[]
          : R extends { kind: 'switches'; names: readonly (infer Name extends string)[] }
            ? Readonly<Record<Name, boolean>>
            : string
