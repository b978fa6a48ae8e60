/**
 * `npm run bench -- metrics`: what it costs to record a request, with 1, 100 and 10,000 routes asked for at random, beside
 * a function that only reads the same request; and what it costs to read 10,000 routes out.
 *
 * Surprise: heap bytes are what 400,000 records leave behind, garbage included; a round whose garbage was collected is
 * below 0. That is why the median is shown.
 */
import type { EndedRequest } from '../../lib/base/ports.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'
import { makeSources, ownProcess, prometheusBy, statusBy } from '../metrics/sources.ts'
import { endedRequest } from '../support/ended-request.ts'
import { Seeded } from '../support/seeded.ts'
import { median } from './support/statistics.ts'

const rounds = 15
const warmUpRounds = 3
const recordsPerRound = 400_000
const differentRequests = 20_000
const boundNs = 300

const seeded = new Seeded(1)
const contenders = [
  { name: 'empty', routes: 1, run: runOf(1, (request) => void request.sentStatus) },
  ...[1, 100, 10_000].map((routes) => {
    const metrics = new Metrics()
    return { name: 'record', routes, run: runOf(routes, (request) => metrics.record(request, true, 1_700_000_000_000)) }
  }),
]
const times = contenders.map((): number[] => [])
const bytes = contenders.map((): number[] => [])

for (let round = -warmUpRounds; round < rounds; round += 1) {
  contenders.forEach(({ run }, at) => {
    const heapBefore = process.memoryUsage().heapUsed
    const begin = process.hrtime.bigint()
    run()
    const ns = Number(process.hrtime.bigint() - begin)
    if (round < 0) return
    times[at]?.push(ns / recordsPerRound)
    bytes[at]?.push((process.memoryUsage().heapUsed - heapBefore) / recordsPerRound)
  })
}

console.log(`Node ${process.version}; medians of ${rounds} alternating rounds of ${recordsPerRound} records`)
console.log('function'.padEnd(10), 'routes'.padStart(8), 'ns'.padStart(8), 'heap bytes'.padStart(12))
contenders.forEach(({ name, routes }, at) => {
  const [ns = '', heap = ''] = [times[at] ?? [], bytes[at] ?? []].map((list) => median(list).toFixed(1))
  console.log(name.padEnd(10), String(routes).padStart(8), ns.padStart(8), heap.padStart(12))
})
readOut(10_000)

const slowest = Math.max(...times.map(median))
if (slowest >= boundNs) {
  console.error(`Recording a request must cost less than ${boundNs} ns: it costs ${slowest.toFixed(1)} ns`)
  process.exitCode = 1
}

/** One pass of a round. Each has a loop of its own, so that none is compiled for the functions of all. */
function runOf(routes: number, take: (request: EndedRequest) => void): () => void {
  const requests = requestsOf(routes)
  return () => {
    for (let index = 0; index < recordsPerRound; index += 1) {
      take(requests[index % differentRequests] as EndedRequest)
    }
  }
}

function requestsOf(routes: number): EndedRequest[] {
  const names = Array.from({ length: routes }, (_, route) => `area.route_${route}`)
  return Array.from({ length: differentRequests }, (_, index) =>
    endedRequest({
      path: `/area/${index}`,
      sentStatus: seeded.pick([200, 200, 200, 304, 404, 500]),
      sentBytes: seeded.integer(10_000),
      durationMs: 2 ** (seeded.next() * 12 - 4),
      routeName: seeded.pick(names),
    }),
  )
}

function readOut(routes: number): void {
  const before = process.memoryUsage().rss
  const metrics = new Metrics()
  const requests = requestsOf(1)
  for (let index = 0; index < routes * 10; index += 1) {
    const request = requests[index % differentRequests] as EndedRequest
    metrics.record({ ...request, routeName: `r.${index % routes}` }, true, 1_700_000_000_000)
  }
  const grown = (process.memoryUsage().rss - before) / 2 ** 20
  const takes = (work: () => unknown): string => {
    const list = Array.from({ length: 9 }, () => {
      const begin = performance.now()
      work()
      return performance.now() - begin
    })
    return `${median(list).toFixed(1)} ms`
  }
  const own = ownProcess(makeSources({ metrics }))
  const render = (): string => prometheusBy(own)
  const textMiB = (render().length / 2 ** 20).toFixed(1)
  console.log(`\n${routes} routes, ${grown.toFixed(1)} MiB`)
  console.log(`status as JSON: ${takes(() => JSON.stringify(statusBy(own)))}`)
  console.log(`Prometheus text: ${takes(render)}, ${textMiB} MiB`)
  console.log(`begin of a window: ${takes(() => own.beginWindow())}`)
}
