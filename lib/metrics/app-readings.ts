/**
 * Readings of an application's metrics. In a total of several processes too, a metric has at most 100 combinations of
 * label values; further ones count under `other`, so that values which clients choose cannot exhaust the memory.
 */
import { add, type Labelled } from './values.ts'

/** A metric of the application at one moment. */
export interface AppMetricReading {
  readonly name: string
  readonly kind: 'counter' | 'gauge'
  readonly help: string
  readonly labels: readonly string[]
  /** By its labels as they are in the Prometheus text; '' without labels. */
  readonly value: Labelled
}

/** The most combinations of label values of a metric, besides `other`. */
export const maxRows = 100
const overflow = 'other'

/** Adds up the metrics of several processes by name. Where two differ in kind or labels, the first counts. */
export function sumOfAppMetrics(lists: readonly (readonly AppMetricReading[])[]): AppMetricReading[] {
  const byName = new Map<string, AppMetricReading>()
  for (const metric of lists.flat()) {
    const { name, kind, labels } = metric
    const known = byName.get(name)
    if (known === undefined) byName.set(name, metric)
    else if (known.kind === kind && known.labels.join() === labels.join()) {
      byName.set(name, { ...known, value: add(known.value, metric.value, name) as Labelled })
    }
  }
  return [...byName.values()]
}

/** Returns the counts since an earlier reading, and current gauges. A counter that began anew counts as a whole. */
export function subtractAppMetrics(
  now: readonly AppMetricReading[],
  before: readonly AppMetricReading[],
): AppMetricReading[] {
  return now.map((metric) => {
    const earlier = before.find(({ name }) => name === metric.name)?.value ?? {}
    if (metric.kind === 'gauge') return metric
    const since = ([row, count]: [string, number]): [string, number] => {
      const was = earlier[row] ?? 0
      return [row, count < was ? count : count - was]
    }
    return { ...metric, value: Object.fromEntries(Object.entries(metric.value).map(since)) }
  })
}

/** The rows of totals. Of a metric the first 100 that occur stay, in whichever order later totals have them. */
export class TotalRows {
  readonly #byMetric = new Map<string, Set<string>>()

  /** Counts all other rows under `other`. */
  bound(metrics: readonly AppMetricReading[]): AppMetricReading[] {
    return metrics.map((metric) => {
      const key = identityOf(metric)
      const rows = this.#byMetric.get(key) ?? new Set<string>()
      this.#byMetric.set(key, rows)
      const other = overflowOf(metric.labels)
      const value: Record<string, number> = {}
      for (const [row, count] of Object.entries(metric.value)) {
        if (row !== other && rows.size < maxRows) rows.add(row)
        const shown = rows.has(row) ? row : other
        value[shown] = (value[shown] ?? 0) + count
      }
      return { ...metric, value }
    })
  }

  /** Forgets all metrics but these. */
  keep(identities: ReadonlySet<string>): void {
    for (const key of this.#byMetric.keys()) if (!identities.has(key)) this.#byMetric.delete(key)
  }
}

/** Returns the name, kind and labels of a metric in one text. */
export function identityOf({ name, kind, labels }: AppMetricReading): string {
  return `${kind} ${name} ${labels.join()}`
}

/** Returns the labels under which further combinations count. */
export function overflowOf(labels: readonly string[]): string {
  return labels.map((label) => labelOf(label, overflow)).join()
}

/** Renders a label for the Prometheus text. */
export function labelOf(name: string, value: string): string {
  return `${name}="${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
}
