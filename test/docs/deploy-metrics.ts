/** The alert rules and the dashboard of docs/deploy, and the metrics that they use. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** `docs/deploy` */
export const deployFolder = fileURLToPath(new URL('../../docs/deploy/', import.meta.url))

interface Dashboard {
  readonly schemaVersion: number
  readonly annotations: { readonly list: readonly { readonly expr: string }[] }
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string; readonly query: string }[] }
  readonly panels: readonly {
    readonly type: string
    readonly datasource?: { readonly uid: string }
    readonly targets?: readonly { readonly expr: string }[]
  }[]
}

export const dashboard = JSON.parse(readFileSync(`${deployFolder}svc.dashboard.json`, 'utf8')) as Dashboard
const rules = readFileSync(`${deployFolder}svc.rules.yml`, 'utf8')

/** The queries of the dashboard, with a value for each variable of Grafana. */
export function expressionsOfDashboard(): string[] {
  const { panels, annotations } = dashboard
  const all = [...panels.flatMap(({ targets = [] }) => targets), ...annotations.list]
  const values = { $__rate_interval: '5m', $__range: '1h', $job: 'svc', $instance: '.*' }
  return all.map(({ expr }) => Object.entries(values).reduce((text, [name, value]) => text.replaceAll(name, value), expr))
}

/** The names of the metrics that rules and dashboard use. */
export function usedMetrics(): Set<string> {
  const queries = [rules, ...expressionsOfDashboard(), ...dashboard.templating.list.map(({ query }) => query)]
  return new Set(queries.flatMap((query) => query.match(/\b(?:svc|process)_\w+/g) ?? []))
}

/** The names of the samples in a Prometheus text, those too of families that have none yet. */
export function namesIn(text: string): string[] {
  return [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = '', type]) =>
    type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => name + suffix) : [name],
  )
}
