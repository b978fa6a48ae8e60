// The page of profiles in a browser, with profiles of a running server.
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { cookieOf, nowSeconds, password, startPanel, user, type PanelServer } from '../panel/panel-server.ts'
import { openPage, type Page } from '../support/browser.ts'
import { until } from '../support/until.ts'

const working = {
  'routes/a.json': ['spin', 'keep'].map((name) => ({ name, url: `/${name}`, action: `work.mjs@${name}` })),
  'work.mjs': `
    const kept = []
    const inner = (end) => {
      let sum = 0
      while (Date.now() < end) for (let at = 0; at < 10_000; at += 1) sum += Math.sqrt(at)
      return String(sum)
    }
    export const spin = () => inner(Date.now() + 400)
    export function keep() {
      for (let at = 0; at < 100_000; at += 1) kept.push({ at })
      return 'kept'
    }
  `,
}

async function open(t: TestContext): Promise<{ readonly page: Page; readonly server: PanelServer }> {
  const page = await openPage(t)
  const server = await startPanel(t, {}, working)
  await page.look({ width: 1280, height: 900, dark: false })
  await page.open(`${server.url}/svc-login?next=/svc-profile`)
  await page.type('#user', user)
  await page.type('#password', password)
  await page.follow('form button')
  await page.evaluate("document.getElementById('seconds').value = '1'")
  return { page, server }
}

/** Takes a profile of a second, during which an address is requested. Returns what the page then says. */
async function take(page: Page, server: PanelServer, kind: 'cpu' | 'heap', path: string): Promise<string> {
  await page.click(`[value=${kind}]`)
  await until(() => server.lines().some((line) => line.includes(`${kind} profile started`)))
  await server.ask(path)
  await until(async () => (await page.evaluate("document.getElementById('running').hidden")) === true)
  // The graph is drawn again in its first frame, when it gets a width. A click on a box that is replaced then is lost.
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  return page.text('#state')
}

/** The boxes of the graph with this class, by their text. */
function boxes(page: Page, className: string): Promise<unknown> {
  return page.evaluate(`[...document.querySelectorAll('#graph .${className}')].map((box) => box.textContent)`)
}

async function pressArrow(page: Page, ...keys: readonly string[]): Promise<string> {
  for (const key of keys) {
    await page.evaluate(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Arrow${key}', bubbles: true }))`)
  }
  return page.text('#detail')
}

describe('the page of profiles', { concurrency: 1 }, () => {
  test('draws a CPU profile, which mouse and keyboard can search, and links to its file', async (t) => {
    const { page, server } = await open(t)
    const keep = 'const { createObjectURL } = URL; var kept; URL.createObjectURL = (blob) => createObjectURL((kept = blob)); 0'
    await page.evaluate(keep)
    assert.match(await take(page, server, 'cpu', '/spin'), /^Process 1 was busy for .* and idle for .*\.$/)
    assert.equal(await page.text('#result-title'), 'CPU of process 1')
    const spin = "[...document.querySelectorAll('#graph .application')].find(({ textContent }) => textContent === 'spin work.mjs:8')"
    await page.evaluate(`${spin}.id = 'spin'`)
    await page.click('#spin')
    assert.match(await page.text('#detail'), /^spin · work\.mjs:8 · application · total \d+ ms \(\d+ %\) · self /)
    const width = "document.querySelector('#graph .chosen').offsetWidth / document.getElementById('graph').clientWidth"
    assert.equal(Math.round(Number(await page.evaluate(width))), 1)
    assert.ok(((await boxes(page, 'caller')) as string[]).length > 3, 'the callers of the function in full width')

    await page.tabTo('#graph')
    assert.match(await pressArrow(page, 'Down'), /^inner · work\.mjs:3 · application · total \d+ ms .* self \d+ ms/)
    assert.match(await pressArrow(page, 'Up'), /^spin /)
    await pressArrow(page, 'Down')
    await page.press('Enter')
    assert.deepEqual(((await boxes(page, 'caller')) as string[]).at(-1), 'spin work.mjs:8')
    await page.press('Escape')
    assert.deepEqual(await boxes(page, 'caller'), [])
    assert.match(await page.text('#detail'), /^all · total .* \(100 %\)/)
    assert.match(await pressArrow(page, 'Down'), /· (?:server|Node and V8) ·/)

    const heaviest = "[...document.querySelectorAll('#functions tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    const [, place, part, self] = ((await page.evaluate(heaviest)) as string[][]).find(([name]) => name === 'inner') ?? []
    assert.deepEqual([place, part], ['work.mjs:3', 'application'])
    assert.match(String(self), /^\d+ ms \(\d+ %\)$/)

    assert.match(String(await page.evaluate('document.getElementById("file").download')), /^cpu-process-1-.*\.cpuprofile$/)
    assert.ok(String(await page.evaluate('kept.text().then((text) => Object.keys(JSON.parse(text)).join())')).includes('timeDeltas'))
    await page.click('#file')
    assert.equal(await page.evaluate('location.pathname'), '/svc-profile')
    assert.equal(server.lines().filter((line) => line.includes('profile started')).length, 1)
    assert.deepEqual(page.errors, [])
  })

  test('draws a heap profile', async (t) => {
    const { page, server } = await open(t)
    assert.match(await take(page, server, 'heap', '/keep'), /^Process 1 allocated .* MB that are still in use/)
    assert.equal(await page.text('#result-title'), 'Memory of process 1')
    assert.match(await page.text('#functions'), /^keep\s+work\.mjs:9\s+application\s+.* MB/m)
    assert.match(await page.text('#file'), /^heap-process-1-.*\.heapprofile$/)
    assert.deepEqual(page.errors, [])
  })

  test('says why there is no profile, and can be cancelled', async (t) => {
    const { page, server } = await open(t)
    const other = new AbortController()
    t.after(() => other.abort())
    const headers = { cookie: cookieOf(nowSeconds()) }
    fetch(`${server.url}/svc-profile?seconds=60`, { headers, signal: other.signal }).catch(() => {})
    await until(() => server.lines().some((line) => line.includes('cpu profile started')))
    await page.click('[value=heap]')
    await until(async () => /already taking a profile: try again in/.test(await page.text('#state')))
    assert.equal(await page.evaluate("document.getElementById('state').className"), 'message error')
    other.abort()
    await page.evaluate("document.getElementById('seconds').value = '60'")
    await until(async () => {
      await page.click('[value=heap]')
      await until(async () => (await page.text('#state')) !== 'Taking a profile of 60 s…' || server.lines().some((line) => line.includes('heap profile started')))
      return (await page.text('#state')) === 'Taking a profile of 60 s…'
    })
    assert.equal(await page.evaluate('document.activeElement.id'), 'cancel')
    await page.press('Enter')
    await until(async () => (await page.text('#state')) === 'Cancelled.')
    assert.equal(await page.evaluate('document.activeElement.value'), 'heap')
    await until(async () => (await server.askSignedIn('/svc-profile?seconds=1')).status === 200)
  })
})
