import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ErrorGroups, sumOfGroups } from '../../lib/log/error-groups.ts'
import { stackLines } from '../../lib/log/stack.ts'

const minuteMs = 60_000
const nowMs = 1_700_000_000_000

/** The stack of an error with these frames, as the log has it. */
function errorAt(message: string, ...frames: readonly string[]): string {
  const error = new Error(message)
  error.stack = [`Error: ${message}`, ...frames.map((frame) => `    at ${frame}`)].join('\n')
  return stackLines(error).join('\n')
}

const ofNode = 'process.run (node:internal/process/task_queues:95:5)'
const ofServer = `serve (${new URL('../../lib/core/server.ts', import.meta.url).href}:58:9)`
const pay = `pay (file://${process.cwd()}/actions/pay.mjs?v=3:12:7)`

test('groups by the place of the application and the message without its values', () => {
  const groups = new ErrorGroups()
  const messages = ['Order 5 of "ann" is gone', 'Order 17 of "a longer name" is gone']
  for (const [at, message] of messages.entries()) {
    const error = errorAt(message, ofServer, ofNode, pay)
    groups.add(nowMs + at, 'error', `GET /orders/${at} (orders.pay): ${message} [request-${at}]`, error)
  }
  groups.add(nowMs, 'error', 'GET / (home): Order is gone [request-9]', errorAt('Order is gone', pay))
  const [first, second, ...rest] = groups.list(nowMs)
  assert.deepEqual(rest, [])
  assert.equal(first?.message, 'Error: Order is gone')
  assert.deepEqual(
    { ...second, stack: undefined, minutes: undefined },
    {
      place: 'actions/pay.mjs:12', message: 'Error: Order # of "…" is gone', count: 2, first_at: nowMs,
      last_at: nowMs + 1, routes: ['orders.pay'], requests: ['request-0', 'request-1'], stack: undefined,
      minutes: undefined,
    },
  )
  assert.match(second?.stack ?? '', /^ {4}Error: Order 17.*\n {4}at pay .*\n {4}at serve .*\n {4}at process\.run .*$/)
})

for (const [message, shown] of [
  ['It does not work, and can\'t', 'It does not work, and can\'t'],
  ["reading 'name' of `x`", "reading '…' of `…`"],
  ['user 9f86d081884c7d65 and 123e4567-e89b-12d3-a456-426614174000', 'user # and #'],
  ['feedback at 10.5 s, faded', 'feedback at #.# s, faded'],
  ['a\nb', 'a\\x0ab'],
]) {
  test(`shows ${JSON.stringify(message)} as ${JSON.stringify(shown)}`, () => {
    const groups = new ErrorGroups()
    groups.add(nowMs, 'response', String(message), '')
    const [group] = groups.list(nowMs)
    assert.deepEqual([group?.place, group?.message, group?.stack, group?.routes], ['response', shown, '', []])
  })
}

test('is quick for what a visitor can put into a message', () => {
  const groups = new ErrorGroups()
  const hostile = ['\n    at (/' + '?(/'.repeat(20_000), '\n    at (/:1:1'.repeat(5000), '    at ' + '/:1'.repeat(30_000), '"a'.repeat(50_000)]
  const before = performance.now()
  for (const text of hostile) {
    groups.add(nowMs, 'error', `GET /x (x): ${text} [request-1]`, errorAt(text, pay))
    groups.add(nowMs, 'error', `GET /${text}`, '')
  }
  assert.ok(performance.now() - before < 2000)
  assert.ok(groups.list(nowMs).length > 0)
})

test('keeps nothing of a long message but its beginning', () => {
  const groups = new ErrorGroups()
  groups.add(nowMs, 'error', 'x'.repeat(2 ** 20), errorAt('y'.repeat(2 ** 20), pay))
  const [group] = groups.list(nowMs)
  assert.ok(Object.values(group ?? {}).join().length < 5000)
})

test('tells thrown texts and route names apart', () => {
  const groups = new ErrorGroups()
  for (const text of ['one', 'another']) {
    groups.add(nowMs, 'error', `GET / (odd (name)): A value that is no Error was thrown: ${text}`, stackLines(text).join('\n'))
  }
  assert.deepEqual(groups.list(nowMs).map(({ message, routes }) => [message, routes]), [
    ['A value that is no Error was thrown: another', ['odd (name)']],
    ['A value that is no Error was thrown: one', ['odd (name)']],
  ])
})

test('forgets what was not seen after a time', () => {
  const groups = new ErrorGroups()
  groups.add(nowMs, 'error', 'early', '')
  groups.add(nowMs + 10, 'error', 'late', '')
  groups.clear(nowMs + 5)
  assert.deepEqual(groups.list(nowMs).map(({ message }) => message), ['late'])
})

test('counts each of the last 60 minutes, and forgets earlier ones', () => {
  const groups = new ErrorGroups()
  for (const minute of [0, 30, 30, 59, 70]) groups.add(nowMs + minute * minuteMs, 'error', 'x', '')
  const [group] = groups.list(nowMs + 70 * minuteMs)
  assert.equal(group?.count, 5)
  assert.equal(group?.minutes.length, 60)
  assert.deepEqual([group?.minutes[19], group?.minutes[48], group?.minutes[59]], [2, 1, 1])
  assert.equal(group?.minutes.reduce((sum, each) => sum + each), 4)
})

test('keeps 200 groups and 1 MiB: the one that was seen longest ago goes', () => {
  const groups = new ErrorGroups()
  const names = Array.from({ length: 300 }, (_, at) => `word${String.fromCharCode(97 + (at % 26)).repeat(1 + at / 26)}`)
  for (const name of names) groups.add(nowMs, 'error', name, '')
  groups.add(nowMs, 'error', String(names[150]), '')
  const kept = groups.list(nowMs).map(({ message }) => message)
  assert.equal(kept.length, 200)
  assert.deepEqual([kept[0], kept[1], kept.at(-1)], [names[150], names[299], names[100]])
  for (const name of names) groups.add(nowMs, 'error', name, errorAt(name + 'x'.repeat(10_000), pay))
  const held = JSON.stringify(groups.list(nowMs))
  assert.ok(held.length * 2 < 2 ** 20 + 200 * 300, `${held.length}`)
  groups.clear()
  assert.deepEqual(groups.list(nowMs), [])
})

test('takes whatever is thrown', () => {
  const groups = new ErrorGroups()
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  for (const thrown of [proxy, null, 7, 'text', { a: 1 }, new AggregateError([new Error('x')])]) {
    groups.add(nowMs, 'error', 'x', stackLines(thrown).join('\n'))
  }
  groups.add(nowMs, 'error', 'x', errorAt('%', 'f (/%:1:1)'))
  assert.ok(groups.list(nowMs).length >= 6)
})

test('adds up the groups of processes, the newest first', () => {
  const [one, two] = [new ErrorGroups(), new ErrorGroups()]
  one.add(nowMs, 'error', 'GET /a (a): same [request-1]', '')
  two.add(nowMs + 5, 'error', 'GET /b (b): same [request-2]', '')
  two.add(nowMs + 2, 'error', 'GET /b (b): other [request-3]', '')
  const sum = sumOfGroups([one.list(nowMs), two.list(nowMs)])
  assert.deepEqual(sum.map(({ message, count, first_at: first, last_at: last, routes, requests }) => ({ message, count, first, last, routes, requests })), [
    { message: 'same', count: 2, first: nowMs, last: nowMs + 5, routes: ['a', 'b'], requests: ['request-1', 'request-2'] },
    { message: 'other', count: 1, first: nowMs + 2, last: nowMs + 2, routes: ['b'], requests: ['request-3'] },
  ])
  assert.equal(sum[0]?.minutes[59], 2)
})
