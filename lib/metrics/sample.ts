/**
 * A sample for the charts of the monitor, made of what was counted in an interval and of what is so at its end.
 */
import { eventLoopInterval } from './event-loop.ts'
import type { Gauges, Interval } from './figures.ts'
import type { Sample } from './history.ts'
import { ratesOf } from './request-figures.ts'

/** The numbers of a sample, of one process or of several together. */
export function sampleOf({ requests, eventLoop }: Interval, { pools, memory, connections }: Gauges): Sample {
  return {
    ...ratesOf(requests),
    ...eventLoopInterval(eventLoop),
    busy_http: pools.http.busy,
    queue_http: pools.http.waiting,
    longpoll: pools.longpoll.busy,
    sse: pools.sse.busy,
    ws: pools.ws.busy,
    rss_mb: megabytes(memory.rss),
    heap_mb: megabytes(memory.heapUsed),
    connections,
  }
}

/** Bytes in units of 2^20, with one decimal. */
export function megabytes(bytes: number): number {
  return Math.round((bytes / 2 ** 20) * 10) / 10
}
