// docs/recipes: the pages that have a script, in Chromium.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPage } from '../support/browser.ts'
import { startRecipe } from '../support/recipe.ts'
import { until } from '../support/until.ts'

test('docs/recipes/live-list.md: what one window adds appears in the other, once', async (t) => {
  const [ann, bob] = [await openPage(t), await openPage(t)]
  const { url } = await startRecipe(t, 'live-list')
  await ann.open(`${url}/`)
  await bob.open(`${url}/`)
  await bob.evaluate('window.marked = true')
  for (const text of ['Milk', '<b>Tea</b>']) {
    await ann.type('[name=text]', text)
    await ann.follow('button')
  }
  const items = "[...document.querySelectorAll('li')].map((item) => item.innerText).join()"
  await until(async () => (await bob.evaluate(items)) === 'Milk,<b>Tea</b>')
  assert.equal(await bob.evaluate('window.marked'), true, 'it was not loaded anew')
  assert.equal(await ann.evaluate(items), 'Milk,<b>Tea</b>')
  assert.deepEqual([...ann.errors, ...bob.errors].filter((error) => !error.endsWith('/favicon.ico')), [])
})

test('docs/recipes/sign-in.md: the forms work as they stand', async (t) => {
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
