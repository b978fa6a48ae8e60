// The policy of SVC_MwHeaders, as Chromium applies it: the starter, the demo and their errors stay within it.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createApp } from '../support/app.ts'
import { initApplication } from '../../lib/commands/init.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { startApplication } from '../support/application.ts'
import { startBoard } from '../support/board.ts'
import { openPage, type Page } from '../support/browser.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { send, signUp } from './board-person.ts'

/** A picture of 8 by 8 red pixels. */
const red =
  'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGP4z8CAFTEMLQkArkw/wQFEPRgAAAAASUVORK5CYII='

const violations = ({ errors }: Page): string[] => errors.filter((text) => /Content.Security.Policy|violates/i.test(text))

test('the page that init creates is shown with its style, and violates no policy', async (t) => {
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

test('every page of the demo complies with the policy, live in both ways, and with a picture', async (t) => {
  const page = await openPage(t)
  const { url, folder } = await startBoard(t, { 'app.env': 'dev' })
  await signUp(page, url, 'Ann')
  const picture = join(folder, 'red.png')
  writeFileSync(picture, red, 'base64')
  await page.choose('[name=picture]', [picture])
  await send(page, { text: 'A notice' })
  for (const path of ['/', '/?live=sse', '/notices/1', '/notices/1/edit', '/sign-in', '/sign-up', '/tour', '/nowhere', '/api/notices']) {
    await page.open(url + path)
    const { headers } = await request(url + path)
    assert.match(String(headers['content-security-policy']), /^default-src 'self'/, path)
  }
  await page.open(`${url}/?live=sse`)
  assert.equal(await page.evaluate('document.querySelector("article img").naturalWidth'), 8)
  await until(async () => /^(?!.*No connection)/.test(await page.text('#others')))
  for (const path of ['/svc-monitor', '/svc-index', '/svc-routes/list']) await page.open(url + path)
  await page.open(url)
  await page.follow('header button')
  assert.deepEqual(violations(page), [])
})

test('a page of another origin reads only what SVC_MwCors allows, including errors', async (t) => {
  const page = await openPage(t)
  const { url: own } = await startApplication(t, {
    'routes/a.json': [{ name: 'page', url: '/', action: 'page.html' }],
    'page.html': '<!doctype html><title>Elsewhere</title>',
  })
  const route = (name: string, method: string, middleware: string) => ({ name, url: `/${name}`, method, action: `a.mjs@${name}`, middleware })
  const { url } = await startApplication(t, {
    'routes/a.json': [
      route('change', 'PUT', 'SVC_MwHeaders, SVC_MwCors'),
      route('taken', 'GET', 'SVC_MwCors'),
      route('guarded', 'GET', 'SVC_MwJwt, SVC_MwCors'),
      route('closed', 'GET', ''),
    ],
    'a.mjs': `
      export const change = async ({ readJson, setHeader }) => (setHeader('X-Total', '7'), { got: await readJson() })
      export const taken = ({ fail }) => fail(409, 'taken', 'It is taken')
      export const guarded = () => 'never'
      export const closed = () => 'closed'`,
    'routes/middleware/config.json': {
      setup: {
        cors: { origins: [own], methods: 'GET,PUT', headers: 'content-type', expose: 'x-total' },
        jwt: { key: 'a key of thirty-two characters!!' },
      },
    },
  })
  await page.open(own)
  const ask = (path: string, options = '{}'): Promise<unknown> =>
    page.evaluate(`fetch('${url}${path}', ${options}).then(async (answer) => [answer.status, answer.headers.get('x-total'), await answer.text()], () => 'not read')`)
  const put = `{ method: 'PUT', body: '{"a":1}', headers: { 'content-type': 'application/json' } }`
  assert.deepEqual(await ask('/change', put), [200, '7', '{"got":{"a":1}}'])
  assert.equal((await ask('/taken') as unknown[])[0], 409)
  assert.equal((await ask('/guarded') as unknown[])[0], 401)
  assert.equal(await ask('/closed'), 'not read')
  assert.equal(await ask('/change', put.replace('content-type', 'x-other')), 'not read')
  assert.equal(await ask('/taken', "{ credentials: 'include' }"), 'not read')
})
