// The tour of the demo in a browser: what its buttons do appears in other windows, without a reload.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBoard } from '../support/board.ts'
import { openPage } from '../support/browser.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { until } from '../support/until.ts'

test('a visitor starts on the board, takes the tour, and sees its notice and its digest in other windows', async (t) => {
  const [board, tour, other] = [await openPage(t), await openPage(t), await openPage(t)]
  const { url } = await startBoard(t)
  await board.open(url)
  await board.evaluate('window.marked = true')
  await tour.open(url)
  await tour.follow('.welcome .button')
  assert.equal(await tour.text('h1'), 'What you see here')
  assert.equal(await tour.text('nav [aria-current=page]'), 'What you see here')

  await tour.follow('#live button')
  assert.match(await tour.text('#live .message'), /^Posted\./)
  await until(async () => (await board.evaluate('document.querySelectorAll("article").length')) === 1)
  assert.deepEqual([await board.evaluate('window.marked'), await board.text('article span')], [true, 'The tour,'])

  await other.open(`${url}/tour`)
  if (hasSqlite) {
    assert.match(await other.text('#mail'), /^No digest has been written yet\.$/)
    await other.evaluate('window.marked = true')
    await tour.follow('#digest form button')
    assert.match(await tour.text('#digest .message'), /^Job 1 is stored\./)
    for (const page of [tour, other]) await until(async () => /- The tour: /.test(await page.text('#mail')))
    assert.match(await other.text('#mail'), /^Written \w{3} \d+, \d{4}, [\d:]{7,8}\s[AP]M to \.cached\/mail\/digest\.eml/)
    assert.doesNotMatch(await other.text('#mail'), /No digest/)
    assert.equal(await other.evaluate('window.marked'), true)
  } else {
    assert.match(await other.text('#digest'), /run Node 22\.13 or later/)
  }
  assert.deepEqual([board, tour, other].flatMap(({ errors }) => errors), [])
})
