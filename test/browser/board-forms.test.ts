import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { startBoard } from '../support/board.ts'
import { withoutRequestId } from '../support/log-lines.ts'
import { openPage, type Page } from '../support/browser.ts'
import { until } from '../support/until.ts'
import { Visitor } from '../support/visitor.ts'
import { goBack, messages, password, path, send, signUp } from './board-person.ts'

const value = (name: string): string => `document.querySelector('form.panel [name=${name}]').value`
const user = "document.querySelector('header span')?.innerText"
const errors = "[...document.querySelectorAll('.error:not(:empty)')].map((element) => element.innerText)"
const mismatch = 'This form does not belong to your session. Please open the page again and send it once more.'

/** The texts of the notices on the page. */
async function notices(page: Page): Promise<unknown> {
  return page.evaluate("[...document.querySelectorAll('.text')].map((element) => element.innerText)")
}

test('a person signs up, first with a mistake, and is greeted once', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t)
  await page.open(url)
  await page.follow('nav a[href="/sign-up"]')
  await send(page, { name: 'Ann <3', password, password2: 'another one' })
  assert.equal(await path(page), '/sign-up')
  assert.deepEqual(await page.evaluate(errors), ['The passwords do not match.'])
  assert.equal(await page.evaluate(value('name')), 'Ann <3')
  assert.equal(await page.evaluate(`${value('password')} + ${value('password2')}`), '')
  assert.notEqual(
    await page.evaluate("getComputedStyle(document.querySelector('[name=password2]')).borderTopColor"),
    await page.evaluate("getComputedStyle(document.querySelector('[name=password]')).borderTopColor"),
  )

  await send(page, { password, password2: password })
  assert.equal(await path(page), '/')
  assert.deepEqual(await messages(page), ['Welcome, Ann <3.'])
  assert.equal(await page.evaluate(user), 'Ann <3')
  await page.open(url)
  assert.deepEqual(await messages(page), [])
  assert.deepEqual(page.errors, [])
})

test('a person changes a notice and deletes it; the back button leads to pages that still work', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t)
  await signUp(page, url, 'Ann')
  await send(page, { text: 'One' })
  await page.follow('a.edit')
  assert.equal(await page.evaluate(value('text')), 'One')
  await send(page, { text: 'Two' })
  assert.deepEqual([await messages(page), await notices(page)], [['Your notice was changed.'], ['Two']])

  await goBack(page)
  assert.deepEqual([await path(page), await page.evaluate(value('text'))], ['/notices/1/edit', 'Two'])
  await send(page, { text: 'Three' })
  assert.deepEqual([await messages(page), await notices(page)], [['Your notice was changed.'], ['Three']])

  await page.follow('a.edit')
  await page.follow('button.danger')
  assert.deepEqual([await messages(page), await notices(page)], [['Your notice was deleted.'], []])
  assert.deepEqual(page.errors, [])
})

test('a person works in two tabs, and loses no text when the session has ended in the other one', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t)
  await signUp(page, url, 'Ann')
  await openTab(page)
  await page.evaluate("tab.document.querySelector('[name=text]').value = 'of the second tab'")
  await sendInTab(page, 'form.panel', 'Your notice was posted.')
  await send(page, { text: 'of the first tab' })
  assert.deepEqual(await notices(page), ['of the first tab', 'of the second tab'])

  await openTab(page)
  await sendInTab(page, 'header form', 'You are signed out.')
  await send(page, { text: 'not lost' })
  assert.deepEqual(await messages(page), [mismatch, 'Your text is saved. Sign in to find it in the form.'])
  assert.doesNotMatch(await page.text('main'), /not lost/)
  await page.follow('nav a[href="/sign-in"]')
  await send(page, { name: 'Ann', password })
  assert.deepEqual([await messages(page), await page.evaluate(value('text'))], [['Welcome back, Ann.'], 'not lost'])
  await page.follow('form.panel button')
  assert.deepEqual(await notices(page), ['not lost', 'of the first tab', 'of the second tab'])
  assert.deepEqual(page.errors, [])
})

test('after the sign-out the back button shows nothing of the user', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t)
  await signUp(page, url, 'Ann')
  await send(page, { text: 'One' })
  await page.follow('a.edit')
  await page.follow('header form button')
  assert.deepEqual([await path(page), await messages(page)], ['/', ['You are signed out.']])
  await goBack(page)
  assert.equal(await path(page), '/sign-in')
  await goBack(page)
  assert.equal(await path(page), '/')
  assert.equal(await page.evaluate(user), undefined)
  assert.equal(await page.evaluate("document.querySelectorAll('form, .edit').length"), 0)
  assert.deepEqual(page.errors, [])
})

test('a form of another site is refused, with every token that the site can fetch', async (t) => {
  const page = await openPage(t)
  const { url, lines } = await startBoard(t)
  const eve = new Visitor(url)
  await eve.signUp('Eve')
  const { hidden: signed } = await new Visitor(url).form('/sign-in', '/sign-in')
  const stolen = {
    '/notices': { ...(await eve.form('/', '/notices')).hidden, text: 'Forged' },
    '/sign-out': (await eve.form('/', '/sign-out')).hidden,
    '/sign-in': { ...signed, name: 'Eve', password: 'password of Eve' },
  }
  const port = await startEvil(t, url, stolen)
  await signUp(page, url, 'Ann')
  // Another port is the same site to a browser, so its cookies are sent; another name is another site.
  for (const [host, said] of [
    ['127.0.0.1', ['This form was sent from another site, so nothing was changed.']],
    ['localhost', []],
  ] as const) {
    for (const action of Object.keys(stolen)) {
      await page.open(`http://${host}:${port}${action}`)
      await page.follow('button')
      assert.equal(await page.evaluate('location.href'), `${url}/`)
      assert.deepEqual(await messages(page), said, `${host} ${action}`)
      await page.open(url)
      assert.deepEqual([await page.evaluate(user), await notices(page)], ['Ann', []])
    }
  }
  const refused = lines().filter((line) => withoutRequestId(line).endsWith('was refused by the CSRF check: cross_site'))
  assert.equal(refused.length, 6)
})

/** Opens the board in a second tab, which is `tab` in the page. It needs a click, or it would be a pop-up. */
async function openTab(page: Page): Promise<void> {
  await page.evaluate(`{
    const button = document.createElement('button')
    button.id = 'open'
    button.onclick = () => (window.tab = window.open('/'))
    document.querySelector('main').append(button)
  }`)
  await page.click('#open')
  await until(async () => (await page.evaluate("window.tab?.document.querySelector('header form') != null")) === true)
}

/** Sends a form in the second tab and waits for the message. */
async function sendInTab(page: Page, form: string, message: string): Promise<void> {
  await page.evaluate(`tab.document.querySelector('${form}').requestSubmit()`)
  await until(async () => (await page.evaluate("tab.document.querySelector('.message')?.innerText")) === message)
}

/** Starts a site whose page at each path has a form for that path of the board. Returns its port. */
async function startEvil(t: TestContext, board: string, forms: Readonly<Record<string, object>>): Promise<number> {
  const server = createServer(({ url = '' }, response) => {
    const inputs = Object.entries(forms[url] ?? {}).map(([name, text]) => `<input name="${name}" value="${text}">`)
    const form = `<form method="post" action="${board}${url}">${inputs.join('')}<button>Win a prize</button></form>`
    response.setHeader('content-type', 'text/html')
    response.end(`<!doctype html><link rel="icon" href="data:,">${form}`)
  })
  t.after(() => server.close().closeAllConnections())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port // It listens on TCP.
}
