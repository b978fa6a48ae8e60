import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { describe, test, type TestContext } from 'node:test'
import { createMonitor, monitorDocument } from '../../lib/panel/monitor.ts'
import type { FullContext } from '../support/context.ts'
import type { Reply } from '../../lib/http/reply.ts'
import { makeHistory, makeMonitorPort, makeNode, makeProcess, makeRoute, type MonitorFigures } from '../panel/monitor-port.ts'
import { serve } from '../access/support.ts'
import { openPage, type Page } from '../support/browser.ts'
import { until } from '../support/until.ts'

/** How the status endpoint answers: normally, not at all, as if signed out, with an HTML page, with a 503. */
type Mood = 'well' | 'late' | 'gone' | 'signed out' | 'html' | 'unwell'

interface Started {
  readonly page: Page
  readonly figures: MonitorFigures
  readonly url: string
  /** Requests for the status so far. */
  reads: number
  mood: Mood
  /** Sends the status that was held in the mood 'late'. */
  release: (() => void) | undefined
  /** Bodies of the requests to switch the trace. */
  readonly switched: unknown[]
}

const wide = { width: 1400, height: 900, dark: false }
const state = 'document.getElementById("state").dataset.text'

/** Opens the monitor of a server that answers with figures of the test. */
async function start(t: TestContext, prepare: (figures: MonitorFigures) => void = () => {}): Promise<Started> {
  const page = await openPage(t)
  const { held, port, figures } = makeMonitorPort({ 'monitor.interval_s': 1 })
  prepare(figures)
  const answer = async (ctx: FullContext): Promise<Reply> => {
    started.reads += 1
    if (started.mood === 'gone') ctx.response.destroy()
    if (started.mood === 'signed out') return ctx.redirect('/svc-login')
    if (started.mood === 'html') return ctx.html('<h1>Login</h1>')
    if (started.mood === 'unwell') return ctx.json({ error: 'overloaded' }, 503)
    const document = await monitorDocument(port)
    if (started.mood === 'late') await new Promise<void>((resolve) => void (started.release = resolve))
    return ctx.json(document)
  }
  const switchTrace = async (ctx: FullContext): Promise<Reply> => {
    const body = (await ctx.readJson()) as { module: string; enabled: boolean }
    started.switched.push(body)
    if (body.module === 'pool') return ctx.json({ ok: false, error: 'not today' }, 400)
    figures.trace = { ...figures.trace, [body.module]: body.enabled }
    return ctx.json(figures.trace)
  }
  const url = await serve(t, held, [
    { method: 'GET', url: '/svc-monitor', action: createMonitor(port) },
    { method: 'GET', url: '/svc-status', action: answer },
    { method: 'POST', url: '/svc-trace', action: switchTrace },
  ])
  const started: Started = { page, figures, url, reads: 0, mood: 'well', release: undefined, switched: [] }
  await page.look(wide)
  await page.open(`${url}/svc-monitor`)
  await until(async () => (await page.evaluate("document.querySelector('.plot svg').hasAttribute('viewBox')")) === true)
  await page.openDetails()
  return started
}

/** Makes the page read at once, as when the network is back, instead of at its next interval. */
function readNow(page: Page): Promise<unknown> {
  return page.evaluate("void dispatchEvent(new Event('online'))")
}

/** The text of the visible rows in a table's body. */
async function rowsOf(page: Page, id: string): Promise<string[]> {
  const rows = `[...document.querySelectorAll('#${id} tr')].filter((row) => !row.hidden)`
  const texts = `${rows}.map((row) => [...row.cells].map((cell) => cell.textContent).join('|'))`
  return (await page.evaluate(texts)) as string[]
}

/** The highlighted cells of a table's body: their text, and the kind of highlight. */
function outstandingIn(page: Page, id: string): Promise<unknown> {
  const states = `[...document.querySelectorAll('#${id} [data-state]:not([data-state=""])')]`
  return page.evaluate(`${states}.map((cell) => [cell.textContent, cell.dataset.state])`)
}

function says(page: Page, expected: RegExp): Promise<void> {
  return until(async () => expected.test(String(await page.evaluate(state))))
}

describe('the monitor', { concurrency: 3 }, () => {
  test('the charts have the last 15 minutes when the page opens, before the first reading', async (t) => {
    const { page } = await start(t)
    const paths = "[...document.querySelectorAll('.plot path')].map((path) => path.getAttribute('d'))"
    const drawn = (await page.evaluate(paths)) as string[]
    assert.deepEqual(drawn.map((path) => path.split('L').length), new Array<number>(16).fill(180))
    assert.equal(await page.evaluate(state), 'Live')
    const facts = 'svc/0.1.0 · code abababababab · prod · Node 20.20.2 · process 4242 · up 1 d 02 h'
    assert.equal(await page.text('#facts'), facts)
    assert.equal(await page.evaluate("document.getElementById('facts').title"), `SHA-256 of the code: ${'ab'.repeat(32)}`)
    assert.match(await page.text('#tiles'), /Requests \/ s\s+180\s+Errors \/ s\s+180/)
    assert.deepEqual(page.errors, [])
  })

  test('a new reading changes the figures, and creates no new element', async (t) => {
    const { page, figures } = await start(t)
    const count = 'document.querySelectorAll("*").length'
    const before = await page.evaluate(count)
    figures.history = makeHistory(new Array<number>(180).fill(4321))
    figures.status = { ...figures.status, pool_http: { ...figures.status.pool_http, busy: 63 } }
    await until(async () => /4,321/.test(await page.text('#tiles')))
    assert.match(await page.text('#pools'), /HTTP\s+63 \/ 64/)
    assert.equal(await page.evaluate(count), before)
    assert.deepEqual(page.errors, [])
  })

  test('one sentence says that all is well, or what is wrong', async (t) => {
    const { page, figures } = await start(t, (given) => {
      given.history = makeHistory([1])
      given.status = { ...given.status, limits: { refused: {} } }
    })
    const { status } = figures
    const says = async (text: string, kind: string): Promise<void> => {
      await readNow(page)
      await until(async () => (await page.text('#verdict')) === text)
      assert.equal(await page.evaluate("document.getElementById('verdict').dataset.state"), kind)
    }
    await says('All is well: 1 process, 0 errors in the last hour.', '')
    figures.status = { ...status, processes: [makeProcess('primary', 1), makeProcess('1', 2)], nodes: [makeNode('a')] }
    await says('All is well: 1 node, 2 processes, 0 errors in the last hour.', '')
    const group = { place: 'a.js:1', message: 'x', count: 9, first_at: 1, last_at: 1, routes: [], requests: [], stack: '' }
    figures.errors = [{ ...group, minutes: [3, 0, 1] }, { ...group, minutes: [2] }]
    await says('Running, with 6 errors in the last hour.', 'odd')
    assert.equal(await page.evaluate("document.querySelector('#verdict a').getAttribute('href')"), '/svc-errors')
    figures.status = {
      ...status,
      warnings: ['the disk is full'],
      pool_http: { ...status.pool_http, alert: true },
      processes: [makeProcess('primary', 1), { id: '1', pid: 2, responding: false }, { id: '2', pid: 3, responding: false, starting: true }],
      nodes: [makeNode('a'), makeNode('b', { state: 'gone' }), makeNode('c', { state: 'behind' })],
    }
    figures.history = makeHistory([300])
    await says(
      'Needs attention: 1 warning, 1 of 3 processes does not answer, 2 of 3 nodes are not in sync, the HTTP workers or '
        + 'their queue are nearly full, the event loop is 300 ms late, 6 errors in the last hour.',
      'bad',
    )
    assert.deepEqual(page.errors, [])
  })

  test('a fold tells in its line what stands out while it is closed', async (t) => {
    const { page, figures } = await start(t)
    const digest = (name: string) => page.evaluate(`(({ textContent, dataset }) => [textContent, dataset.state])(document.getElementById('${name}-digest'))`)
    assert.deepEqual(await digest('pools'), ['16 of 64 HTTP workers busy, 0 waiting', ''])
    assert.deepEqual(await digest('window'), ['Errors 5', 'odd'])
    assert.deepEqual(await digest('streams'), ['0 polls, 0 SSE, 0 WebSockets', ''])
    assert.deepEqual(await digest('limits'), ['login 3', 'odd'])
    const { status } = figures
    figures.trace = { app: true, pool: true }
    figures.status = {
      ...status,
      requests: { ...status.requests, errors: 0 },
      pool_http: { ...status.pool_http, busy: 60, alert: true },
      log: { written: 1, lost: 2 },
      events: { ...status.events, dropped: 4 },
    }
    await readNow(page)
    await until(async () => String(await digest('trace')).startsWith('all on'))
    assert.deepEqual(await digest('pools'), ['HTTP 60 / 64, HTTP workers or queue nearly full', 'bad'])
    assert.deepEqual(await digest('window'), ['Log lines lost 2', 'bad'])
    assert.deepEqual(await digest('streams'), ['Events dropped 4', 'odd'])
    assert.deepEqual(page.errors, [])
  })

  test('the figures of the machine and of the application are shown, and what needs attention stands out', async (t) => {
    const { page, figures } = await start(t)
    const { status } = figures
    const pairs = (id: string) => page.evaluate(`[...document.querySelectorAll('#${id} div')].map(({ children: [name, value] }) => [name.textContent, value.textContent, value.dataset.state])`)
    const digest = (name: string) => page.evaluate(`document.getElementById('${name}-digest').textContent`)
    assert.deepEqual(await pairs('machine'), [
      ['Memory', '80 MB', ''],
      ['Heap', '30 of 2,096 MB', ''],
      ['External', '2 MB, of it buffers 1 MB', ''],
      ['CPU', '25 % of a processor', ''],
      ['Descriptors', '80 of 2,048', ''],
      ['Sessions', '5', ''],
    ])
    assert.equal(await digest('machine'), 'Memory 80 MB, CPU 25 % of a processor, Descriptors 80 of 2,048')
    const fold = "getComputedStyle(document.getElementById('application-fold')).display"
    assert.equal(await page.evaluate(fold), 'none')
    figures.status = {
      ...status,
      descriptors: { open: null, limit: null },
      sessions: { ...status.sessions, stored: null },
      certificate: { ends: '2026-12-01T00:00:00.000Z', days: 13 },
      processes_replaced: { hang: 2, exit: 1 },
      app: { app_queue: 7, app_load: 0.5, app_orders_total: { 'kind="web"': 12_345 } },
      ready: false,
    }
    await readNow(page)
    await until(async () => String(await digest('machine')).startsWith('Certificate'))
    assert.equal(await digest('machine'), 'Certificate ends in 13 days, Processes replaced 2 hang, 1 exit')
    assert.deepEqual(((await pairs('machine')) as string[][]).map(([name]) => name), ['Memory', 'Heap', 'External', 'CPU', 'Certificate', 'Processes replaced'])
    assert.deepEqual(await pairs('application'), [
      ['app_queue', '7', ''], ['app_load', '0.50', ''], ['app_orders_total kind="web"', '12,345', ''],
    ])
    assert.equal(await page.text('#verdict'), 'Needs attention: not ready for requests.')
    figures.status = { ...status, certificate: { ends: '2026-11-01T00:00:00.000Z', days: -1 }, descriptors: { open: 900, limit: 1024 } }
    await readNow(page)
    await until(async () => (await digest('machine')) === 'Descriptors 900 of 1,024, Certificate has ended')
    assert.deepEqual(page.errors, [])
  })

  test('the share of a route is of the time that all routes took', async (t) => {
    const { page } = await start(t, (given) => {
      given.status = { ...given.status, routes: [makeRoute('a', 1, { time_ms: 75 }), makeRoute('b', 2, { time_ms: 25 })] }
    })
    assert.deepEqual((await rowsOf(page, 'routes')).map((row) => row.split('|').slice(0, 2)), [['b', '25 %'], ['a', '75 %']])
    await page.click('#routes-head [data-field=time_ms]')
    assert.deepEqual((await rowsOf(page, 'routes')).map((row) => row.split('|')[0]), ['a', 'b'])
  })

  test('an id in the address shows the log lines of that request, as the dialogs of requests and lines do', async (t) => {
    const line = { time: 1, level: 'info', module: 'app', message: 'one' } as const
    const request = { time: 1, method: 'GET', path: '/a', status: 500, duration_ms: 1, route: 'a' }
    const { page, url } = await start(t, (given) => {
      given.lines = [line, { ...line, message: 'two', request_id: 'request-2' }, { ...line, message: 'three', request_id: 'request-3' }]
      given.requests = [{ ...request, path: '/b' }, { ...request, request_id: 'request-3' }]
    })
    const found = async () => (await rowsOf(page, 'lines')).map((row) => row.split('|').at(-1))
    await page.evaluate("document.getElementById('level').value = 'fatal'")
    await page.evaluate("location.hash = '#request=request-2'")
    await until(async () => (await found()).length === 1)
    assert.deepEqual([await found(), await page.evaluate("document.getElementById('level').value")], [['two'], ''])
    await page.click('#requests .open')
    assert.match(await page.text('#entry-pairs'), /Request id\s+request-3$/)
    await page.click('#entry-lines')
    await until(async () => (await found())[0] === 'three')
    assert.equal(await page.evaluate("document.getElementById('entry').open"), false)
    assert.equal(await page.evaluate('document.activeElement.id'), 'search')
    await page.click('#requests tr:nth-child(2) .open')
    assert.equal(await page.evaluate("getComputedStyle(document.getElementById('entry-lines')).display"), 'none')
    await page.open('about:blank')
    await page.open(`${url}/svc-monitor#request=nobody`)
    await until(async () => (await page.text('#lines-count')) === '0 of 3 lines')
    assert.match(await page.text('.lines + .none'), /log file has older ones/)
    assert.deepEqual(page.errors, [])
  })

  test('on a phone the page is short: more charts and details are folded', async (t) => {
    const { page, url } = await start(t)
    await page.look({ width: 390, height: 844, dark: false })
    await page.open(`${url}/svc-monitor`)
    const open = "[...document.querySelectorAll('details')].filter((each) => each.open).length"
    assert.equal(await page.evaluate(open), 0)
    const height = Number(await page.evaluate('document.documentElement.scrollHeight'))
    assert.ok(height < 2500, `${height}`)
    await page.look(wide)
    await page.open(`${url}/svc-monitor`)
    assert.equal(await page.evaluate(open), 1)
  })

  test('streams, events and sessions are shown apart from plain requests, and failures are highlighted', async (t) => {
    const { page } = await start(t, (figures) => {
      const { status } = figures
      const waits = { count: 1234, p50_ms: 1, p99_ms: 98.7, max_ms: 100 }
      figures.status = {
        ...status,
        pool_ws: { workers: 10, active: 3, refused: 21, slow: 2 },
        pool_rest: { ...status.pool_rest, sse: 4, longpoll: 5, queue: 6, refused: 22, waits },
        events: { published: 31, delivered: 12_345_678, dropped: 33, slow: 5 },
        sessions: { stored: 7, evicted: 41, damaged: 0 },
      }
    })
    const pairs = "[...document.querySelectorAll('#streams div')].map(({ children: [name, value] }) => "
    assert.deepEqual(await page.evaluate(`${pairs} [name.textContent, value.textContent, value.dataset.state])`), [
      ['Waited for a worker', '1,234', ''],
      ['Wait p99 ms', '98.7', ''],
      ['Polls and SSE refused', '22', 'odd'],
      ['WebSockets refused', '21', 'odd'],
      ['Slow clients cut', '7', 'odd'],
      ['Events published', '31', ''],
      ['Events delivered', '12,345,678', ''],
      ['Events dropped', '33', 'odd'],
      ['Sessions evicted', '41', 'odd'],
      ['Sessions damaged', '0', ''],
    ])
    const uses = (await rowsOf(page, 'pools')).slice(2)
    assert.deepEqual(uses, ['WebSockets||3 / 10', 'Long polls||5 / 100', 'SSE||4 / 100', 'Stream queue||6 / 1,000'])
    assert.deepEqual(page.errors, [])
  })

  test('several processes have a table, in which an unresponsive one is highlighted; one process has none', async (t) => {
    const { page, figures } = await start(t)
    const panel = 'getComputedStyle(document.getElementById("processes-panel")).display'
    assert.equal(await page.evaluate(panel), 'none')
    const alone = figures.status
    const busy = makeProcess('1', 4243)
    figures.status = {
      ...alone,
      processes: [
        makeProcess('primary', 4242),
        { ...busy, requests: { total: 12_345, errors: 2, active: 3 }, pool_http: { busy: 64, queue: 9, alert: true } },
        { id: '2', pid: 4244, responding: false },
        { id: '3', pid: 4245, responding: false, starting: true },
        { id: '4', pid: 0, responding: false },
      ],
      processes_ended: { count: 2, requests: { total: 678, errors: 1 } },
    }
    await readNow(page)
    await until(async () => (await page.evaluate(panel)) === 'block')
    assert.deepEqual((await rowsOf(page, 'processes')).slice(1), [
      '1|4243|1 d 02 h|12,345|2|22.0|64|9|6|5|2|7|11.0|25 %|80',
      '2|4244|no answer|–|–|–|–|–|–|–|–|–|–|–|–',
      '3|4245|starting|–|–|–|–|–|–|–|–|–|–|–|–',
      '4|–|not running|–|–|–|–|–|–|–|–|–|–|–|–',
    ])
    assert.deepEqual(await outstandingIn(page, 'processes'), [['2', 'odd'], ['64', 'bad'], ['no answer', 'bad'], ['starting', 'odd'], ['not running', 'bad']])
    assert.equal(await page.text('#processes-ended'), '2 ended, with 678 requests')
    assert.match(await page.text('#facts'), /process 4242 and 4 workers/)
    await page.look({ width: 360, height: 740, dark: false })
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    figures.status = alone
    await readNow(page)
    await until(async () => (await page.evaluate(panel)) === 'none')
    assert.deepEqual(page.errors, [])
  })

  test('fits 360 pixels with the longest figures', async (t) => {
    const { page, figures } = await start(t)
    const { status } = figures
    figures.history = makeHistory(new Array<number>(180).fill(123_456))
    figures.status = {
      ...status,
      pool_http: { ...status.pool_http, busy: 100_000, workers: 100_000 },
      memory: { ...status.memory, rss_mb: 123_456 },
      connections: { ...status.connections, active: 123_456 },
    }
    await page.look({ width: 360, height: 740, dark: false })
    await readNow(page)
    await until(async () => (await page.text('#tiles')).includes('100,000 / 100,000'))
    assert.match(await page.text('#tiles'), /Loop delay ms\s*123,456/)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    const over = '[...document.querySelectorAll("#tiles > div")].filter((tile) => tile.scrollWidth > tile.clientWidth).length'
    assert.equal(await page.evaluate(over), 0)
  })

  test('servers that share an engine have a table, in which those with problems are highlighted', async (t) => {
    const { page, figures } = await start(t)
    const panel = 'getComputedStyle(document.getElementById("nodes-panel")).display'
    assert.equal(await page.evaluate(panel), 'none')
    const problem = 'Cannot reload the routes, so the old ones stay: file.json: it is not valid JSON at line 1, column 2'
    const alone = figures.status
    figures.status = {
      ...alone,
      nodes: [
        makeNode('web-1:8080', { self: true, processes: 4 }),
        makeNode('web-2:8080', { requests: { total: 12_345, errors: 2, per_second: 40, active: 0 }, event_loop: { p99_ms: 900 } }),
        makeNode('web-3:8080', { state: 'behind', problem, change: 6 }),
        makeNode('web-4:8080', { state: 'gone', seen_s: 754.2 }),
        makeNode('web-5:8080', { state: 'starting', uptime_s: 1 }),
        makeNode('web-6:8080', { state: 'stopping' }),
      ],
    }
    await readNow(page)
    await until(async () => (await page.evaluate(panel)) === 'block')
    assert.deepEqual(await rowsOf(page, 'nodes'), [
      'web-1:8080 (this one)|ready|1 d 02 h|12.5|1,234|0|3|11.0|80|4|4242|7|0.1.0',
      'web-2:8080|ready|1 d 02 h|40.0|12,345|2|0|900|80|1|4242|7|0.1.0',
      `web-3:8080|behind: ${problem}|1 d 02 h|12.5|1,234|0|3|11.0|80|1|4242|6|0.1.0`,
      'web-4:8080|gone for 12 min 34 s|–|–|–|–|–|–|–|–|4242|7|0.1.0',
      'web-5:8080|starting|1 s|12.5|1,234|0|3|11.0|80|1|4242|7|0.1.0',
      'web-6:8080|stopping|1 d 02 h|12.5|1,234|0|3|11.0|80|1|4242|7|0.1.0',
    ])
    assert.deepEqual(await outstandingIn(page, 'nodes'), [
      ['2', 'odd'], ['900', 'bad'], [`behind: ${problem}`, 'bad'], ['gone for 12 min 34 s', 'bad'], ['starting', 'none'], ['stopping', 'odd'],
    ])
    assert.equal(await page.text('#nodes-sum'), '2 of 6 ready, 90.0 requests a second')
    await page.look({ width: 360, height: 740, dark: false })
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    figures.status = alone
    await readNow(page)
    await until(async () => (await page.evaluate(panel)) === 'none')
    assert.deepEqual(page.errors, [])
  })

  test('a server without samples, requests and routes is drawn as such', async (t) => {
    const { page } = await start(t, (figures) => {
      figures.history = makeHistory([])
      figures.status = { ...figures.status, routes: [] }
    })
    assert.match(await page.text('#tiles'), /Requests \/ s\s+–/)
    assert.deepEqual(await rowsOf(page, 'routes'), [])
    assert.equal(await page.evaluate(state), 'Live')
    assert.deepEqual(page.errors, [])
  })

  test('a hole in the samples is a hole in the line', async (t) => {
    const { page } = await start(t, (figures) => {
      const { time, ...series } = makeHistory([1, 2, 3, 4])
      figures.history = { ...series, time: time.map((at, index) => (index < 2 ? at - 60_000 : at)) }
    })
    const path = String(await page.evaluate("document.querySelector('.plot path').getAttribute('d')"))
    assert.equal(path.replace(/[^ML]/g, ''), 'MLML')
  })

  test('the arrow keys read the values of an earlier time in all charts, Escape goes back', async (t) => {
    const { page } = await start(t)
    const press = (key: string) => {
      const event = `new KeyboardEvent('keydown', { key: '${key}', cancelable: true })`
      return page.evaluate(`document.querySelector('.plot').dispatchEvent(${event})`)
    }
    const first = "[...document.querySelectorAll('.entry:first-child b')].map((value) => value.textContent).slice(0, 2)"
    const spoken = "document.querySelector('.plot').getAttribute('aria-valuetext')"
    const steps = [
      ['ArrowLeft', '179'],
      ['PageUp', '167'],
      ['ArrowRight', '168'],
      ['Home', '1.00'],
      ['ArrowLeft', '1.00'],
      ['End', '180'],
    ] as const
    for (const [key, value] of steps) {
      assert.equal(await press(key), false, 'the page must not scroll')
      assert.deepEqual(await page.evaluate(first), [value, value], key)
      assert.match(String(await page.evaluate(spoken)), new RegExp(`^[\\d:]{8}: all ${value}, errors ${value}$`))
    }
    await press('Escape')
    assert.deepEqual(await page.evaluate(first), ['180', '180'])
    assert.equal(await press('x'), true)
  })

  test('the pointer reads the value below it', async (t) => {
    const { page } = await start(t)
    const move = (share: number) =>
      page.evaluate(`{
        const plot = document.querySelector('.plot')
        const { left, width } = plot.getBoundingClientRect()
        plot.dispatchEvent(new PointerEvent('pointermove', { clientX: left + 46 + (width - 58) * ${share} }))
      }`)
    const value = "Number(document.querySelector('.chart b').textContent)"
    await move(0.5)
    assert.ok(Math.abs(Number(await page.evaluate(value)) - 90) <= 1)
    await move(1)
    assert.equal(await page.evaluate(value), 180)
    await page.evaluate("document.querySelector('.plot').dispatchEvent(new PointerEvent('pointerleave'))")
    assert.equal(await page.evaluate("document.querySelectorAll('.reading').length"), 0)
  })

  test('it shows when the server is down, failing or requires a sign-in, and recovers automatically', async (t) => {
    const started = await start(t)
    const { page } = started
    const moods = [
      ['gone', /^The server is gone since \d\d:\d\d:\d\d\. Trying again\.$/],
      ['signed out', /^Signed out\.$/],
      ['unwell', /^The server answers 503 since/],
      ['html', /^Signed out\.$/],
    ] as const
    for (const [mood, text] of moods) {
      started.mood = mood
      await readNow(page)
      await says(page, text)
      assert.notEqual(await page.evaluate('document.title'), `Monitor · shop · ${hostname()}`)
      const link = await page.evaluate("document.querySelector('#state a')?.getAttribute('href') ?? ''")
      assert.equal(link, mood === 'signed out' || mood === 'html' ? '/svc-login?next=/svc-monitor' : '')
      started.mood = 'well'
      if (mood !== 'gone') await readNow(page) // It recovers from that automatically.
      await says(page, /^Live$/)
      assert.equal(await page.evaluate('document.title'), `Monitor · shop · ${hostname()}`)
    }
  })

  test('it pauses while hidden or held, and reads at once when it resumes', async (t) => {
    const started = await start(t)
    const { page } = started
    const hide = (hidden: boolean) =>
      page.evaluate(`{
        Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      }`)
    await hide(true)
    assert.equal(await page.evaluate(state), 'Paused while hidden')
    await hide(false)
    await says(page, /^Live$/)
    await page.click('#hold')
    assert.equal(await page.evaluate(state), 'Paused')
    const before = started.reads
    await hide(true)
    await hide(false)
    assert.equal(await page.evaluate(state), 'Paused')
    assert.equal(started.reads, before)
    await page.click('#hold')
    await until(() => started.reads > before)
    await says(page, /^Live$/)
  })

  test('log lines and requests are shown as text, the newest first, and pass the filters', async (t) => {
    const { page, figures } = await start(t, (given) => {
      given.lines = [
        { time: 1, level: 'debug', module: 'app', message: 'one' },
        { time: 2, level: 'warn', module: 'mine', message: '<img src=x onerror=alert(1)></script>' },
        { time: 3, level: 'error', module: 'app', message: 'three' },
      ]
      given.requests = [
        { time: 1, method: 'GET', path: '/<b>', status: 404, duration_ms: 0.5, route: '' },
        { time: 2, method: 'GET', path: '/svc-status', status: 200, duration_ms: 12.34, route: 'svc.status' },
      ]
    })
    const messages = async () => (await rowsOf(page, 'lines')).map((row) => row.split('|').slice(1).join('|'))
    const choose = (id: string, value: string) =>
      page.evaluate(`{
        const field = document.getElementById('${id}')
        field.value = '${value}'
        field.dispatchEvent(new Event('change'))
      }`)
    const odd = 'WARN|mine|<img src=x onerror=alert(1)></script>'
    assert.deepEqual(await messages(), ['ERROR|app|three', odd, 'DEBUG|app|one'])
    await choose('level', 'warn')
    assert.deepEqual(await messages(), ['ERROR|app|three', odd])
    await choose('module', 'mine')
    assert.deepEqual(await messages(), [odd])
    await choose('level', 'fatal')
    assert.deepEqual(await messages(), [])
    assert.equal(await page.evaluate("document.getElementById('module').value"), 'mine')

    const requests = async () => (await rowsOf(page, 'requests')).map((row) => row.split('|').slice(1).join('|'))
    assert.deepEqual(await requests(), ['404|0.50|GET||/<b>'])
    await page.click('#own')
    assert.deepEqual(await requests(), ['200|12.3|GET|svc.status|/svc-status', '404|0.50|GET||/<b>'])
    figures.requests = []
    await readNow(page)
    await until(async () => (await rowsOf(page, 'requests')).length === 0)
    assert.deepEqual(page.errors, [])
  })

  test('the charts show 1, 5 or 15 minutes, as the pressed button shows, and a reload keeps the choice', async (t) => {
    const { page, figures } = await start(t)
    const pressed = "[...document.querySelectorAll('[data-minutes][aria-pressed=true]')].map((button) => button.textContent)"
    const points = "document.querySelector('.plot path').getAttribute('d').split('L').length"
    const times = "[...document.querySelectorAll('#charts .chart:first-child .time')].map((label) => label.textContent).join(' ').trim()"
    const spoken = "document.querySelector('.plot').getAttribute('aria-label')"
    const most = () => page.evaluate("document.querySelector('.axis.value').parentNode.textContent.includes('4000')")
    const shows = async (button: string, ...expected: readonly unknown[]) => {
      assert.deepEqual(await page.evaluate(pressed), [button])
      assert.deepEqual([await page.evaluate(points), await page.evaluate(times), await page.evaluate(spoken)], expected)
    }
    await shows('15 min', 180, '−15 min −10 −5 now', 'Requests, the last 15 minutes')
    await page.click('[data-minutes="5"]')
    await until(async () => (await page.evaluate(points)) === 61)
    await shows('5 min', 61, '−5 min −4 −3 −2 −1 now', 'Requests, the last 5 minutes')
    await page.evaluate('document.querySelector(\'[data-minutes="1"]\').focus()')
    await page.press('Enter')
    await until(async () => (await page.evaluate(points)) === 13)
    await shows('1 min', 13, '−60 s −40 −20 now', 'Requests, the last minute')

    // A value from before the span does not set its scale, and a new reading keeps the span.
    figures.history = makeHistory([4000, ...new Array<number>(179).fill(3)])
    await readNow(page)
    await until(async () => /Requests \/ s\s+3\.00/.test(await page.text('#tiles')))
    assert.equal(await most(), false)
    await page.evaluate('window.isOld = true; location.reload()')
    await until(() => page.evaluate(`window.isOld !== true && ${pressed}.length === 1`).then((value) => value === true, () => false))
    await until(async () => (await page.evaluate("document.querySelector('.plot path').hasAttribute('d')")) === true)
    await shows('1 min', 13, '−60 s −40 −20 now', 'Requests, the last minute')
    assert.equal(await page.text('#charts-title'), 'The last minute')
    await page.click('[data-minutes="15"]')
    await until(async () => (await page.evaluate(points)) === 180)
    assert.equal(await most(), true)
    assert.deepEqual(page.errors, [])
  })

  test('the path of a request takes one line, and the whole of it opens by the keyboard', async (t) => {
    const long = `/search/${'a-long-name-'.repeat(16)}`
    const { page } = await start(t, (given) => {
      const one = { method: 'GET', status: 200, duration_ms: 0.5, route: 'shop.search' }
      given.requests = [{ ...one, time: 1, path: '/a' }, { ...one, time: 2, path: long }]
    })
    const heights = "[...document.querySelectorAll('#requests tr')].map((row) => row.offsetHeight)"
    const isCut = "(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)(document.querySelector('#requests .open'))"
    for (const width of [1280, 360]) {
      await page.look({ width, height: 900, dark: false })
      const [cut, whole] = (await page.evaluate(heights)) as [number, number]
      assert.equal(cut, whole, `${width}`)
      assert.equal(await page.evaluate(isCut), true)
      assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= width)
    }
    await page.evaluate("document.querySelector('#requests .open').focus()")
    await page.press('Enter')
    assert.equal(await page.text('#entry-text'), `GET ${long}`)
    assert.match(await page.text('#entry-pairs'), /Route\s+shop\.search/)
    await page.press('Escape')
    assert.equal(await page.evaluate("document.getElementById('entry').open"), false)
    assert.equal(await page.evaluate("document.activeElement === document.querySelector('#requests .open')"), true)
    assert.deepEqual(page.errors, [])
  })

  test('a log line opens with its stack and request id, stays while others arrive, and is copied completely', async (t) => {
    const time = Date.UTC(2026, 10, 20, 10, 27, 0, 123)
    const stack = '    Error: why <b>\n    at save (a.js:1:2)'
    const id = '4-YiBWim4s8u00000002'
    const line = { time, level: 'error', module: 'error', message: `GET / (home): why <b> [${id}]`, request_id: id, stack } as const
    const { page, figures } = await start(t, (given) => {
      given.lines = [{ time, level: 'info', module: 'app', message: 'one' }, line]
    })
    await page.evaluate("document.querySelector('#lines .open').focus()")
    await page.press('Enter')
    const text = `[2026-11-20T10:27:00.123Z] [ERROR] [error] ${line.message}\n${stack}`
    assert.equal(await page.text('#entry-text'), text)
    assert.match(await page.text('#entry-pairs'), new RegExp(`Request id\\s+${id}$`))
    figures.lines = [...figures.lines, { time, level: 'info', module: 'app', message: 'another' }]
    await readNow(page)
    await until(async () => (await rowsOf(page, 'lines')).length === 3)
    assert.equal(await page.text('#entry-text'), text)
    await page.evaluate("document.addEventListener('copy', () => (window.copied = getSelection().toString()))")
    await page.click('#entry-copy')
    assert.equal(await page.text('#entry-note'), 'Copied.')
    assert.equal(await page.evaluate('copied'), text)
    await page.click('#entry-close')
    await page.click('#lines .open')
    assert.equal(await page.text('#entry-text'), '[2026-11-20T10:27:00.123Z] [INFO] [app] another')
    assert.match(await page.text('#entry-pairs'), /Request id\s+–$/)
    assert.equal(await page.text('#entry-note'), '')
    assert.deepEqual(page.errors, [])
  })

  test('log lines are searched as one types: in the message, the stack and the request id', async (t) => {
    const { page } = await start(t, (given) => {
      const line = (message: string, more: object = {}) => ({ time: 1, level: 'info', module: 'app', message, ...more }) as const
      given.lines = [
        line('The Order was saved'),
        line('failed', { stack: '    Error: no order (a.js:1)' }),
        line('cut', { request_id: 'abcd-1234' }),
        ...Array.from({ length: 297 }, (_, at) => line(`line ${at}`)),
      ]
    })
    const found = async () => (await rowsOf(page, 'lines')).map((row) => row.split('|').at(-1))
    // Without a click: the page may move under it while rows come and go.
    const search = async (text: string) => {
      await page.evaluate("document.getElementById('search').focus(), document.getElementById('search').select()")
      await page.insert(text)
    }
    assert.equal((await found()).length, 300)
    await search('ORDER')
    assert.deepEqual(await found(), ['failed', 'The Order was saved'])
    assert.equal(await page.text('#lines-count'), '2 of 300 lines')
    await page.evaluate("document.getElementById('search').value = ''")
    await search('d-12')
    assert.deepEqual(await found(), ['cut'])
    await readNow(page)
    await page.evaluate("document.getElementById('search').value = ''")
    await search('[')
    assert.deepEqual(await found(), [])
    assert.deepEqual(page.errors, [])
  })

  test('the routes are sorted by each column over all routes, and without those of the panel by default', async (t) => {
    const { page } = await start(t, (given) => {
      const slow = Array.from({ length: 30 }, (_, at) => makeRoute(`slow.${at + 10}`, 100 + at))
      const busy = makeRoute('busy', 1, { count: 1_000_000, errors: 7, time_ms: 312 })
      const system = makeRoute('svc.status', 5000, { count: 5 })
      given.status = { ...given.status, routes: [busy, system, ...slow] }
    })
    const first = async () => (await rowsOf(page, 'routes')).map((row) => row.split('|')[0])
    const sorted = () => page.evaluate(`[...document.querySelectorAll('#routes-head [aria-sort]:not([aria-sort=none])')]
      .map((head) => [head.textContent, head.getAttribute('aria-sort')])`)
    const sortBy = (field: string) => page.click(`#routes-head [data-field=${field}]`)
    const slowest = Array.from({ length: 20 }, (_, at) => `slow.${39 - at}`)
    assert.deepEqual(await first(), slowest)
    assert.deepEqual(await sorted(), [['p99 ms', 'descending']])
    await sortBy('count')
    assert.deepEqual(await first(), ['busy', ...slowest.slice(0, 19)])
    assert.deepEqual(await sorted(), [['Requests', 'descending']])
    await readNow(page)
    await sortBy('name')
    assert.deepEqual((await first()).slice(0, 3), ['busy', 'slow.10', 'slow.11'])
    assert.deepEqual(await sorted(), [['Route', 'ascending']])
    for (const field of ['errors', 'time_ms', 'p50_ms', 'p95_ms', 'max_ms', 'p99_ms']) {
      await sortBy(field)
      assert.equal((await first())[0], field === 'errors' || field === 'time_ms' ? 'busy' : 'slow.39', field)
    }
    await page.click('#own-routes')
    assert.deepEqual(await first(), ['svc.status', ...slowest.slice(0, 19)])
    assert.deepEqual(page.errors, [])
  })

  test('clients that left a wait are shown apart from errors, and refusals by limits by rule', async (t) => {
    const { page, figures } = await start(t, (given) => {
      given.status = {
        ...given.status,
        requests: { ...given.status.requests, errors: 0, left: 12 },
        limits: { refused: { login: 3, '<b>': 0 } },
      }
      const poll = { time: 1, method: 'GET', path: '/poll', status: 499, duration_ms: 9000, route: 'poll' }
      given.requests = [poll, { ...poll, left: true }]
    })
    assert.match(await page.text('#window'), /Errors\s+0\s+Left while waiting\s+12/)
    assert.deepEqual(await outstandingIn(page, 'window'), [])
    assert.deepEqual((await rowsOf(page, 'requests')).map((row) => row.split('|')[1]), ['left', '499'])
    assert.deepEqual(await outstandingIn(page, 'requests'), [['499', 'odd']])
    assert.match(await page.text('#limits'), /^login\s+3\s+<b>\s+0$/)
    assert.deepEqual(await outstandingIn(page, 'limits'), [['3', 'odd']])
    const fold = "getComputedStyle(document.getElementById('limits-fold')).display"
    assert.equal(await page.evaluate(fold), 'block')
    figures.status = { ...figures.status, limits: { refused: {} } }
    await readNow(page)
    await until(async () => (await page.evaluate(fold)) === 'none')
    assert.deepEqual(page.errors, [])
  })

  test('at 1280 pixels no card ends in a blank of a third or more', async (t) => {
    const { page, figures } = await start(t, (given) => {
      const request = { method: 'GET', path: '/a', status: 200, duration_ms: 0.5, route: 'home' }
      given.requests = Array.from({ length: 100 }, (_, time) => ({ ...request, time }))
      given.lines = Array.from({ length: 100 }, (_, time) => ({ time, level: 'info', module: 'app', message: 'one' }))
    })
    await page.look({ width: 1280, height: 900, dark: false })
    const blanks = `[...document.querySelectorAll('.panel')].filter((panel) => panel.offsetHeight > 0).flatMap((panel) => {
      const { bottom, height } = panel.getBoundingClientRect()
      const walker = document.createTreeWalker(panel, NodeFilter.SHOW_ALL)
      let lowest = 0
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        if (node.firstChild !== null || node.textContent.trim() === '' && node.localName !== 'line') continue
        const range = document.createRange()
        range.selectNode(node)
        lowest = Math.max(lowest, range.getBoundingClientRect().bottom)
      }
      return bottom - lowest < height / 3 ? [] : [[panel.innerText.slice(0, 20), bottom - lowest, height]]
    })`
    assert.deepEqual(await page.evaluate(blanks), [])
    const rules = Array.from({ length: 6 }, (_, at) => [`rule-${at}`, at])
    figures.status = { ...figures.status, routes: [], limits: { refused: Object.fromEntries(rules) } }
    figures.requests = figures.requests.slice(0, 3)
    await readNow(page)
    await until(async () => (await rowsOf(page, 'requests')).length === 3)
    assert.deepEqual(await page.evaluate(blanks), [])
  })

  test('text dimmed while the server is down has a contrast of 4.5 or more, in light and dark', async (t) => {
    const started = await start(t, (given) => {
      const { status } = given
      const requests = { total: 9, errors: 2, active: 1 }
      given.status = {
        ...status,
        routes: [makeRoute('a', 3, { errors: 1 })],
        pool_http: { ...status.pool_http, alert: true },
        processes: [{ ...makeProcess('1', 1), requests }, { id: '2', pid: 2, responding: false }],
        nodes: [makeNode('a'), makeNode('b', { state: 'gone' }), makeNode('c', { state: 'stopping' })],
      }
      given.lines = (['warn', 'error', 'info'] as const).map((level) => ({ time: 1, level, module: 'app', message: 'one', stack: 'x' }))
      given.requests = [200, 404, 500].map((code) => ({ time: 1, method: 'GET', path: '/', status: code, duration_ms: 1, route: 'a' }))
    })
    const { page } = started
    started.mood = 'unwell'
    await readNow(page)
    await says(page, /^The server answers 503/)
    const contrasts = `{
      const channels = (color) => color.match(/[\\d.]+/g).map(Number)
      const light = (color) => channels(color).slice(0, 3).map((value) => value / 255)
        .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
        .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0) + 0.05
      const above = (element) => (element === null ? [] : [element, ...above(element.parentElement)])
      const found = [...document.querySelectorAll('.board *')].filter((element) =>
        element.getClientRects().length > 0 && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== ''))
      found.map((element) => {
        const styles = above(element).map((each) => getComputedStyle(each))
        const back = styles.map(({ backgroundColor }) => backgroundColor).find((color) => channels(color)[3] !== 0)
        const text = element.localName === 'text' ? styles[0].fill : styles[0].color
        const [low, high] = [light(text), light(back)].sort((a, b) => a - b)
        const isWhole = styles.every(({ opacity }) => opacity === '1') && (channels(back)[3] ?? 1) === 1
        return [element.textContent, isWhole ? high / low : 0, text]
      })
    }`
    const colours = new Set<string>()
    for (const dark of [false, true]) {
      await page.look({ ...wide, dark })
      const all = (await page.evaluate(contrasts)) as [string, number, string][]
      assert.ok(all.length > 150, `${all.length}`)
      assert.deepEqual(all.filter(([, contrast]) => contrast < 4.5), [])
      for (const [, , colour] of all) colours.add(colour)
    }
    assert.ok(colours.size >= 8, `muted, good, bad and odd are among ${[...colours].join(' ')}`)
  })

  test('a trace switch shows the current state, and a message below it when it could not be set', async (t) => {
    const { page, switched } = await start(t)
    const pressed = "[...document.querySelectorAll('#trace [aria-pressed=true]')].map((button) => button.textContent)"
    const buttons = "[...document.querySelectorAll('#trace button')]"
    const click = (name: string) =>
      page.evaluate(`${buttons}.find((button) => button.textContent === '${name}').click()`)
    assert.deepEqual(await page.evaluate(pressed), ['app'])
    await click('app')
    await until(async () => (await page.text('#trace-note')) === 'app: trace off.')
    assert.deepEqual(await page.evaluate(pressed), [])
    await click('pool')
    await until(async () => (await page.text('#trace-note')) === 'not today')
    await click('all on')
    await until(async () => (await page.text('#trace-note')) === 'all: trace on.')
    const all = { module: 'all', enabled: true }
    assert.deepEqual(switched, [{ module: 'app', enabled: false }, { module: 'pool', enabled: true }, all])
  })

  test('a reading that began before a trace switch does not set it back', async (t) => {
    const started = await start(t)
    const { page } = started
    started.mood = 'late'
    await until(() => started.release !== undefined)
    started.mood = 'well'
    await page.evaluate(`{
      const [button] = [...document.querySelectorAll('#trace button')].filter((each) => each.textContent === 'app')
      globalThis.seen = []
      const observer = new MutationObserver(() => seen.push(button.getAttribute('aria-pressed')))
      observer.observe(button, { attributeFilter: ['aria-pressed'] })
      button.click()
    }`)
    await until(async () => (await page.text('#trace-note')) === 'app: trace off.')
    started.release?.()
    const reads = started.reads
    await until(() => started.reads > reads)
    assert.deepEqual(await page.evaluate('seen'), ['false'])
  })

  test('warnings are at the top, and disappear when there are none', async (t) => {
    const { page, figures } = await start(t, (given) => {
      given.status = { ...given.status, warnings: ['the <disk> is full', 'another'] }
    })
    assert.equal(await page.text('#warnings'), 'the <disk> is full\n\nanother')
    figures.status = { ...figures.status, warnings: [] }
    await readNow(page)
    await until(async () => (await page.evaluate("document.getElementById('warnings').childElementCount")) === 0)
  })
})
