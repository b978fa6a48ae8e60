import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startBoard } from '../support/board.ts'
import { openPage } from '../support/browser.ts'

/** A picture of 8 by 8 red pixels. */
const red =
  'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGP4z8CAFTEMLQkArkw/wQFEPRgAAAAASUVORK5CYII='

test('a person puts up a notice with a picture and sees it on the board', async (t) => {
  const page = await openPage(t)
  const { url, folder } = await startBoard(t)
  await page.open(url)
  assert.match(await page.text('main'), /Nothing here yet/)
  assert.notEqual(await page.evaluate('getComputedStyle(document.querySelector("form")).borderTopWidth'), '0px')

  const picture = join(folder, 'red.png')
  writeFileSync(picture, red, 'base64')
  await page.type('[name=author]', 'Ann')
  await page.type('[name=text]', 'Look at <b>this</b>')
  await page.choose('[name=picture]', [picture])
  await page.follow('form button')

  assert.equal(await page.evaluate('location.href'), `${url}/`)
  assert.match(await page.text('article'), /^Look at <b>this<\/b>\s+Ann, /)
  assert.equal(await page.evaluate('document.querySelector("article img").naturalWidth'), 8)
  assert.equal(await page.evaluate('document.querySelector("[name=text]").value'), '')

  await page.follow('article a')
  assert.equal(await page.evaluate('location.pathname'), '/notices/1')
  await page.follow('main > p a')
  assert.equal(await page.evaluate('location.pathname'), '/')
  assert.deepEqual(page.errors, [])
})

test('a notice without a picture, in several lines, is put up as it was typed', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t)
  await page.open(url)
  await page.type('[name=author]', 'Bob')
  await page.type('[name=text]', 'One\nTwo')
  await page.follow('form button')
  assert.match(await page.text('article'), /^One\nTwo\n/)
  assert.deepEqual(page.errors, [])
})

test('a file that is no picture is refused with the form as it was filled in', async (t) => {
  const page = await openPage(t)
  const { url, folder } = await startBoard(t)
  await page.open(url)
  writeFileSync(join(folder, 'text.png'), 'no picture')
  await page.type('[name=author]', 'Ann')
  await page.type('[name=text]', 'Kept')
  await page.choose('[name=picture]', [join(folder, 'text.png')])
  await page.follow('form button')
  assert.match(await page.text('[role=alert]'), /must be a PNG/)
  assert.equal(await page.evaluate('document.querySelector("[name=text]").value'), 'Kept')
  await page.follow('form button')
  assert.match(await page.text('article'), /Kept/)
})

test('neither the board nor the page of an error is wider than a small telephone', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t, { 'app.env': 'dev' })
  await page.look({ width: 360, height: 740, dark: false })
  for (const path of ['/', `/${'long'.repeat(60)}`]) {
    await page.open(url + path)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360, path)
  }
})
