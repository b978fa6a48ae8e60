/**
 * Measurements as tables in Markdown. All ratios are made round by round, and are medians; behind them stands the
 * interval of the sign test.
 *
 * A ratio of time is bare's time divided by the server's, so that above 1 is always faster than bare.
 */
import { medianInterval, median, ratios } from '../support/statistics.ts'
import type { Measurement, Sample, ServerFigures } from './measure.ts'

/** What the document has below one heading. */
export interface Section {
  readonly title: string
  readonly note: string
  /** Lines of the table's body. */
  readonly rows: readonly string[]
  /** A line each, `- server: ...`. */
  readonly differences: readonly string[]
}

const columns = [
  'Node',
  'connections',
  'server',
  'requests/s',
  'requests/s to bare',
  'CPU µs',
  'CPU to bare',
  'p50 ms',
  'p99 ms',
  'p99 over bare',
  'MiB at rest, after',
  'svc is',
]

/** The head of every table. */
export const tableHead = [`| ${columns.join(' | ')} |`, `|${' --- |'.repeat(columns.length)}`]

/** The measurements of one workload as a section. The list must not be empty, nor mix workloads. */
export function toSection(measurements: readonly Measurement[]): Section {
  const [first] = measurements
  if (first === undefined) throw new RangeError('A section needs a measurement')
  const { title, note } = first.workload
  const differences = [...first.differences].map(([server, text]) => `- ${server}: ${text}`)
  return { title, note, rows: measurements.flatMap(rowsOf), differences }
}

/** A section as the document has it. */
export function renderSection({ title, note, rows, differences }: Section): string {
  const notes = differences.length === 0 ? [] : ['', 'Header fields that differ:', '', ...differences]
  return [`### ${title}`, '', note, '', ...tableHead, ...rows, ...notes, ''].join('\n')
}

function rowsOf({ node, connections, servers }: Measurement): string[] {
  const bare = servers.find(({ server }) => server === 'bare')?.samples ?? []
  const svc = servers.find(({ server }) => server === 'svc')?.samples
  return servers.map((figures) => {
    const cells = [node, connections, figures.server, ...figuresOf(figures, bare), toSvc(figures, svc)]
    return `| ${cells.join(' | ')} |`
  })
}

function figuresOf({ samples, restMiB, loadedMiB }: ServerFigures, bare: readonly Sample[]): string[] {
  const own = listsOf(samples)
  const others = listsOf(bare)
  return [
    thousands(median(own.rates)),
    withInterval(ratios(own.rates, others.rates)),
    median(own.cpu).toFixed(1),
    withInterval(ratios(others.cpu, own.cpu)),
    median(own.p50).toFixed(2),
    median(own.p99).toFixed(2),
    median(ratios(own.p99, others.p99)).toFixed(2),
    `${restMiB.toFixed(0)}, ${loadedMiB.toFixed(0)}`,
  ]
}

/** How many times the server's requests per second svc has; '' for svc itself. */
function toSvc({ server, samples }: ServerFigures, svc: readonly Sample[] | undefined): string {
  if (svc === undefined || server === 'svc') return ''
  return withInterval(ratios(listsOf(svc).rates, listsOf(samples).rates))
}

function listsOf(samples: readonly Sample[]): Readonly<Record<'rates' | 'cpu' | 'p50' | 'p99', number[]>> {
  return {
    rates: samples.map(({ requestsPerSecond }) => requestsPerSecond),
    cpu: samples.map(({ cpuUs }) => cpuUs),
    p50: samples.map(({ p50Ms }) => p50Ms),
    p99: samples.map(({ p99Ms }) => p99Ms),
  }
}

function withInterval(list: readonly number[]): string {
  const interval = medianInterval(list)
  const middle = median(list).toFixed(3)
  return interval === undefined ? middle : `${middle} [${interval.low.toFixed(3)}, ${interval.high.toFixed(3)}]`
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en')
}
