import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { changeConfig, greeting, password, startPanel, user, type PanelServer } from '../panel/panel-server.ts'
import { openPage, type Page } from '../support/browser.ts'
import { until } from '../support/until.ts'

const state = 'document.getElementById("state").dataset.text'
const path = 'location.pathname + location.search'

async function signIn(page: Page, word: string): Promise<void> {
  await page.evaluate("document.getElementById('user').value = ''")
  await page.type('#user', user)
  await page.type('#password', word)
  await page.follow('form button')
}

/** Opens a page of the panel, signing in first. */
async function openSignedIn(page: Page, server: PanelServer, address: string): Promise<void> {
  await page.open(server.url + address)
  await signIn(page, password)
  assert.equal(await page.evaluate(path), address)
}

/** Sends JSON from within the page. */
function post(page: Page, address: string, value: unknown): Promise<unknown> {
  const options = `{ method: 'POST', body: ${JSON.stringify(JSON.stringify(value))} }`
  return page.evaluate(`fetch('${address}', ${options}).then((response) => response.json())`)
}

// Concurrently, and the longest first: those two wait for the server's clock.
describe('the panel', { concurrency: 3 }, () => {
  test('the monitor moves under load, switches the trace and opens a bench window', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, { 'monitor.interval_s': 1 }, greeting)
    await openSignedIn(page, server, '/svc-monitor')
    await page.openDetails()
    const tile = 'Number(document.querySelector("#tiles dd").textContent.replace(/\\D+$/, ""))'
    const drawn = 'document.querySelector(".plot path").getAttribute("d")'
    await until(async () => (await page.evaluate(drawn)) !== null)
    const before = await page.evaluate(drawn)

    await page.click('#bench-start')
    await until(async () => /^Started at/.test(await page.text('#bench-note')))
    await until(async () => {
      const answers = await Promise.all(Array.from({ length: 10 }, () => server.ask('/hello/ann')))
      assert.ok(answers.every(({ status }) => status === 200))
      await delay(100) // The load is at most 100 requests a second.
      return Number(await page.evaluate(tile)) > 5
    })
    assert.notEqual(await page.evaluate(drawn), before)
    assert.match(await page.text('#requests tr'), /200\s.*GET\s+hello\s+\/hello\/ann/)
    await page.click('#bench-stop')
    await until(async () => /^Read at/.test(await page.text('#bench-note')))
    const counted = /Requests\s+([\d,]+)/.exec(await page.text('#bench'))?.[1] ?? ''
    assert.ok(Number(counted.replace(',', '')) > 5, counted)

    const appSwitch = '[...document.querySelectorAll("#trace button")].find((button) => button.textContent === "app")'
    assert.equal(await page.evaluate(`${appSwitch}.getAttribute('aria-pressed')`), 'true')
    await page.evaluate(`${appSwitch}.click()`)
    await until(async () => (await page.text('#trace-note')) === 'app: trace off.')
    assert.equal(await page.evaluate(`${appSwitch}.getAttribute('aria-pressed')`), 'false')
    assert.match((await server.askSignedIn('/svc-trace')).text, /"app":false,"server":true/)
    assert.deepEqual(page.errors, [])
  })

  test('open pages recover after a stop and a new start of the server', async (t) => {
    const [monitor, index] = [await openPage(t), await openPage(t)]
    const server = await startPanel(t, { 'monitor.interval_s': 1 }, greeting)
    changeConfig(server, { 'server.port': server.port })
    await openSignedIn(monitor, server, '/svc-monitor')
    await openSignedIn(index, server, '/svc-index')
    await index.type('#q', 'svc.stop')
    await until(async () => (await index.text('#count')).startsWith('1 of'))
    await server.app.stop()
    await index.type('#q', '.')
    await until(async () => (await index.text('#count')) === 'The server does not answer. Trying again.')
    await until(async () => /^The server is gone since/.test(String(await monitor.evaluate(state))))
    await server.restart()
    await until(async () => (await monitor.evaluate(state)) === 'Live')
    await until(async () => (await index.text('#count')).startsWith('0 of'))
  })

  test('the first visitor sets up the administrator, who signs in and out', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, { 'admin.user': '', 'admin.password': '', 'admin.secret': '' })
    await page.open(`${server.url}/svc-monitor`)
    assert.equal(await page.evaluate(path), '/svc-setup')
    assert.equal(await page.evaluate('document.activeElement.id'), 'user')
    await page.type('#user', user)
    await page.type('#password', password)
    await page.type('#password2', 'another one')
    await page.follow('form button')
    assert.equal(await page.text('[role=alert]'), 'Passwords do not match')
    assert.equal(await page.evaluate('document.getElementById("user").value'), user)
    assert.equal(await page.evaluate('document.activeElement.id'), 'password')
    await page.type('#password', password)
    await page.type('#password2', password)
    await page.follow('form button')
    assert.equal(await page.evaluate(path), '/svc-login')

    await signIn(page, 'wrong')
    assert.equal(await page.text('[role=alert]'), 'Invalid credentials')
    await signIn(page, password)
    assert.equal(await page.evaluate(path), '/svc-monitor')
    await page.open(`${server.url}/svc-routes/list`)
    await page.follow('header a[href="/svc-logout"]')
    assert.equal(await page.evaluate(path), '/svc-login')
    await page.open(`${server.url}/svc-routes/list`)
    assert.equal(await page.evaluate(path), '/svc-login?next=/svc-routes/list')
  })

  test('an added route is found by typing in the list of all routes and opened from there', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, {}, greeting)
    await openSignedIn(page, server, '/svc-index')
    assert.match(await page.text('tbody tr'), /^hello\s/, "the application's routes come first")
    const record = { name: 'late.hello', url: '/late/:name', method: 'GET', action: 'hello.mjs' }
    assert.deepEqual(await post(page, '/svc-routes/add', record), { ok: true, name: 'late.hello' })
    const shown = 'document.querySelectorAll("tbody tr").length'
    await page.type('#q', 'LATE')
    await until(async () => (await page.evaluate(shown)) === 1)
    assert.match(await page.text('#count'), /^1 of \d+ routes$/)
    await page.open(String(await page.evaluate('location.href')))
    assert.equal(await page.evaluate(path), '/svc-index?q=LATE')
    assert.equal(await page.evaluate('document.getElementById("q").value'), 'LATE')
    assert.equal(await page.evaluate(shown), 1)
    assert.deepEqual(page.errors, []) // The next page is not of the panel.
    await page.click('.open summary')
    await page.type('.open input:not([type=hidden])', 'a b/c')
    await page.follow('.open button')
    assert.equal(await page.evaluate(path), '/late/a%20b%2Fc')
    assert.equal(await page.text('body'), 'hello a b/c')
  })

  test('the list of all routes opens pages that change the server only after confirmation', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t)
    await openSignedIn(page, server, '/svc-index')
    const row = 'tr:has([aria-label^="Open svc.stop"])'
    await page.click(`${row} summary`)
    assert.equal(server.app.stopping, false)
    await page.follow(`${row} details a`)
    assert.equal(await page.text('body'), '{"status":"stopping"}')
    await server.app.stopped
  })

  test('every page fits 360 pixels, has its navigation in two lines and marks the current page', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, {}, greeting)
    await page.look({ width: 360, height: 740, dark: true })
    const width = 'document.documentElement.scrollWidth'
    const pages = [
      ['/svc-monitor', 'Monitor'],
      ['/svc-index', 'Routes'],
      ['/svc-routes/list', 'Routes'],
      ['/svc-routes/listall', 'Routes'],
      ['/svc-routes/diff', 'Routes'],
      ['/svc-errors', 'Errors'],
      ['/svc-profile', 'Profile'],
      ['/svc-config', 'Configuration'],
      ['/svc-changes', 'Changes'],
      ['/svc-openapi', 'API'],
    ] as const
    await page.open(`${server.url}${pages[0][0]}`)
    assert.equal(await page.evaluate(width), 360)
    await signIn(page, password)
    for (const [address, name] of pages) {
      await page.open(server.url + address)
      assert.equal(await page.evaluate(width), 360, address)
      const tops = 'new Set([...document.querySelectorAll("header nav > *")].map((link) => link.offsetTop)).size'
      assert.ok(Number(await page.evaluate(tops)) <= 2, address)
      assert.equal(await page.text('header nav [aria-current]'), name)
    }
    const back = 'getComputedStyle(document.body).backgroundColor'
    const dark = await page.evaluate(back)
    await page.look({ width: 360, height: 740, dark: false })
    assert.notEqual(await page.evaluate(back), dark)
    assert.deepEqual(page.errors, [])
  })
})
