/**
 * The text format 0.0.4 of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/).
 */
import { bucketBoundsSeconds, type DurationTotals } from './duration-buckets.ts'

/** The content type that the text is sent with. */
export const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** A sample: its labels as `labels` renders them, and its value. */
export type Row = readonly [labels: string, value: number]

/** The labels of a sample, values escaped: `route="a",code="2xx"`. */
export function labels(named: Readonly<Record<string, string>>): string {
  return Object.entries(named)
    .map(([name, value]) => `${name}="${escapeValue(value)}"`)
    .join(',')
}

/** A counter or gauge with its help, its type and its samples. `help` is one line without a backslash. */
export function family(type: 'counter' | 'gauge', name: string, help: string, rows: readonly Row[]): string {
  let text = head(type, name, help)
  for (const [named, value] of rows) text += sample(name, named, value)
  return text
}

/** A histogram of durations in seconds. */
export function histogram(name: string, help: string, rows: readonly (readonly [string, DurationTotals])[]): string {
  let text = head('histogram', name, help)
  for (const [named, durations] of rows) {
    const prefix = named === '' ? '' : `${named},`
    bucketBoundsSeconds.forEach((bound, at) => {
      text += sample(`${name}_bucket`, `${prefix}le="${bound}"`, durations.cumulative[at] as number)
    })
    text += sample(`${name}_bucket`, `${prefix}le="+Inf"`, durations.count)
    text += sample(`${name}_sum`, named, durations.sumSeconds)
    text += sample(`${name}_count`, named, durations.count)
  }
  return text
}

function head(type: string, name: string, help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
}

function sample(name: string, named: string, value: number): string {
  return named === '' ? `${name} ${value}\n` : `${name}{${named}} ${value}\n`
}

function escapeValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
