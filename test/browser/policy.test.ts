// The policy of SVC_MwHeaders, as Chromium applies it: the starter, the demo and their errors stay within it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApp } from '../../lib/app.ts'
import { initApplication } from '../../lib/cli/init.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { startBoard } from '../support/board.ts'
import { openPage, type Page } from '../support/browser.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { send, signUp } from './board-person.ts'

const violations = ({ errors }: Page): string[] => errors.filter((text) => /Content.Security.Policy|violates/i.test(text))

test('the page that init makes is shown with its style, and nothing of it is against the policy', async (t) => {
  const page = await openPage(t)
  const folder = temporaryFolder()
  initApplication(folder)
  const loaded = loadConfig(`${folder}/svc.json`)
  const app = createApp({ loaded: { ...loaded, config: { ...loaded.config, 'server.port': 0, 'log.console': false } } })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  const { url } = await app.start()
  await page.open(url)
  assert.match(await page.text('h1'), /It works/)
  assert.equal(await page.evaluate('getComputedStyle(document.querySelector("dd")).marginTop'), '0px')
  for (const path of ['/hello/world', '/nowhere', '/svc-setup', '/']) await page.open(url + path)
  assert.deepEqual(violations(page), [])
  assert.match(String((await request(url)).headers['content-security-policy']), /^default-src 'self'/)

  await page.evaluate(`{
    const script = document.createElement('script')
    script.textContent = 'document.title = "taken over"'
    document.body.append(script)
  }`)
  await until(() => violations(page).length > 0)
  assert.equal(await page.evaluate('document.title'), 'It works')
})

test('every page of the demo is within the policy, live in both ways, and with a picture', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t, { 'app.env': 'dev' })
  await signUp(page, url, 'Ann')
  await send(page, { text: 'A notice' })
  for (const path of ['/', '/?live=sse', '/notices/1', '/notices/1/edit', '/sign-in', '/sign-up', '/nowhere', '/api/notices']) {
    await page.open(url + path)
    const { headers } = await request(url + path)
    assert.match(String(headers['content-security-policy']), /^default-src 'self'/, path)
  }
  await page.open(`${url}/?live=sse`)
  await until(async () => /^(?!.*No connection)/.test(await page.text('#others')))
  for (const path of ['/svc-monitor', '/svc-index', '/svc-routes/list']) await page.open(url + path)
  await page.open(url)
  await page.follow('header button')
  assert.deepEqual(violations(page), [])
})
