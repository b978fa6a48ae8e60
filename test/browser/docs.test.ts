// The site of `svc docs` in a browser: its style and script under its policy, the keyboard, narrow windows.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPage } from '../support/browser.ts'
import { launch } from '../support/launch.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('the documents are read, searched and left by the keyboard', async (t) => {
  const page = await openPage(t)
  const server = launch(t, ['docs', '--port', '0'], { cwd: temporaryFolder() })
  const url = await server.listening()
  await page.look({ width: 1280, height: 900, dark: false })
  await page.open(`${url}/docs/forms`)
  assert.equal(await page.evaluate('getComputedStyle(document.querySelector("header form")).maxWidth'), '480px')
  await page.press('Tab')
  assert.equal(await page.text(':focus'), 'Skip to the text')
  await page.press('Enter')
  assert.equal(await page.evaluate('document.activeElement.id'), 'main')
  await page.evaluate(`document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true, cancelable: true }))`)
  assert.equal(await page.evaluate('document.activeElement.id'), 'q')
  await page.insert('node a:8080 is down: no heartbeat for 5 s')
  await page.enter()
  assert.equal(await page.text('.hits a'), 'Troubleshooting: Lines of nodes')
  assert.ok(Number(await page.evaluate('document.querySelectorAll("mark").length')) > 3)
  await page.follow('.hits a')
  assert.equal(await page.evaluate('location.pathname + location.hash'), '/docs/troubleshooting#lines-of-nodes')
  const tops = `['header', '#pages', '#lines-of-nodes'].map((each) => Math.round(document.querySelector(each).getBoundingClientRect().top))`
  const [header, pages, heading] = (await page.evaluate(tops)) as [number, number, number]
  assert.deepEqual([header, pages], [0, 64]) // They stay when the page scrolls,
  assert.ok(heading >= 64, String(heading)) // and do not hide where a link leads.
  assert.deepEqual(page.errors, [])
})

test('no page of the documents is wider than a telephone, and the navigation opens there', async (t) => {
  const page = await openPage(t)
  const server = launch(t, ['docs', '--port', '0'], { cwd: temporaryFolder() })
  const url = await server.listening()
  await page.look({ width: 390, height: 844, dark: true })
  const text = await (await fetch(`${url}/llms.txt`)).text()
  for (const [, path = ''] of text.matchAll(/\]\((\/[^)]*)\.md\)/g)) {
    await page.open(url + path)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390, path)
  }
  assert.equal(await page.evaluate('document.getElementById("pages").offsetHeight'), 0)
  await page.click('header a[href="#pages"]')
  assert.ok(Number(await page.evaluate('document.getElementById("pages").offsetHeight')) > 300)
})
