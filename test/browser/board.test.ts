import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startBoard } from '../support/board.ts'
import { openPage } from '../support/browser.ts'
import { path, send, signUp } from './board-person.ts'

/** A picture of 8 by 8 red pixels. */
const red =
  'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGP4z8CAFTEMLQkArkw/wQFEPRgAAAAASUVORK5CYII='

test('a person posts a notice with a picture and sees it on the board', async (t) => {
  const page = await openPage(t)
  const { url, folder } = await startBoard(t)
  await page.open(url)
  assert.match(await page.text('main'), /Nothing here yet/)
  assert.notEqual(await page.evaluate('getComputedStyle(document.querySelector(".panel")).borderTopWidth'), '0px')

  await signUp(page, url, 'Ann')
  const picture = join(folder, 'red.png')
  writeFileSync(picture, red, 'base64')
  await page.choose('[name=picture]', [picture])
  await send(page, { text: 'Look at <b>this</b>' })

  assert.equal(await page.evaluate('location.href'), `${url}/`)
  assert.match(await page.text('article'), /^Look at <b>this<\/b>\s+Ann,\s/)
  assert.equal(await page.evaluate('document.querySelector("article img").naturalWidth'), 8)
  assert.equal(await page.evaluate('document.querySelector("[name=text]").value'), '')

  await page.follow('article a')
  assert.equal(await path(page), '/notices/1')
  await page.follow('main > p a')
  assert.equal(await path(page), '/')
  assert.deepEqual(page.errors, [])
})

test('a notice without a picture, in several lines, appears as typed', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t)
  await signUp(page, url, 'Bob')
  await send(page, { text: 'One\nTwo' })
  assert.match(await page.text('article'), /^One\nTwo\n/)
  assert.deepEqual(page.errors, [])
})

test('a file that is not a picture is refused with the form still filled in', async (t) => {
  const page = await openPage(t)
  const { url, folder } = await startBoard(t)
  await signUp(page, url, 'Ann')
  writeFileSync(join(folder, 'text.png'), 'no picture')
  await page.choose('[name=picture]', [join(folder, 'text.png')])
  await send(page, { text: 'Kept' })
  assert.match(await page.text('form.panel'), /must be a PNG/)
  assert.equal(await page.evaluate('document.querySelector("[name=text]").value'), 'Kept')
  await page.follow('form.panel button')
  assert.match(await page.text('article'), /Kept/)
})

test('no page of the board, nor its error page, is wider than a small phone', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t, { 'app.env': 'dev' })
  await page.look({ width: 360, height: 740, dark: false })
  const assertFits = async (address: string): Promise<void> => {
    await page.open(url + address)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360, address)
  }
  for (const address of ['/', '/sign-in', '/sign-up', '/tour', '/code/routes/board.json', `/${'long'.repeat(60)}`]) {
    await assertFits(address)
  }
  await signUp(page, url, 'x'.repeat(40))
  await send(page, { text: 'long'.repeat(60) })
  for (const address of ['/', '/notices/1', '/notices/1/edit', '/tour', '/alike']) await assertFits(address)
})
