// docs/recipes: the pages with a script, in Chromium.
import assert from 'node:assert/strict'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openPage } from '../support/browser.ts'
import { root } from '../support/launch.ts'
import { startRecipe } from '../support/recipe.ts'
import { until } from '../support/until.ts'
import { Visitor } from '../support/visitor.ts'

/** The entries that the page shows. */
const items = "[...document.querySelectorAll('li')].map((item) => item.innerText).join()"

test('docs/recipes/live-list.md: an entry added in one window appears in the other, once', async (t) => {
  const [ann, bob] = [await openPage(t), await openPage(t)]
  const { url } = await startRecipe(t, 'live-list')
  await ann.open(`${url}/`)
  await bob.open(`${url}/`)
  await bob.evaluate('window.marked = true')
  for (const text of ['Milk', '<b>Tea</b>']) {
    await ann.type('[name=text]', text)
    await ann.follow('button')
  }
  await until(async () => (await bob.evaluate(items)) === 'Milk,<b>Tea</b>')
  assert.equal(await bob.evaluate('window.marked'), true, 'it was not loaded anew')
  assert.equal(await ann.evaluate(items), 'Milk,<b>Tea</b>')
  assert.deepEqual([...ann.errors, ...bob.errors].filter((error) => !error.endsWith('/favicon.ico')), [])
})

/** Adds entries in one window of the recipe and sees them in another without a reload; an empty one is refused. */
async function addsLive(t: TestContext, name: string, library: string, change?: (text: string) => string): Promise<string> {
  const script = join(root, 'test/hypermedia/node_modules', library)
  assert.ok(existsSync(script), `${library} is not installed: run \`npm ci --prefix test/hypermedia\``)
  const [ann, bob] = [await openPage(t), await openPage(t)]
  const { url, folder } = await startRecipe(t, name, change)
  copyFileSync(script, join(folder, 'www', library.slice(library.lastIndexOf('/') + 1)))
  for (const page of [ann, bob]) {
    await page.open(`${url}/`)
    await page.evaluate('window.marked = true')
  }
  const press = "document.querySelector('button').click()"
  let all = ''
  for (const text of ['Milk', '<b>Tea</b>']) {
    await ann.type('[name=text]', text)
    await ann.evaluate(press)
    all += all === '' ? text : `,${text}`
    for (const page of [ann, bob]) await until(async () => (await page.evaluate(items)) === all)
    await until(async () => (await ann.evaluate("document.querySelector('[name=text]').value")) === '')
  }
  await ann.type('[name=text]', '  ')
  await ann.evaluate(press)
  await until(() => ann.errors.some((error) => error.includes('422')))
  assert.equal(await bob.evaluate(items), all)
  for (const page of [ann, bob]) {
    assert.equal(await page.evaluate('window.marked'), true, 'it was not loaded anew')
    assert.deepEqual(page.errors.filter((error) => !/favicon\.ico|status of 422/.test(error)), [])
  }
  if (name === 'htmx') await until(async () => /1 to 200 characters/.test(await ann.text('form')))
  return url
}

test('docs/recipes/htmx.md: an entry added in one window appears in the other, and a refused one shows why', async (t) => {
  await addsLive(t, 'htmx', 'htmx.org/dist/htmx.min.js')
})

test('docs/recipes/datastar.md: an entry added in one window appears in the other, and no entry can inject events', async (t) => {
  const names = { 'datastar-patch-elements': 'datastar-merge-fragments', 'data: elements': 'data: fragments', 'data-on:': 'data-on-' }
  const url = await addsLive(t, 'datastar', '@starfederation/datastar/dist/datastar.js', (text) =>
    Object.entries(names).reduce((changed, [name, older]) => changed.replaceAll(name, older), text))
  const ann = new Visitor(url)
  await ann.submit('/', '/items', { text: 'x\n\nevent: datastar-execute-script\ndata: script alert(1)\r\n' })
  const { headers, text } = await ann.get('/items')
  assert.equal(headers['content-type'], 'text/event-stream')
  assert.deepEqual(text.match(/^event:.*/gm), ['event: datastar-merge-fragments'])
  assert.ok(text.endsWith('</ul>\n\n'))
})

test('docs/recipes/sign-in.md: the forms work unchanged', async (t) => {
  const page = await openPage(t)
  const { url } = await startRecipe(t, 'sign-in')
  await page.open(`${url}/sign-up`)
  await page.type('[name=name]', 'ann')
  await page.type('[name=password]', 'correct horse')
  await page.follow('button')
  assert.match(await page.text('body'), /Hello ann/)
  await page.follow('button')
  assert.equal(await page.evaluate('location.pathname'), '/login')
})
