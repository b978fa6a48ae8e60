/** A number with three decimals at most: what a reader of metrics needs, and short in JSON. */
export function round3(value: number): number {
  return Math.round(value * 1000) / 1000
}
