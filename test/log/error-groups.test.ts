import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ErrorGroups, lastHourOf, partsOf, sumOfGroups } from '../../lib/log/error-groups.ts'
import type { LogRecord } from '../../lib/log/record.ts'
import { stackLines } from '../../lib/log/stack.ts'
import { loggedRequest, logRecord } from './fixture.ts'

const minuteMs = 60_000
const nowMs = 1_700_000_000_000

/** The stack of an error with these frames, in the form of the log. */
function errorAt(message: string, ...frames: readonly string[]): string {
  const error = new Error(message)
  error.stack = [`Error: ${message}`, ...frames.map((frame) => `    at ${frame}`)].join('\n')
  return stackLines(error).join('\n')
}

/** A record of a message, optionally with its stack and the route and id of its request. */
function failed(timeMs: number, message: string, stack = '', route?: string, id = 'request-1'): LogRecord {
  const request = route === undefined ? {} : { request: loggedRequest({ routeName: route, id }) }
  return logRecord({ timeMs, message, stack, ...request })
}

const ofNode = 'process.run (node:internal/process/task_queues:95:5)'
const ofServer = `serve (${new URL('../../lib/core/server.ts', import.meta.url).href}:58:9)`
const pay = `pay (file://${process.cwd()}/actions/pay.mjs?v=3:12:7)`

test('groups by the place of the application and the message without its values', () => {
  const groups = new ErrorGroups()
  const messages = ['Order 5 of "ann" is gone', 'Order 17 of "a longer name" is gone']
  for (const [at, message] of messages.entries()) {
    const error = errorAt(message, ofServer, ofNode, pay)
    groups.add(failed(nowMs + at, message, error, 'orders.pay', `request-${at}`))
  }
  groups.add(failed(nowMs, 'Order is gone', errorAt('Order is gone', pay), 'home', 'request-9'))
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
    groups.add(logRecord({ module: 'response', message: String(message) }))
    const [group] = groups.list(nowMs)
    assert.deepEqual([group?.place, group?.message, group?.stack, group?.routes], ['response', shown, '', []])
  })
}

test('is fast for anything that a client can put into a message', () => {
  const groups = new ErrorGroups()
  const hostile = ['\n    at (/' + '?(/'.repeat(20_000), '\n    at (/:1:1'.repeat(5000), '    at ' + '/:1'.repeat(30_000), '"a'.repeat(50_000)]
  const before = performance.now()
  for (const text of hostile) {
    groups.add(failed(nowMs, text, errorAt(text, pay), 'x'))
    groups.add(failed(nowMs, `GET /${text}`))
  }
  assert.ok(performance.now() - before < 2000)
  assert.ok(groups.list(nowMs).length > 0)
})

test('keeps only the beginning of a long message', () => {
  const groups = new ErrorGroups()
  groups.add(failed(nowMs, 'x'.repeat(2 ** 20), errorAt('y'.repeat(2 ** 20), pay)))
  const [group] = groups.list(nowMs)
  assert.ok(Object.values(group ?? {}).join().length < 5000)
})

test('distinguishes thrown strings and route names', () => {
  const groups = new ErrorGroups()
  for (const text of ['one', 'another']) {
    groups.add(failed(nowMs, `A value that is not an Error was thrown: ${text}`, stackLines(text).join('\n'), 'odd (name)'))
  }
  assert.deepEqual(groups.list(nowMs).map(({ message, routes }) => [message, routes]), [
    ['A value that is not an Error was thrown: another', ['odd (name)']],
    ['A value that is not an Error was thrown: one', ['odd (name)']],
  ])
})

test('drops groups that were not seen after a time', () => {
  const groups = new ErrorGroups()
  groups.add(failed(nowMs, 'early'))
  groups.add(failed(nowMs + 10, 'late'))
  groups.clear(nowMs + 5)
  assert.deepEqual(groups.list(nowMs).map(({ message }) => message), ['late'])
})

test('counts each of the last 60 minutes, and drops earlier ones', () => {
  const groups = new ErrorGroups()
  for (const minute of [0, 30, 30, 59, 70]) groups.add(failed(nowMs + minute * minuteMs, 'x'))
  const [group] = groups.list(nowMs + 70 * minuteMs)
  assert.equal(group?.count, 5)
  assert.equal(group?.minutes.length, 60)
  assert.deepEqual([group?.minutes[19], group?.minutes[48], group?.minutes[59]], [2, 1, 1])
  assert.equal(group?.minutes.reduce((sum, each) => sum + each), 4)
})

test('keeps 200 groups and 1 MiB: the least recently seen is dropped', () => {
  const groups = new ErrorGroups()
  const names = Array.from({ length: 300 }, (_, at) => `word${String.fromCharCode(97 + (at % 26)).repeat(1 + at / 26)}`)
  for (const name of names) groups.add(failed(nowMs, name))
  groups.add(failed(nowMs, String(names[150])))
  const kept = groups.list(nowMs).map(({ message }) => message)
  assert.equal(kept.length, 200)
  assert.deepEqual([kept[0], kept[1], kept.at(-1)], [names[150], names[299], names[100]])
  for (const name of names) groups.add(failed(nowMs, name, errorAt(name + 'x'.repeat(10_000), pay)))
  const held = JSON.stringify(groups.list(nowMs))
  assert.ok(held.length * 2 < 2 ** 20 + 200 * 300, `${held.length}`)
  groups.clear()
  assert.deepEqual(groups.list(nowMs), [])
})

test('accepts any thrown value', () => {
  const groups = new ErrorGroups()
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  for (const thrown of [proxy, null, 7, 'text', { a: 1 }, new AggregateError([new Error('x')])]) {
    groups.add(failed(nowMs, 'x', stackLines(thrown).join('\n')))
  }
  groups.add(failed(nowMs, 'x', errorAt('%', 'f (/%:1:1)')))
  assert.ok(groups.list(nowMs).length >= 6)
})

test('adds up the groups of processes, newest first', () => {
  const [one, two] = [new ErrorGroups(), new ErrorGroups()]
  one.add(failed(nowMs, 'same', '', 'a', 'request-1'))
  two.add(failed(nowMs + 5, 'same', '', 'b', 'request-2'))
  two.add(failed(nowMs + 2, 'other', '', 'b', 'request-3'))
  const sum = sumOfGroups([one.list(nowMs), two.list(nowMs)])
  assert.deepEqual(sum.map(({ message, count, first_at: first, last_at: last, routes, requests }) => ({ message, count, first, last, routes, requests })), [
    { message: 'same', count: 2, first: nowMs, last: nowMs + 5, routes: ['a', 'b'], requests: ['request-1', 'request-2'] },
    { message: 'other', count: 1, first: nowMs + 2, last: nowMs + 2, routes: ['b'], requests: ['request-3'] },
  ])
  assert.equal(sum[0]?.minutes[59], 2)
})

test('splits a stack into the errors, each with the frames of the application and the others', () => {
  const cause = new Error('no such file\n    in the folder')
  cause.stack = `Error: ${cause.message}\n    at ${ofNode}\n    at ${pay}`
  const error = new Error('Cannot pay', { cause })
  error.stack = `Error: Cannot pay\n    at ${ofServer}\n    at ${pay}\n    at ${ofNode}`
  const groups = new ErrorGroups()
  groups.add(failed(nowMs, 'Cannot pay', stackLines(error).join('\n')))
  const parts = partsOf(groups.list(nowMs)[0]?.stack ?? '')
  assert.deepEqual(parts, [
    { title: 'Error: Cannot pay', own: ['pay (actions/pay.mjs?v=3:12:7)'], others: ['serve (lib/core/server.ts:58:9)', ofNode] },
    { title: 'caused by: Error: no such file\nin the folder', own: ['pay (actions/pay.mjs?v=3:12:7)'], others: [ofNode] },
  ])
  assert.deepEqual(partsOf('    "thrown"'), [{ title: '"thrown"', own: [], others: [] }])
})

test('counts the errors of the last hour over all groups', () => {
  const groups = new ErrorGroups()
  for (const [at, message] of [[0, 'a'], [59, 'b'], [60, 'b'], [60, 'c']] as const) groups.add(failed(nowMs + at * minuteMs, message))
  assert.equal(lastHourOf(groups.list(nowMs + 60 * minuteMs)), 3)
  assert.equal(lastHourOf([]), 0)
})
