import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AppMetrics } from '../../lib/application/app-metrics.ts'
import { subtractAppMetrics, sumOfAppMetrics, TotalRows } from '../../lib/metrics/app-readings.ts'
import type { Scope } from '../../lib/modules/registrations.ts'

function make() {
  const said: string[] = []
  const metrics = new AppMetrics({ warn: (message) => void said.push(message) })
  const scope: Scope = { state: 'in use' }
  return { metrics, said, scope, app: metrics.of(scope) }
}

/** Their values by name. */
function valuesOf(metrics: Pick<AppMetrics, 'read'>): unknown {
  return Object.fromEntries(metrics.read().map(({ name, value }) => [name, value]))
}

describe('the metrics of an application', () => {
  it('are counters with labels, and gauges', () => {
    const { metrics, app } = make()
    const plain = app.counter('orders_total', 'Orders.')
    const labelled = app.counter('paid_total', 'Paid.', ['by', 'to'])
    app.gauge('open', 'Open orders.', () => 4)
    assert.deepEqual(valuesOf(metrics), { app_orders_total: { '': 0 }, app_paid_total: {}, app_open: { '': 4 } })
    plain.add()
    plain.add(2.5)
    labelled.add(1, { to: 'a"b', by: 'card' })
    labelled.add(2, { by: 'card', to: 'a"b' })
    assert.deepEqual(valuesOf(metrics), {
      app_orders_total: { '': 3.5 }, app_paid_total: { 'by="card",to="a\\"b"': 3 }, app_open: { '': 4 },
    })
  })

  it('are refused with the reason when they are wrong', () => {
    const { app } = make()
    const counter = app.counter('a', 'A.', ['kind'])
    const anything = app as unknown as Record<'counter' | 'gauge', (...values: unknown[]) => { add(...values: unknown[]): void }>
    const rows: [work: () => unknown, message: RegExp][] = [
      [() => app.counter('a', 'A.'), /^Error: Cannot register a metric "a": the name is taken; choose another one$/],
      [() => app.gauge('a', 'A.', () => 1), /the name is taken/],
      [() => app.counter('1a', 'A.'), /^TypeError: Cannot create counter "1a": its name must have letters, digits and _, at most 100/],
      [() => app.counter('a-b', 'A.'), /its name must have letters/],
      [() => app.counter('b', ''), /it needs a help text/],
      [() => app.counter('b', 'B.', ['x', 'x']), /its labels must be a list of different names .* they are \["x","x"\]$/],
      [() => app.counter('b', 'B.', ['__x']), /its labels must be/],
      [() => anything.counter('b', 'B.', 'x'), /its labels must be .* they are "x"$/],
      [() => anything.gauge('b', 'B.', 3), /read is not a function/],
      [() => counter.add(-1, { kind: 'x' }), /^RangeError: Cannot add to app_a: the number must be 0 or more: it is -1$/],
      [() => counter.add(NaN, { kind: 'x' }), /it is NaN/],
      [() => anything.counter('c', 'C.').add('1'), /it is 1$/],
      [() => counter.add(), /^TypeError: Cannot add to app_a: its labels are kind: given are none$/],
      [() => counter.add(1, { kind: 'x', to: 'y' }), /its labels are kind: given are kind, to$/],
      [() => counter.add(1, { to: 'y' }), /its labels are kind: given are to$/],
    ]
    for (const [work, message] of rows) assert.throws(work, (error) => message.test(String(error)), String(message))
  })

  it('stay bounded with 100,000 label values, and one warning says so', () => {
    const { metrics, said, app } = make()
    const counter = app.counter('seen_total', 'Seen.', ['id'])
    for (let id = 0; id < 100_000; id += 1) counter.add(1, { id: `${id}${'x'.repeat(1000)}` })
    const value = metrics.read()[0]?.value ?? assert.fail()
    assert.equal(Object.keys(value).length, 101)
    assert.equal(value['id="other"'], 99_900)
    assert.ok(JSON.stringify(value).length < 25_000)
    assert.deepEqual(said, [
      'app_seen_total has 100 combinations of label values: further ones count as "other"; use labels with few values',
    ])
  })

  it('stay bounded in number', () => {
    const { app } = make()
    for (let at = 0; at < 1000; at += 1) app.counter(`n${at}`, 'N.')
    assert.throws(() => app.counter('last', 'N.'), /^TypeError: Cannot create counter "last": there are 1000 metrics$/)
  })

  it('leave out a gauge that cannot be read, and warn once of each', async () => {
    const { metrics, said, app } = make()
    app.gauge('throws', 'T.', () => {
      throw new Error('no database')
    })
    app.gauge('nan', 'N.', () => NaN)
    app.gauge('promised', 'P.', (async () => Promise.reject(new Error('late'))) as unknown as () => number)
    app.gauge('fine', 'F.', () => 0)
    for (let read = 0; read < 3; read += 1) assert.deepEqual(valuesOf(metrics), { app_fine: { '': 0 } })
    assert.deepEqual(said, [
      'the gauge app_throws is left out: no database',
      'the gauge app_nan is left out: it returned NaN, not a finite number',
      'the gauge app_promised is left out: it returned object, not a finite number',
    ])
  })

  it('go on in the successor of a module, and end with the module', () => {
    const { metrics, scope, app } = make()
    const counter = app.counter('kept_total', 'K.', ['l'])
    app.gauge('size', 'S.', () => 1)
    app.gauge('dropped', 'D.', () => 1)
    const other = app.counter('changed_total', 'C.')
    counter.add(2, { l: 'x' })
    other.add(5)
    scope.state = 'leaving'
    const later: Scope = { state: 'in use' }
    const next = metrics.of(later)
    next.counter('kept_total', 'K.', ['l']).add(3, { l: 'x' })
    next.gauge('size', 'S.', () => 2)
    next.counter('changed_total', 'C.', ['l'])
    assert.deepEqual(valuesOf(metrics), {
      app_kept_total: { 'l="x"': 5 }, app_size: { '': 1 }, app_dropped: { '': 1 }, app_changed_total: { '': 5 },
    })
    scope.state = 'ended'
    counter.add(1, { l: 'x' })
    app.counter('late', 'L.').add()
    assert.deepEqual(valuesOf(metrics), { app_kept_total: { 'l="x"': 6 }, app_size: { '': 2 }, app_changed_total: {} })
    assert.throws(() => next.gauge('size', 'S.', () => 2), /the name is taken/)
  })

  it('add up over processes, and stay bounded there', () => {
    const lists = [1, 2, 3].map((number) => {
      const { metrics, app } = make()
      const counter = app.counter('seen_total', 'Seen.', ['id'])
      for (let id = 0; id < 60; id += 1) counter.add(1, { id: `${number === 3 ? 2 : number}.${id}` })
      app.counter('same_total', 'Same.').add(number)
      app.gauge('size', 'Size.', () => number)
      if (number === 1) app.counter('odd', 'Odd.').add()
      else app.gauge('odd', 'Odd.', () => 7)
      return metrics.read()
    })
    const rows = new TotalRows()
    const [seen, ...others] = rows.bound(sumOfAppMetrics(lists))
    assert.deepEqual(others.map(({ name, value }) => [name, value['']]), [['app_same_total', 6], ['app_size', 6], ['app_odd', 1]])
    const counts = Object.values(seen?.value ?? {})
    assert.deepEqual([counts.length, counts.reduce((sum, count) => sum + count, 0)], [101, 180])
    assert.equal(seen?.value['id="other"'], 40)
    const [later] = rows.bound(sumOfAppMetrics(lists.reverse()))
    const sorted = (value = {}): string[] => Object.keys(value).sort()
    assert.deepEqual(sorted(later?.value), sorted(seen?.value))
  })

  it('count since the window began', () => {
    const { metrics, app } = make()
    const counter = app.counter('a', 'A.', ['l'])
    let size = 5
    app.gauge('size', 'Size.', () => size)
    counter.add(3, { l: 'x' })
    const before = metrics.read()
    size = 2
    counter.add(4, { l: 'x' })
    counter.add(1, { l: 'y' })
    const since = subtractAppMetrics(metrics.read(), before)
    assert.deepEqual(since.map(({ value }) => value), [{ 'l="x"': 4, 'l="y"': 1 }, { '': 2 }])
    assert.deepEqual(subtractAppMetrics(before, metrics.read())[0]?.value, { 'l="x"': 3 })
  })
})
