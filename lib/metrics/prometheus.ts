/**
 * Renders the metrics for `/svc-metrics`, in the text format 0.0.4 of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats/).
 */
import type { CodeDigest } from '../proof/code-digest.ts'
import { labelOf } from './app-readings.ts'
import { bucketBoundsSeconds, bucketCounts, countOf, type Durations } from './histogram.ts'
import { countRequests } from './metrics.ts'
import type { Reading, ServerReading } from './reading.ts'
import { metricTable, type Metric, type MetricName } from './table.ts'
import { isDurations, type Value } from './values.ts'

/** The content type that the text is sent with. */
export const prometheusType = 'text/plain; version=0.0.4; charset=utf-8'

/** A value with its labels, each as `labelOf` renders it, with commas between them. */
type Row = readonly [labels: string, value: number | Durations]

/**
 * Renders the metrics. Names begin with `svc_`, with `app_` if they are the application's, and with `process_` if
 * Prometheus gives a convention for them. Units are seconds and bytes.
 * @param code the digests of the running code
 * @param server its readings since the start
 * @param nodes the nodes, if servers share an engine
 * @param certificateEndsMs the end of the certificate, in milliseconds since 1970, if the server has one
 */
export function renderPrometheus(
  code: CodeDigest,
  server: ServerReading,
  nodes?: readonly { readonly state: string }[],
  certificateEndsMs?: number,
): string {
  const { startedAtMs, uptimeSeconds, warnings, values } = server.total
  const live = nodes?.filter(({ state }) => state !== 'gone' && state !== 'unknown').length
  const { version, digest, tier1 } = code
  const build = Object.entries({ version, digest, tier1, node: process.versions.node })
  return [
    family('gauge', 'svc_build_info', 'The versions, and the digests of the code, in labels; always 1.',
      [[build.map(([name, value]) => labelOf(name, value)).join(), 1]]),
    single('gauge', 'svc_start_time_seconds', 'When the server started, since 1970.', startedAtMs / 1000),
    single('gauge', 'svc_uptime_seconds', 'How long the server has been running.', uptimeSeconds),
    ...tableFamilies(server.total),
    single('gauge', 'svc_config_last_reload_successful',
      'Whether the last reload of routes and certificates succeeded; 1 before the first.',
      Number(values.reloadRefused === 0)),
    single('gauge', 'svc_ready', 'Whether every process is ready, as /svc-ready reports it.',
      Number(values.notReady === 0)),
    certificateEndsMs === undefined ? '' : single('gauge', 'svc_tls_certificate_not_after_seconds',
      'When the certificate ends, since 1970.', certificateEndsMs / 1000),
    single('gauge', 'svc_warnings', 'Warnings that the status shows.', warnings.length),
    live === undefined ? '' : single('gauge', 'svc_nodes_live', 'Live nodes, including this one.', live),
    ...processFamilies(server),
    ...server.total.appMetrics.map(({ kind, name, help, value }) =>
      family(kind, name, help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n'), Object.entries(value))),
  ].join('')
}

/** The metrics of the table. Those of requests are shown by route. */
function tableFamilies({ values, routes }: Reading): string[] {
  const labelled = routes.map((route) => [labelOf('route', route.name), route.values] as const)
  const shown = Object.entries(metricTable).filter(([, metric]) => metric.name !== '')
  return shown.map(([key, { kind, name, help, label, byRoute }]) => {
    if (byRoute === undefined) return family(kind, name, help, rowsOfValue(values[key as MetricName], '', label))
    return family(kind, name, help, labelled.flatMap(([route, of]) => rowsOfValue(of[byRoute], route, label)))
  })
}

/** The metrics of each process, if there are several. */
function processFamilies({ parts }: ServerReading): string[] {
  if (parts === undefined) return []
  const { processes, ended } = parts
  const up = processes.map(({ id, responding }): Row => [labelOf('process', id), Number(responding)])
  const rows = (valueOf: (reading: Reading) => number | Durations | undefined): Row[] =>
    processes.flatMap(({ id, responding, reading }): Row[] => {
      const value = responding && reading !== undefined ? valueOf(reading) : undefined
      return value === undefined ? [] : [[labelOf('process', id), value]]
    })
  return [
    family('gauge', 'svc_process_up', 'Whether a process answered in time; 0 also for one that is not running.', up),
    family('gauge', 'svc_process_start_time_seconds', 'When a process started, since 1970.',
      rows(({ startedAtMs }) => startedAtMs / 1000)),
    family('counter', 'svc_process_requests_total', 'Requests answered by a process.',
      rows(({ values }) => countRequests(values.requests).total)),
    family('counter', 'svc_process_errors_total', 'Responses of a process with status 400 and above.',
      rows(({ values }) => countRequests(values.requests).errors)),
    family('gauge', 'svc_process_requests_active', 'Requests being served by a process.',
      rows(({ values }) => values.requestsActive)),
    family('gauge', 'svc_process_connections_open', 'Open connections of a process.',
      rows(({ values }) => values.connectionsOpen)),
    family('gauge', 'svc_process_memory_resident_bytes', 'Memory of a process.',
      rows(({ values }) => values.memoryResident)),
    family('gauge', 'svc_process_memory_heap_used_bytes', 'JavaScript heap in use by a process.',
      rows(({ values }) => values.heapUsed)),
    family('gauge', 'svc_process_memory_heap_limit_bytes', 'The heap size at which a process aborts.',
      rows(({ values }) => values.heapLimit)),
    family('gauge', 'svc_process_open_fds', 'Open file descriptors of a process.',
      rows(({ values }) => values.openDescriptors[''])),
    family('gauge', 'svc_process_max_fds', 'The most file descriptors that a process may have open.',
      rows(({ values }) => values.maxDescriptors[''])),
    family('histogram', 'svc_process_event_loop_delay_seconds',
      'How late a timer of a process fired, sampled every 50 ms.', rows(({ values }) => values.loopDelay)),
    family('counter', 'svc_process_event_loop_active_seconds_total', 'Time the event loop of a process did not wait.',
      rows(({ values }) => values.loopActive)),
    single('counter', 'svc_processes_ended_total', 'Processes that have ended, replaced or not.', ended.count),
  ]
}

/** The rows of a metric: one, or one for each label. The codes of a route are left out if they are 0. */
function rowsOfValue(value: Value, route: string, label: string): Row[] {
  if (typeof value === 'number' || isDurations(value)) return [[route, value]]
  const entries = Object.entries(value).filter(([, number]) => route === '' || number > 0)
  return entries.map(([each, number]) => [label === '' ? route : join(route, labelOf(label, each)), number])
}

function single(kind: Metric['kind'], name: string, help: string, value: number): string {
  return family(kind, name, help, [['', value]])
}

/** The lines of a metric: help, type and samples. */
function family(kind: Metric['kind'], name: string, help: string, rows: readonly Row[]): string {
  let text = `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`
  for (const [labels, value] of rows) {
    text += typeof value === 'number' ? sample(name, labels, value) : histogramSamples(name, labels, value)
  }
  return text
}

function histogramSamples(name: string, labels: string, durations: Durations): string {
  const counts = bucketCounts(durations)
  const count = countOf(durations)
  let text = ''
  bucketBoundsSeconds.forEach((bound, at) => {
    text += sample(`${name}_bucket`, join(labels, `le="${bound}"`), counts[at] as number)
  })
  text += sample(`${name}_bucket`, join(labels, 'le="+Inf"'), count)
  text += sample(`${name}_sum`, labels, durations.sumUs / 1e6)
  return text + sample(`${name}_count`, labels, count)
}

function sample(name: string, labels: string, value: number): string {
  return labels === '' ? `${name} ${value}\n` : `${name}{${labels}} ${value}\n`
}

function join(labels: string, label: string): string {
  return labels === '' ? label : `${labels},${label}`
}
