// The browser's half of live pages with a clock and a network of the test's own.
import assert from 'node:assert/strict'
import { after, before, it, mock } from 'node:test'

const clients = 1000
const awayS = 60
/** When each request was sent, in seconds. */
const sent: number[] = []
let nowMs = 0
const errors: unknown[] = []

before(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  mock.method(performance, 'now', () => nowMs)
  const target = { addEventListener: () => {} }
  Object.assign(globalThis, { reportError: (error: unknown) => errors.push(error), window: target, document: { ...target, hidden: false }, location: { href: 'http://board.example.org/' } })
  Object.defineProperty(globalThis, 'navigator', { value: { onLine: true }, configurable: true })
  mock.method(globalThis, 'fetch', () => {
    sent.push(nowMs / 1000)
    return nowMs < awayS * 1000 ? Promise.reject(new TypeError('away')) : new Promise(() => {})
  })
})
after(() => mock.reset())

it('1,000 clients of a server that was away for a minute come back spread over half a minute', async () => {
  const file = '../../lib/live/svc-live.js'
  const { live } = (await import(file)) as { live: (url: string) => { close(): void } }
  const followed = Array.from({ length: clients }, () => live('/news'))
  for (; nowMs < (awayS + 31) * 1000; nowMs += 100) {
    mock.timers.tick(100)
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
  }
  for (const one of followed) one.close()
  assert.deepEqual(errors, [])
  const back = sent.filter((at) => at >= awayS)
  assert.equal(back.length, clients)
  const most = Math.max(...Array.from({ length: 31 }, (_, at) => back.filter((second) => Math.floor(second - awayS) === at).length))
  assert.ok(most < clients / 10, `${most} within one second`)
  const tries = sent.length / clients
  assert.ok(tries > 4 && tries < 20, `${tries} tries each`)
})
