/** What an access log in the `combined` form adds up to, and that each of its lines has that form. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** Requests and what was sent for them. */
export interface Totals {
  readonly requests: number
  /** By the first digit of the status, `2xx`; without those that are 0. */
  readonly byClass: Readonly<Record<string, number>>
  /** Bytes of bodies. */
  readonly bytes: number
}

/** No requests. */
export const nothing: Totals = { requests: 0, byClass: {}, bytes: 0 }

const combined = /^\S+ - - \[\d\d\/\w{3}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "\S+ \S+ HTTP\/\d\.\d" (\d)\d\d (\d+|-) "[^"]*" "[^"]*"$/

/** Adds two up. */
export function add(a: Totals, b: Totals): Totals {
  const classes = [...new Set([...Object.keys(a.byClass), ...Object.keys(b.byClass)])].sort()
  const counts = classes.map((name) => [name, (a.byClass[name] ?? 0) + (b.byClass[name] ?? 0)] as const)
  const byClass = Object.fromEntries(counts.filter(([, count]) => count > 0))
  return { requests: a.requests + b.requests, byClass, bytes: a.bytes + b.bytes }
}

/** Adds the lines of a file up. Throws at a line of another form. */
export async function readAccessTotals(file: string): Promise<Totals> {
  let requests = 0
  let bytes = 0
  const byClass: Record<string, number> = {}
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const [, digit = '', size = ''] = combined.exec(line) ?? []
    if (digit === '') throw new Error(`${file} has a line that is not in the form combined: ${line}`)
    requests += 1
    if (size !== '-') bytes += Number(size)
    byClass[`${digit}xx`] = (byClass[`${digit}xx`] ?? 0) + 1
  }
  return add({ requests, byClass, bytes }, nothing)
}
