// The browser module of live pages and WebSockets, with a simulated clock and network.
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
  Object.assign(globalThis, { reportError: (error: unknown) => errors.push(error), window: target, document: { ...target, hidden: false }, location: { href: 'http://board.example.org/', protocol: 'http:' } })
  Object.defineProperty(globalThis, 'navigator', { value: { onLine: true }, configurable: true })
  mock.method(globalThis, 'fetch', () => {
    sent.push(nowMs / 1000)
    return nowMs < awayS * 1000 ? Promise.reject(new TypeError('away')) : new Promise(() => {})
  })
})
after(() => mock.reset())

const file = '../../lib/live/svc-live.js'

/** Advances the clock, and lets what it started go on. */
async function tick(ms: number): Promise<void> {
  nowMs += ms
  mock.timers.tick(ms)
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
}

it('1,000 clients of a server that was down for a minute reconnect spread over half a minute', async () => {
  const { live } = (await import(file)) as { live: (url: string) => { close(): void } }
  const followed = Array.from({ length: clients }, () => live('/news'))
  while (nowMs < (awayS + 31) * 1000) await tick(100)
  for (const one of followed) one.close()
  assert.deepEqual(errors, [])
  const back = sent.filter((at) => at >= awayS)
  assert.equal(back.length, clients)
  const most = Math.max(...Array.from({ length: 31 }, (_, at) => back.filter((second) => Math.floor(second - awayS) === at).length))
  assert.ok(most < clients / 10, `${most} within one second`)
  const tries = sent.length / clients
  assert.ok(tries > 4 && tries < 20, `${tries} tries each`)
})

it('a socket whose connections end soon waits longer after each, and starts over after one that lasted', async () => {
  let lastsMs = 0
  let opened = 0
  class ShortWebSocket {
    onopen = () => {}
    onclose = (_: { readonly code: number }) => {}
    constructor() {
      opened += 1
      void Promise.resolve().then(() => this.onopen())
      setTimeout(() => this.onclose({ code: 1011 }), lastsMs)
    }
    close() {}
  }
  Object.assign(globalThis, { WebSocket: ShortWebSocket })
  const { socket } = (await import(file)) as { socket: (url: string) => { close(): void } }
  const one = socket('/chat')
  for (const until = nowMs + 300_000; nowMs < until; ) await tick(100)
  assert.ok(opened > 5 && opened < 80, `${opened} in 5 minutes`)
  lastsMs = 11_000
  for (const until = nowMs + 45_000; nowMs < until; ) await tick(100) // The longest wait, and one that lasts.
  opened = 0
  for (const until = nowMs + 60_000; nowMs < until; ) await tick(100)
  assert.ok(opened >= 4, `${opened} in a minute`)
  one.close()
  assert.deepEqual(errors, [])
})
