import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createListings } from '../../lib/admin/listings.ts'
import { makePort, serve } from '../admin/support.ts'
import { openPage, type Page } from '../support/browser.ts'
import { until } from '../support/until.ts'

const shown = 'document.querySelectorAll("tbody tr").length'

/** Opens the index of a server with 1,000 routes that take a parameter and answer with it. */
async function start(t: TestContext): Promise<{ page: Page; url: string }> {
  const page = await openPage(t)
  const held = makePort({ 'app.env': 'prod' })
  const { index, listAll } = createListings(held.port)
  const routes = Array.from({ length: 1000 }, (_, at) => ({
    method: 'GET',
    url: `/users${at}/:id`,
    name: `users${at}`,
    action: (ctx: { readonly params: Record<string, string> }) => ctx.params['id'],
  }))
  const url = await serve(t, held, [
    { method: 'GET', url: '/svc-index', action: index },
    { method: 'GET', url: '/svc-routes/listall', action: listAll },
    ...routes,
  ])
  await page.look({ width: 1200, height: 800, dark: false })
  await page.open(`${url}/svc-index`)
  return { page, url }
}

test('typing narrows the index, and what is left opens with what is typed for its parameter', async (t) => {
  const { page, url } = await start(t)
  assert.equal(await page.evaluate(shown), 200)
  await page.type('#q', 'USERS77')
  await until(async () => (await page.evaluate(shown)) === 11)
  assert.equal(await page.text('#count'), '11 of 1002 routes')
  assert.equal(await page.evaluate('location.search'), '?q=USERS77')
  await page.type('#q', '7')
  await until(async () => (await page.evaluate(shown)) === 1)
  assert.deepEqual(page.errors, []) // What follows is no page of the panel.
  await page.type('.open input:not([type=hidden])', 'a b/c')
  await page.follow('.open button')
  assert.equal(await page.evaluate('location.href'), `${url}/users777/a%20b%2Fc`)
  assert.equal(await page.text('body'), 'a b/c')
})

test('a search is told in the address, so that it outlives a reload', async (t) => {
  const { page, url } = await start(t)
  await page.open(`${url}/svc-index?q=users99`)
  assert.equal(await page.evaluate(shown), 11)
  assert.equal(await page.evaluate('document.getElementById("q").value'), 'users99')
  await page.follow('nav a[href="/svc-routes/listall"]')
  assert.equal(await page.evaluate(shown), 200)
  await page.follow('a[rel=next]')
  assert.equal(await page.evaluate('document.querySelector("tbody td").textContent'), 'users198')
  assert.deepEqual(page.errors, [])
})
