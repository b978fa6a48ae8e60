// The panel by keyboard only: Tab reaches everything that a mouse can use, the focus is visible, and Enter activates it.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { described } from '../panel/described.ts'
import { failing, password, startPanel, user } from '../panel/panel-server.ts'
import { startBoard } from '../support/board.ts'
import { openPage, type Page } from '../support/browser.ts'
import { send, signUp } from './board-person.ts'

const paths = [
  '/svc-monitor', '/svc-errors', '/svc-routes/list', '/svc-routes/list?record=new', '/svc-routes/diff', '/svc-config',
  '/svc-changes', '/svc-index', '/svc-openapi', '/svc-profile',
]

/** Every visible element that a mouse can use, numbered; those that Tab reaches are removed. */
const numberControls = `(() => {
  const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
  const shown = all.filter((one) => one.checkVisibility() && !one.disabled && one.type !== 'hidden')
  shown.forEach((one, at) => { one.dataset.number = at })
  return shown.length
})()`
/** The number of the focused element, and whether the focus is visible: '' for the page itself. */
const whereFocusIs = `(() => {
  const { activeElement: one } = document
  if (one.dataset.number === undefined) return ''
  const { outlineStyle, outlineWidth } = getComputedStyle(one)
  return one.dataset.number + (outlineStyle !== 'none' && outlineWidth !== '0px' ? '' : ' unseen')
})()`

async function signIn(page: Page, url: string): Promise<void> {
  await page.open(`${url}/svc-login`)
  await page.tabTo('#user')
  await page.insert(user)
  await page.tabTo('#password')
  await page.insert(password)
  await page.enter()
}

/** The elements that Tab does not reach, or without visible focus. */
async function unreached(page: Page): Promise<string[]> {
  const count = Number(await page.evaluate(numberControls))
  assert.ok(count > 5)
  const missing = new Set(Array.from({ length: count }, (_, at) => String(at)))
  const unseen = new Set<string>()
  for (let time = 0; time < count + 20 && missing.size > 0; time += 1) {
    await page.press('Tab')
    const [number = '', isUnseen] = String(await page.evaluate(whereFocusIs)).split(' ')
    missing.delete(number)
    if (isUnseen !== undefined) unseen.add(number)
  }
  const found: string[] = []
  for (const number of [...missing, ...unseen]) {
    found.push(String(await page.evaluate(`document.querySelector('[data-number="${number}"]')?.outerHTML.slice(0, 200)`)))
  }
  return found
}

describe('keyboard', { concurrency: 2 }, () => {
  test('Tab reaches every control of every page, with visible focus', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, {}, { ...failing, ...described })
    await server.ask('/pay/1')
    await server.post('/svc-routes/add', { name: 'new', url: '/new', method: 'GET', action: 'pay.mjs@fine' })
    await signIn(page, server.url)
    for (const path of paths) {
      await page.open(server.url + path)
      await page.openDetails()
      assert.deepEqual(await unreached(page), [], path)
    }
  })

  test('Tab reaches every control of the demo, with visible focus', async (t) => {
    const page = await openPage(t)
    const { url } = await startBoard(t)
    const assertReached = async (path: string): Promise<void> => {
      await page.open(url + path)
      assert.deepEqual(await unreached(page), [], path)
    }
    for (const path of ['/', '/tour', '/sign-up', '/sign-in']) await assertReached(path)
    await signUp(page, url, 'Ann')
    await send(page, { text: 'One' })
    for (const path of ['/', '/notices/1', '/notices/1/edit', '/tour']) await assertReached(path)
  })

  test('a route is added, tried, deleted, and errors are cleared', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, {}, failing)
    await server.ask('/pay/1')
    await signIn(page, server.url)
    assert.equal(await page.evaluate('location.pathname'), '/svc-monitor')

    await page.tabTo('a[href="/svc-routes/list"]')
    await page.enter()
    await page.tabTo('#q')
    await page.insert('pay')
    await page.tabTo('details:has([action="/svc-routes/add"]) summary')
    await page.press('Enter')
    for (const [field, value] of [['name', 'new'], ['method', 'GET'], ['url', '/new'], ['action', 'pay.mjs@fine']] as const) {
      await page.tabTo(`#add-${field}`)
      await page.evaluate('document.activeElement.select()')
      await page.insert(value)
    }
    await page.enter()
    assert.equal((await server.ask('/new')).status, 200)

    await page.open(`${server.url}/svc-routes/list?record=new`)
    await page.tabTo('[action="/svc-routes/delete"] button')
    await page.enter()
    assert.equal((await server.ask('/new')).status, 404)

    await page.open(`${server.url}/svc-errors`)
    await page.tabTo('[action="/svc-errors/clear"] button')
    await page.enter()
    assert.doesNotMatch(await page.text('main'), /Order/)
  })
})
