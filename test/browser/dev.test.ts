/** Pages in `dev` refresh themselves, and show why a reload was refused. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { startApplication, type Files } from '../support/application.ts'
import { openPage } from '../support/browser.ts'
import { until } from '../support/until.ts'

const page = (text: string): string => `<!doctype html>\n<html><head><meta name="viewport" content="width=device-width"><title>${text}</title></head><body><h1>${text}</h1>\n</body></html>\n`
const policies = "default-src 'none'; style-src 'nonce-abc'"
const files: Files = {
  'routes/r.json': [
    { name: 'home', url: '/', method: 'GET', scope: '', action: 'home.html' },
    { name: 'strict', url: '/strict', method: 'GET', scope: '', action: 'actions.mjs@strict' },
    { name: 'broken', url: '/broken', method: 'GET', scope: '', action: 'actions.mjs@broken' },
  ],
  'home.html': page('one'),
  'actions.mjs': actions('broken'),
}

function actions(body: string): string {
  return `export const strict = (ctx) => { ctx.setHeader('Content-Security-Policy', ${JSON.stringify(policies)}); return ctx.view('home.html') }
export const broken = (ctx) => { ${body === 'broken' ? "throw new Error('not yet')" : "return ctx.view('home.html')"} }
`
}

const body = 'document.body.innerText'
const title = 'document.querySelector("h1").innerText'
const problems = '[...document.querySelector("svc-dev")?.shadowRoot.querySelectorAll("li") ?? []].map((item) => item.innerText).join("\\n")'

async function start(t: TestContext, path: string) {
  const browser = await openPage(t)
  const server = await startApplication(t, files, { 'app.env': 'dev' }, { watch: true })
  await browser.open(server.url + path)
  return { browser, server, shows: (expression: string, text: string) => until(() => showsNow(expression, text)) }

  /** A page that is just being replaced has no answer. */
  async function showsNow(expression: string, text: string): Promise<boolean> {
    return String(await browser.evaluate(expression).catch(() => '')).includes(text)
  }
}

describe('an open page in dev', () => {
  test('refreshes when its view is saved', async (t) => {
    const { browser, server, shows } = await start(t, '/')
    server.write({ 'home.html': page('two') })
    await shows(title, 'two')
    assert.deepEqual(browser.errors.filter((error) => !error.includes('favicon')), [])
  })

  test('refreshes when its view was empty for a while, as when it is written in two steps', async (t) => {
    const { server, shows } = await start(t, '/')
    server.write({ 'home.html': '' })
    await shows('`${document.readyState} ${document.querySelectorAll("h1").length}`', 'complete 0')
    server.write({ 'home.html': page('two') })
    await shows(title, 'two')
  })

  test('gets a saved style sheet without a refresh, and refreshes where it has none', async (t) => {
    const browser = await openPage(t)
    const config = { 'app.env': 'dev', 'paths.public': 'public' }
    const styled = page('one').replace('<title>', '<link rel="stylesheet" href="/one.css"><link rel="stylesheet" href="/two.css"><title>')
    const colours = 'getComputedStyle(document.querySelector("h1")).color + getComputedStyle(document.body).color'
    const sheets = { 'public/one.css': 'h1 { color: #010101 }', 'public/two.css': 'body { color: #020202 }' }
    const server = await startApplication(t, { ...files, ...sheets, 'styled.html': styled, 'routes/s.json': [
      { name: 'styled', url: '/styled', method: 'GET', scope: '', action: 'styled.html' },
    ] }, config, { watch: true })
    const shows = (expression: string, value: unknown): Promise<void> =>
      until(async () => (await browser.evaluate(expression).catch(() => 'being replaced')) === value)
    await browser.open(`${server.url}/styled`)
    await shows(colours, 'rgb(1, 1, 1)rgb(2, 2, 2)')
    await browser.evaluate('globalThis.typed = "kept"')
    for (const [one, two] of [[3, 2], [4, 2], [4, 5]]) {
      server.write({ 'public/one.css': `h1 { color: #0${one}0${one}0${one} }`, 'public/two.css': `body { color: #0${two}0${two}0${two} }` })
      await shows(colours, `rgb(${one}, ${one}, ${one})rgb(${two}, ${two}, ${two})`)
      await shows('document.querySelectorAll("link").length', 2)
    }
    assert.equal(await browser.evaluate('globalThis.typed'), 'kept')
    server.write({ 'public/one.css': 'h1 { color: #060606 }', 'styled.html': styled.replace('one</h1>', 'two</h1>') })
    await shows(title, 'two')
    await shows('globalThis.typed', undefined)
    await browser.open(server.url)
    await browser.evaluate('globalThis.typed = "kept"')
    server.write({ 'public/one.css': 'h1 { color: #070707 }' })
    await shows('globalThis.typed', undefined)
  })

  test('refreshes under a policy that allows nothing', async (t) => {
    const { browser, server, shows } = await start(t, '/strict')
    server.write({ 'home.html': page('two') })
    await shows(title, 'two')
    server.write({ 'routes/r.json': '[' })
    await shows(problems, 'r.json')
    const style = 'getComputedStyle(document.querySelector("svc-dev").shadowRoot.querySelector("section")).position'
    assert.equal(await browser.evaluate(style), 'fixed')
    assert.deepEqual(browser.errors.filter((error) => !error.includes('favicon')), [])
  })

  test('shows why a reload was refused, until it is fixed', async (t) => {
    const { browser, server, shows } = await start(t, '/')
    server.write({ 'routes/r.json': '[\n{ "name": 1 }]' })
    await shows(problems, 'r.json:2:3')
    assert.equal(await browser.text('h1'), 'one')
    await browser.evaluate('document.querySelector("svc-dev").shadowRoot.querySelector("button").click()')
    assert.equal(await browser.evaluate('document.querySelector("svc-dev")'), null)
    await browser.open(server.url)
    await shows(problems, 'r.json:2:3')
    server.write({ 'home.html': page('two') })
    await shows(title, 'two')
    await shows(problems, 'r.json:2:3')
    server.write({ 'routes/r.json': files['routes/r.json'] })
    await until(async () => (await browser.evaluate('document.querySelector("svc-dev")').catch(() => '')) === null)
  })

  test('of an error refreshes when the mistake is fixed', async (t) => {
    const { browser, server, shows } = await start(t, '/broken')
    await shows(body, 'not yet')
    server.write({ 'actions.mjs': actions('mended') })
    await shows(title, 'one')
    browser.errors.length = 0 // The browser reports that the first response was a 500.
    await browser.open(`${server.url}/new`)
    await shows(body, '404')
    server.write({ 'routes/new.json': [{ name: 'new', url: '/new', method: 'GET', scope: '', action: 'home.html' }] })
    await shows(title, 'one')
  })

  for (const time of ['once', 'twice', 'a third time']) {
    test(`can be closed while it refreshes in four tabs, ${time}`, async (t) => {
      const { browser, server } = await start(t, '/')
      const tabs = [browser]
      while (tabs.length < 4) tabs.push(await browser.another())
      for (const tab of tabs) await tab.open(server.url)
      const replaced = tabs.map((tab) => assert.rejects(tab.evaluate('new Promise(() => {})'), /navigated/))
      server.write({ 'home.html': page('two') })
      await Promise.any(replaced)
    })
  }

  test('refreshes after a restart of the server', async (t) => {
    const browser = await openPage(t)
    const first = await startApplication(t, files, { 'app.env': 'dev' }, { watch: true })
    await browser.open(first.url)
    await first.app.stop()
    await startApplication(t, { ...files, 'home.html': page('two') }, { 'app.env': 'dev', 'server.port': first.port }, { watch: true })
    await until(async () => (await browser.evaluate(title).catch(() => '')) === 'two')
  })

  test('waits while it is hidden', async (t) => {
    const { browser, server, shows } = await start(t, '/')
    const turn = (hidden: boolean): Promise<unknown> =>
      browser.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`)
    await turn(true)
    server.write({ 'home.html': page('two') })
    const looker = await openPage(t)
    await looker.open(server.url)
    await until(async () => (await looker.evaluate(title).catch(() => '')) === 'two')
    assert.equal(await browser.text('h1'), 'one')
    await turn(false)
    await shows(title, 'two')
  })

  for (const [width, dark] of [[1280, false], [360, true]] as const) {
    test(`fits its overlay into ${width} pixels${dark ? ', in the dark' : ''}`, async (t) => {
      const { browser, server, shows } = await start(t, '/')
      await browser.look({ width, height: 740, dark })
      server.write({ 'routes/r.json': JSON.stringify([{ name: 'a-name-without-any-space-in-it-'.repeat(5), action: 1 }]) })
      await shows(problems, 'r.json')
      assert.equal(await browser.evaluate('document.documentElement.scrollWidth'), width)
      const colour = 'getComputedStyle(document.querySelector("svc-dev").shadowRoot.querySelector("section")).backgroundColor'
      assert.equal(await browser.evaluate(colour), dark ? 'rgb(29, 27, 32)' : 'rgb(255, 255, 255)')
    })
  }
})
