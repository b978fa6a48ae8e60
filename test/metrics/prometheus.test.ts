import assert from 'node:assert/strict'
import { test } from 'node:test'
import { version } from '../../lib/base/version.ts'
import { bucketBoundsSeconds } from '../../lib/metrics/histogram.ts'
import { busySources, code, ownProcess, prometheusBy } from './sources.ts'

const busyText = (): string => prometheusBy(ownProcess(busySources()))

/** The samples by name and labels. A duplicate fails the test. */
function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>()
  for (const line of text.split('\n').slice(0, -1)) {
    if (line.startsWith('#')) continue
    const at = line.lastIndexOf(' ')
    const name = line.slice(0, at)
    assert.ok(!samples.has(name), `${name} comes twice`)
    samples.set(name, Number(line.slice(at + 1)))
  }
  return samples
}

test('shows requests by route and status class', () => {
  const samples = samplesOf(busyText())
  const requests = [...samples].filter(([name]) => name.startsWith('svc_http_requests_total'))
  assert.deepEqual(requests, [
    ['svc_http_requests_total{route="(none)",code="4xx"}', 1],
    ['svc_http_requests_total{route="area.a",code="2xx"}', 1],
    ['svc_http_requests_total{route="area.a",code="5xx"}', 1],
    ['svc_http_requests_total{route="a\\"b\\\\c\\nd,e=\\"f\\"} 1 é\u{1f600}",code="2xx"}', 1],
  ])
  assert.equal(samples.get('svc_http_request_body_bytes_total{route="area.a"}'), 14)
  assert.equal(samples.get('svc_http_response_body_bytes_total{route="area.a"}'), 200)
})

test('shows durations as a histogram by route', () => {
  const samples = samplesOf(busyText())
  const name = 'svc_http_request_duration_seconds'
  const buckets = [...bucketBoundsSeconds, '+Inf'].map((le) => samples.get(`${name}_bucket{route="area.a",le="${le}"}`))
  assert.deepEqual(buckets, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2])
  assert.equal(samples.get(`${name}_sum{route="area.a"}`), 20.002)
  assert.equal(samples.get(`${name}_count{route="area.a"}`), 2)
  assert.equal(samples.get('svc_event_loop_delay_seconds_bucket{le="0.0025"}'), 0)
  assert.equal(samples.get('svc_event_loop_delay_seconds_bucket{le="0.005"}'), 1)
  assert.equal(samples.get('svc_event_loop_delay_seconds_sum'), 0.003)
  assert.equal(samples.get('svc_event_loop_delay_seconds_count'), 1)
})

const rows: readonly (readonly [string, number])[] = [
  [`svc_build_info{version="${version}",digest="${code.digest}",tier1="${code.tier1}",node="${process.versions.node}"}`, 1],
  ['svc_start_time_seconds', 1_700_000_000.5],
  ['svc_uptime_seconds', 0],
  ['svc_http_requests_active', 4],
  ['svc_pool_workers{pool="http"}', 1024],
  ['svc_pool_workers_busy{pool="longpoll"}', 700],
  ['svc_pool_queue_size{pool="http"}', 4096],
  ['svc_pool_queue_waiting{pool="http"}', 1],
  ['svc_pool_refused_total{pool="http"}', 9],
  ['svc_connections_open', 17],
  ['svc_connections_refused_total', 2],
  ['svc_tls_handshakes_failed_total', 3],
  ['svc_event_loop_active_seconds_total', 1.5],
  ['svc_log_lines_written_total{log="access"}', 2 ** 40],
  ['svc_log_lines_lost_total{log="access"}', 5],
  ['svc_log_lines_lost_total{log="console"}', 6],
  ['svc_events_published_total', 31],
  ['svc_events_delivered_total', 32],
  ['svc_events_dropped_total', 33],
  ['svc_streams_slow_total{kind="sse"}', 34],
  ['svc_streams_slow_total{kind="ws"}', 35],
  ['svc_sessions_evicted_total', 36],
  ['svc_sessions_damaged_total', 37],
  ['svc_view_cache_hits_total', 12],
  ['svc_view_cache_misses_total', 3],
  ['svc_warnings', 1],
]

for (const [name, value] of rows) {
  test(`shows ${name}`, () => assert.equal(samplesOf(busyText()).get(name), value))
}

for (const name of ['resident', 'heap_used', 'heap_size', 'external']) {
  test(`shows svc_memory_${name}_bytes`, () => {
    assert.ok((samplesOf(busyText()).get(`svc_memory_${name}_bytes`) as number) > 10_000)
  })
}

test('every family has its help and its type once, before its samples, and begins with svc_ or process_', () => {
  const lines = busyText().split('\n').slice(0, -1)
  const seen = new Set<string>()
  let family = ''
  lines.forEach((line, at) => {
    const help = /^# HELP ((?:svc|process)_[a-z_]+) [A-Z].*\.$/.exec(line)
    if (help !== null) {
      family = help[1] as string
      assert.ok(!seen.has(family), family)
      seen.add(family)
      assert.match(lines[at + 1] as string, new RegExp(`^# TYPE ${family} (counter|gauge|histogram)$`))
    } else if (!line.startsWith('# TYPE')) {
      assert.match(line, new RegExp(`^${family}(_bucket|_sum|_count)?[ {]`))
    }
  })
  assert.ok(seen.size > 20)
})

test('counters never go back when the window is reset', () => {
  const own = ownProcess(busySources())
  const text = (): string => prometheusBy(own).replace(/^(?:svc_memory|process_cpu).*$/gm, '')
  const before = text()
  own.beginWindow()
  assert.equal(text(), before)
})
