/**
 * Reads the values of settings by the rows of a table, for `svc.json` and for middleware.
 *
 * Nothing is converted: `"8080"` is not a port. Conversion would hide mistakes until one of them yields a wrong value.
 */

interface Common {
  /** One or two sentences for `docs/configuration.md`. */
  readonly meaning: string
  /** The value is a secret and not shown in messages. */
  readonly secret?: true
}

/** Checks a value of the correct type. Returns what it must be, `must be ...`; undefined if it is valid. */
export type Check<T> = (value: T) => string | undefined

/** A row of the table: the kind of its values, their limits, their default and the meaning of the key. */
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
    | {
        readonly kind: 'list'
        readonly default: readonly string[]
        /** Whether a comma-separated string is accepted too. */
        readonly commas?: true
        readonly check?: Check<string>
      }
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
          : string

/** A value, or its problem: a text to follow the key, `must be 0 to 65535: it is -1`. */
export type Reading = { readonly value: unknown } | { readonly problem: string }

/** Reads a value by its row. Lists are returned as frozen copies. */
export function readValue(row: Row, value: unknown): Reading {
  if (row.kind === 'list') return readList(row, value)
  const wrong = problemOf(row, value)
  return wrong === undefined ? { value } : { problem: `${wrong}: it is ${shown(row, value)}` }
}

/** Returns the allowed values of a row, for people: `0 to 65535`, `` `prod` or `dev` ``. */
export function allowedValues(row: Row): string {
  switch (row.kind) {
    case 'boolean':
      return 'true or false'
    case 'integer':
      return `${row.min} to ${row.max}`
    case 'integer or auto':
      return `${row.min} to ${row.max} or auto`
    case 'choice':
      return `${row.choices.slice(0, -1).join(', ')} or ${row.choices.at(-1)}`
    case 'list':
      return row.commas ? 'a list of strings, or a text with commas' : 'a list of strings'
    case 'string':
      return 'a string'
  }
}

function problemOf(row: Exclude<Row, { kind: 'list' }>, value: unknown): string | undefined {
  const must = `must be ${allowedValues(row)}`
  switch (row.kind) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : must
    case 'integer':
      return integerProblem(row, value, must)
    case 'integer or auto':
      if (value !== 'auto' && typeof value !== 'number') return must
      return (value === 'auto' ? undefined : integerProblem(row, value, must)) ?? row.check?.(value)
    case 'choice':
      return typeof value === 'string' && row.choices.includes(value) ? undefined : must
    case 'string':
      return typeof value === 'string' ? row.check?.(value) : must
  }
}

function integerProblem(row: { min: number; max: number }, value: unknown, must: string): string | undefined {
  if (typeof value !== 'number') return must
  if (!Number.isInteger(value)) return must.replace('must be', 'must be a whole number,')
  return value < row.min || value > row.max ? must : undefined
}

function readList(row: Row & { kind: 'list' }, value: unknown): Reading {
  if (row.commas && typeof value === 'string') {
    const entries = value.trim() === '' ? [] : value.split(',').map((entry) => entry.trim())
    return readList(row, entries)
  }
  if (!Array.isArray(value)) return { problem: `must be ${allowedValues(row)}: it is ${shown(row, value)}` }
  const entries: readonly unknown[] = value
  const list: string[] = []
  for (const [index, entry] of entries.entries()) {
    const wrong = typeof entry === 'string' ? row.check?.(entry) : 'must be a string'
    if (wrong !== undefined) {
      return { problem: `has a wrong entry ${index + 1}: it ${wrong}, and is ${shown(row, entry)}` }
    }
    list.push(entry as string) // Everything else has been refused.
  }
  return { value: Object.freeze(list) }
}

function shown(row: Row, value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`
  if (row.secret) return typeof value === 'string' ? 'a text that is not shown here' : `a ${typeof value}`
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return text.length > 80 ? `${text.slice(0, 80)}...` : text
}
