/** The documents of a server that has one process, from the sources of its figures. */
import { statusOf, type Status } from '../../lib/panel/status.ts'
import type { PartCounters, ProcessFigures } from '../../lib/metrics/figures.ts'
import type { Sample } from '../../lib/metrics/history.ts'
import { createOwnProcess } from '../../lib/metrics/own-process.ts'
import type { PrometheusInput } from '../../lib/metrics/prometheus.ts'
import { sampleOf } from '../../lib/metrics/sample.ts'
import { readFigures, type StatusSources } from '../../lib/metrics/sources.ts'
import { totalsOf } from '../../lib/metrics/totals.ts'

/** The status, with the counters as they stood when the bench window began. */
export function readStatus(sources: StatusSources, atStart: PartCounters): Status {
  return statusOf('prod', [alone(readFigures(sources, sources.metrics.figures(), atStart))])
}

/** What the Prometheus text is made of. */
export function readTotals(sources: StatusSources): PrometheusInput {
  return totalsOf([alone(createOwnProcess(sources, () => []).figures())])
}

/** A sample for the charts. */
export function takeSample(sources: StatusSources): Sample {
  const own = createOwnProcess(sources, () => [])
  return sampleOf(own.takeInterval(), own.gauges())
}

function alone(figures: ReturnType<typeof readFigures>): ProcessFigures {
  return { ...figures, id: '1', role: 'alone', pid: process.pid, responding: true }
}
