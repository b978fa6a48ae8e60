import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { launchBoard, startBoard } from '../support/board.ts'
import { openPage, type Page } from '../support/browser.ts'
import { until } from '../support/until.ts'
import { signedUp } from '../support/visitor.ts'
import { send, signUp } from './board-person.ts'

/** A picture of 8 by 8 red pixels. */
const red =
  'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGP4z8CAFTEMLQkArkw/wQFEPRgAAAAASUVORK5CYII='
const lost = 'No connection to the board.'

/** The texts of the notices that a window shows. */
async function notices(page: Page): Promise<string[]> {
  const texts = await page.evaluate("[...document.querySelectorAll('article .text')].map((text) => text.innerText)")
  return texts as string[]
}

/** Resolves when a window shows these notices without a reload. */
async function shows(page: Page, texts: readonly string[]): Promise<void> {
  let shown: readonly string[] = []
  await until(async () => JSON.stringify((shown = await notices(page))) === JSON.stringify(texts)).catch(() => {})
  assert.deepEqual(shown, texts)
  assert.equal(await page.evaluate('window.marked'), true)
}

/** Resolves when a window shows this presence, even briefly: a retried poll shows none. */
async function says(page: Page, line: string): Promise<void> {
  let said = ''
  await until(async () => (said = await page.text('#others')) === line).catch(() => {})
  assert.equal(said, line)
}

/** Posts a notice through the form without leaving the page, as a second tab would. */
async function putUp(page: Page, text: string): Promise<void> {
  const sent = await page.evaluate(`{
    const form = document.querySelector('form.panel')
    form.querySelector('[name=text]').value = ${JSON.stringify(text)}
    fetch('/notices', { method: 'POST', body: new FormData(form), redirect: 'manual' }).then(({ type }) => type)
  }`)
  assert.equal(sent, 'opaqueredirect')
}

/** Marks a window: a reloaded page has no mark. */
async function mark(page: Page): Promise<void> {
  await page.evaluate('window.marked = true')
}

async function openWindows(t: TestContext): Promise<[Page, Page]> {
  return [await openPage(t), await openPage(t)]
}

for (const [way, path, label] of [
  ['long poll', '/?live=poll', 'poll'],
  ['server-sent events', '/', 'events'],
] as const) {
  test(`a change in one window appears in the other by ${way}`, async (t) => {
    const [ann, guest] = await openWindows(t)
    const { url, folder, lines } = await startBoard(t)
    await guest.open(url + path)
    await mark(guest)
    assert.equal(await guest.text('.live [aria-current]'), label)
    assert.match(await guest.text('main'), /Nothing here yet/)

    await ann.open(url + path)
    await signUp(ann, url, 'Ann')
    await send(ann, { text: 'One & <b>only</b>' })
    await shows(guest, ['One & <b>only</b>'])
    assert.doesNotMatch(await guest.text('main'), /Nothing here yet/)
    assert.equal(await ann.text('.live [aria-current]'), label) // It remains after the forms.

    const picture = join(folder, 'red.png')
    writeFileSync(picture, red, 'base64')
    await ann.choose('[name=picture]', [picture])
    await send(ann, { text: 'Two' })
    await shows(guest, ['Two', 'One & <b>only</b>'])
    await until(async () => (await guest.evaluate("document.querySelector('article img').naturalWidth")) === 8)
    assert.equal(await guest.evaluate("document.querySelectorAll('article img').length"), 1)

    await ann.follow('#notice-1 .edit')
    await send(ann, { text: 'Three' })
    await shows(guest, ['Two', 'Three'])
    await ann.follow('#notice-2 .edit')
    await ann.follow('button.danger')
    await shows(guest, ['Three'])
    await ann.follow('#notice-1 .edit')
    await ann.follow('button.danger')
    await shows(guest, [])
    assert.match(await guest.text('main'), /Nothing here yet/)

    const parked = lines().filter((line) => line.includes('/board/live (board.live): parked'))
    const expected = label === 'poll' ? 'longpoll' : 'sse'
    assert.ok(parked.length > 0 && parked.every((line) => line.includes(`(${expected}`)), parked.join('\n'))
    assert.deepEqual([...ann.errors, ...guest.errors], [])
  })
}

test('a card of the script equals that of the server, for its owner, for others and for guests', async (t) => {
  const [guest, bob] = await openWindows(t)
  const { url } = await startBoard(t)
  const other = await openPage(t)
  await signUp(bob, url, 'Bob')
  await guest.open(url)
  await signUp(other, url, 'Ann')
  const pages = [guest, bob, other]
  for (const page of pages) await mark(page)
  await putUp(bob, 'Two\nlines')
  for (const page of pages) {
    await shows(page, ['Two\nlines'])
    const card = "document.querySelector('article').outerHTML.replace(/>\\s+</g, '><').replace(/\\s/g, ' ')"
    const made = await page.evaluate(card)
    await page.open(url)
    assert.equal(made, await page.evaluate(card))
    assert.equal(await page.evaluate("document.querySelectorAll('article .edit').length"), page === bob ? 1 : 0)
    assert.deepEqual(page.errors, [])
  }
})

test('twelve tabs show a new notice, over one connection: the server has no second one', async (t) => {
  const first = await openPage(t)
  const { url } = await startBoard(t, { 'pool_rest.workers_sse': 1, 'pool_rest.workers_longpoll': 1, 'pool_rest.queue_size': 0 })
  await signUp(first, url, 'Ann')
  const tabs = [first]
  while (tabs.length < 12) {
    const tab = await first.another()
    await tab.open(url)
    tabs.push(tab)
  }
  const watch = 'new MutationObserver(() => (window.shownAt ??= Date.now())).observe(document.body, { childList: true, subtree: true })'
  for (const tab of tabs) {
    await says(tab, 'No one else is here.') // It is connected.
    await mark(tab)
    await tab.evaluate(watch)
  }
  const sentAt = Date.now()
  await putUp(first, 'The harbour is closed')
  for (const tab of tabs) await shows(tab, ['The harbour is closed'])
  const delays = await Promise.all(tabs.map(async (tab) => ((await tab.evaluate('window.shownAt')) as number) - sentAt))
  t.diagnostic(`shown after ${Math.min(...delays)} to ${Math.max(...delays)} ms`)
  assert.deepEqual(tabs.flatMap(({ errors }) => errors), [])
})

test('each window shows who else has the board open', async (t) => {
  const [first, second] = await openWindows(t)
  const third = await openPage(t)
  const { url } = await startBoard(t)
  await signUp(first, url, 'Ann')
  await says(first, 'No one else is here.')
  await third.open(url)
  await says(first, 'Also here: a guest')
  await says(third, 'Also here: Ann')
  await signUp(second, url, 'Bob')
  await says(first, 'Also here: Bob and a guest')
  await says(second, 'Also here: Ann and a guest')
  await second.open('about:blank')
  await third.open('about:blank')
  await says(first, 'No one else is here.') // Ten seconds later: a reload does not show.
  assert.deepEqual([first, second, third].flatMap(({ errors }) => errors), [])
})

test('both windows reconnect to a restarted server, without losses and duplicates', async (t) => {
  const [ann, guest] = await openWindows(t)
  const board = await launchBoard(t)
  const bob = await signedUp(board.url, 'Bob')
  await signUp(ann, board.url, 'Ann')
  await guest.open(`${board.url}/?live=poll`)
  const windows = [ann, guest]
  for (const page of windows) await mark(page)
  await putUp(ann, 'before')
  for (const page of windows) await shows(page, ['before'])

  for (const round of [1, 2]) {
    const kept = await notices(ann)
    await board.stop()
    for (const page of windows) await says(page, lost)
    await board.start()
    // The first notices may precede the reconnection of the windows: nothing waits for it.
    await bob.add(`first of ${round}`)
    const form = await bob.form(`/notices/${2 * round}/edit`, '/notices/edit')
    await bob.send(form, { text: `first of ${round}, changed` })
    await says(ann, 'No one else is here.') // A poll reports nobody.
    await putUp(ann, `second of ${round}`)
    for (const page of windows) await shows(page, [`second of ${round}`, `first of ${round}, changed`, ...kept])
  }
})

test('a window that finds the server full reconnects automatically', async (t) => {
  const [first, second] = await openWindows(t)
  const full = { 'pool_rest.workers_longpoll': 1, 'pool_rest.workers_sse': 1, 'pool_rest.queue_size': 0 }
  const { url, lines } = await startBoard(t, full)
  const bob = await signedUp(url, 'Bob')
  const kept: string[] = []
  for (const asked of ['/?live=poll', '/?live=sse']) {
    const isRefusal = (line: string): boolean => line.includes('GET /board/live ') && line.endsWith(' 503')
    const refusals = (): number => lines('access.log').filter(isRefusal).length
    const before = refusals()
    await first.open(url + asked)
    await until(async () => (await first.text('#others')) !== lost)
    await second.open(url + asked)
    await mark(second)
    await until(() => refusals() > before)
    await first.open('about:blank')
    await bob.add(asked)
    kept.unshift(asked)
    await shows(second, kept)
    await second.open('about:blank')
  }
})

test('the board fits a small phone, whoever is present', async (t) => {
  const [page, other] = await openWindows(t)
  const { url } = await startBoard(t)
  await page.look({ width: 360, height: 740, dark: true })
  await signUp(other, url, 'x'.repeat(40))
  await page.open(url)
  await says(page, `Also here: ${'x'.repeat(40)}`)
  await mark(page)
  await putUp(other, 'long'.repeat(60))
  await shows(page, ['long'.repeat(60)])
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
})
