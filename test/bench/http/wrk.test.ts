import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LoadError, parseReport } from './wrk.ts'

/** What wrk prints, with lines in place of those given. */
function report({ latency = ['50%    1.23ms', '99%    3.20ms'], more = '', requests = 48061 } = {}): string {
  return `Running 1s test @ http://127.0.0.1:40107/users/42
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.33ms  310.21us   7.97ms   94.86%
    Req/Sec    48.34k     3.02k   50.76k    81.82%
  Latency Distribution
     ${latency.join('\n     ')}
  ${requests} requests in 1.10s, 11.41MB read
${more}Requests/sec:  43692.95
Transfer/sec:     10.37MB
`
}

test('reads requests, their rate and the latencies', () => {
  const expected = { requests: 48061, requestsPerSecond: 43692.95, p50Ms: 1.23, p99Ms: 3.2 }
  assert.deepEqual(parseReport(report(), 200), expected)
})

test('reads latencies in every unit as milliseconds', () => {
  const rows: [string, number][] = [
    ['85.00us', 0.085],
    ['1.23ms', 1.23],
    ['1.20s ', 1200],
    ['1.00m ', 60_000],
  ]
  for (const [text, expected] of rows) {
    const { p99Ms } = parseReport(report({ latency: ['50%  1.00us', `99%   ${text}`] }), 200)
    assert.ok(Math.abs(p99Ms - expected) < 1e-9, text)
  }
})

test('takes answers that are no success only where that is the right answer', () => {
  const all = report({ more: '  Non-2xx or 3xx responses: 48061\n' })
  const some = report({ more: '  Non-2xx or 3xx responses: 3\n' })
  assert.equal(parseReport(all, 404).requests, 48061)
  for (const [text, status] of [[all, 200], [some, 200], [some, 404], [report(), 404]] as const) {
    assert.throws(() => parseReport(text, status), LoadError)
  }
})

test('refuses a load with broken connections, without requests, or that it cannot read', () => {
  const rows = [
    report({ more: '  Socket errors: connect 0, read 3, write 0, timeout 0\n' }),
    report({ requests: 0 }),
    report({ latency: ['50%    1.23ms'] }),
    report({ latency: ['50%    1.23ms', '99%    1.23h'] }),
    'unable to connect to 127.0.0.1:1 Connection refused',
  ]
  for (const text of rows) assert.throws(() => parseReport(text, 200), LoadError, text)
})
