/**
 * The values of metrics, with their sum (a total over processes) and their difference (a window).
 */
import { addDurations, subtractDurations, type Durations } from './histogram.ts'

/** The value of a metric: a number, several numbers with a label, or a histogram. */
export type Value = number | Labelled | Durations

/** Numbers by the value of a label. One whose number may be unknown has no label: `{}`, or `{ '': 3 }`. */
export type Labelled = Readonly<Record<string, number>>

/** Combines two values of one metric, which have the same shape. */
export type Operation = (a: Value, b: Value, name: string) => Value

/** Adds number to number and cell to cell. */
export const add: Operation = (a, b) => combine(a, b, (x, y) => x + y, addDurations)

/** Subtracts number from number and cell from cell. */
export const subtract: Operation = (a, b) => combine(a, b, (x, y) => x - y, subtractDurations)

/** Combines two sets of values with the same names. */
export function combineAll<Values extends Readonly<Record<string, Value>>>(
  a: Values,
  b: Values,
  operation: Operation,
): Values {
  const combined = Object.keys(a).map((name) => [name, operation(a[name] as Value, b[name] as Value, name)])
  return Object.fromEntries(combined) as Values // It has an entry for each name.
}

/** Returns a number that may be unknown as a value of a metric. */
export function optional(number: number | undefined): Labelled {
  return number === undefined ? {} : { '': number }
}

/** Whether a value is a histogram. */
export function isDurations(value: Value): value is Durations {
  return typeof value === 'object' && Array.isArray(value.cells)
}

/** Rounds to three decimals: enough for a reader of metrics, and short in JSON. */
export function round3(value: number): number {
  return Math.round(value * 1000) / 1000
}

/** Converts bytes to units of 2^20, with one decimal. */
export function megabytes(bytes: number): number {
  return Math.round((bytes / 2 ** 20) * 10) / 10
}

function combine(
  a: Value,
  b: Value,
  onNumbers: (a: number, b: number) => number,
  onDurations: typeof addDurations,
): Value {
  if (typeof a === 'number') return onNumbers(a, b as number) // Both have the same shape; so below.
  if (isDurations(a)) return onDurations(a, b as Durations)
  const other = b as Labelled
  const labels = Object.keys({ ...a, ...other }) // One process may have a label that another lacks.
  return Object.fromEntries(labels.map((label) => [label, onNumbers(a[label] ?? 0, other[label] ?? 0)]))
}
