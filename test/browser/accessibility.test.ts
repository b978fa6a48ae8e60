// The pages by the rules of WCAG 2.2, levels A and AA, that axe-core can check: those of the panel, its results and
// errors, those of the demo, those that `init` makes, and the documents, wide and narrow, light and dark.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { described } from '../panel/described.ts'
import { failing, password, startPanel, user } from '../panel/panel-server.ts'
import { startBoard } from '../support/board.ts'
import { openPage, type Page } from '../support/browser.ts'
import { launch } from '../support/launch.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { send, signUp } from './board-person.ts'

const file = fileURLToPath(new URL('../accessibility/node_modules/axe-core/axe.min.js', import.meta.url))
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const looks = [
  { width: 1280, height: 900, dark: false },
  { width: 1280, height: 900, dark: true },
  { width: 360, height: 740, dark: false },
  { width: 360, height: 740, dark: true },
]

/**
 * Opens a page in each variant. Returns the violations that axe-core finds, with the elements.
 * @param go to the page, once that of the address is open; default: it is the page
 */
async function violations(page: Page, url: string, go = async (): Promise<void> => {}): Promise<string[]> {
  assert.ok(existsSync(file), 'axe-core is not installed: run `npm ci --prefix test/accessibility`')
  const found: string[] = []
  for (const look of looks) {
    await page.look(look)
    await page.open(url)
    await go()
    await page.openDetails()
    await page.evaluate(`${readFileSync(file, 'utf8')}; 0`)
    const { violations: wrong } = JSON.parse(
      String(await page.evaluate(`axe.run({ runOnly: ${JSON.stringify(tags)} }).then(JSON.stringify)`)),
    ) as { violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[] }
    const { width, dark } = look
    for (const { id, nodes } of wrong) {
      const [first] = nodes
      found.push(`${url.replace(/^.*:\d+/, '')} at ${width}${dark ? ', dark' : ''}: ${id}, ${nodes.length} times: ${first?.target.join(' ')}: ${first?.failureSummary}`)
    }
  }
  return found
}

describe('accessibility', { concurrency: 2 }, () => {
  test('the pages of the panel have no violation', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, {}, { ...failing, ...described })
    for (const id of [1, 2]) await server.ask(`/pay/${id}`)
    await server.post('/svc-routes/add', { name: 'new', url: '/new', method: 'GET', action: 'pay.mjs@fine' })
    const found = await violations(page, `${server.url}/svc-login`)
    await page.open(`${server.url}/svc-login`)
    await page.type('#user', user)
    await page.type('#password', password)
    await page.follow('form button')
    for (const path of [
      '/svc-monitor', '/svc-errors', '/svc-routes/list', '/svc-routes/listall', '/svc-routes/list?method=GET&path=/fine',
      '/svc-routes/list?path=/nowhere', '/svc-routes/list?record=new', '/svc-routes/diff', '/svc-config', '/svc-changes',
      '/svc-index', '/svc-openapi', '/svc-profile', '/nowhere', '/pay/3',
    ]) {
      found.push(...(await violations(page, server.url + path)))
    }
    found.push(...(await violations(page, `${server.url}/svc-profile`, async () => {
      await page.evaluate("document.getElementById('seconds').value = '1'")
      await page.click('[value=cpu]')
      await until(async () => (await page.evaluate("document.getElementById('result').hidden")) === false)
      await page.click('#graph .server') // With its callers above it.
    })))
    assert.deepEqual(found, [])
  })

  test('the page for the code of the second factor has no violation', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, { 'admin.totp': 'A'.repeat(32), 'admin.secret': 'random secret' })
    const signIn = async (): Promise<void> => {
      await page.evaluate("document.getElementById('user').value = ''")
      await page.type('#user', user)
      await page.type('#password', password)
      await page.follow('form button')
    }
    const found = await violations(page, `${server.url}/svc-login`, signIn)
    found.push(...(await violations(page, `${server.url}/svc-login`, async () => {
      await signIn()
      await page.type('#code', '1')
      await page.follow('form button')
    })))
    assert.deepEqual(found, [])
  })

  test('a server that is not set up has no violation', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, { 'admin.user': '', 'admin.password': '', 'admin.secret': '', 'admin.setup_token': 'on' })
    assert.deepEqual(await violations(page, `${server.url}/svc-setup`), [])
  })

  test('the documents have no violation', async (t) => {
    const page = await openPage(t)
    const server = launch(t, ['docs', '--port', '0'], { cwd: temporaryFolder() })
    const url = await server.listening()
    const found: string[] = []
    for (const path of ['/', '/docs/admin', '/docs/recipes/sign-in', '/search?q=session', '/search', '/nowhere']) {
      found.push(...(await violations(page, url + path)))
    }
    assert.deepEqual(found, [])
    assert.deepEqual(page.errors.filter((error) => !error.includes('404')), [])
  })

  test('the pages of the demo have no violation', async (t) => {
    const page = await openPage(t)
    const { url } = await startBoard(t)
    const found: string[] = []
    for (const path of ['/', '/tour', '/sign-in', '/sign-up']) found.push(...(await violations(page, url + path)))
    await signUp(page, url, 'Ann')
    await send(page, { text: 'A notice' })
    for (const path of ['/', '/notices/1', '/notices/1/edit', '/tour', '/code/routes/board.json', '/nowhere']) found.push(...(await violations(page, url + path)))
    assert.deepEqual(found, [])
  })
})
