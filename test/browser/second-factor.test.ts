// The sign-in with a second factor, as a person does it: on a phone, and with the keyboard only.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeRecoveryCodes } from '../../lib/access/recovery-codes.ts'
import { makeTotpSecret } from '../../lib/access/totp.ts'
import { codeNow } from '../access/second-factor-support.ts'
import { password, startPanel, user, type PanelServer } from '../panel/panel-server.ts'
import { openPage, type Page } from '../support/browser.ts'

const { codes, hashes } = makeRecoveryCodes()
const secret = makeTotpSecret()
const config = { 'admin.secret': 'random secret', 'admin.totp': secret, 'admin.recovery_codes': hashes }
const phone = { width: 360, height: 740, dark: false }
const focused = 'document.activeElement.id'
const path = 'location.pathname + location.search'
/** A person who looks at the pages names a folder for pictures of them. */
const pictures = process.env['PICTURES']

async function picture(page: Page, name: string): Promise<void> {
  if (pictures !== undefined) await page.screenshot(`${pictures}/${name}.png`)
}

/** Types name and password, with the keyboard only. */
async function typePassword(page: Page, server: PanelServer, address = '/svc-login'): Promise<void> {
  await page.open(server.url + address)
  assert.equal(await page.evaluate(focused), 'user')
  await page.insert(user)
  await page.tabTo('#password')
  await page.insert(password)
  await page.enter()
}

/** Whether the page fits into the window, without scrolling sideways. */
async function fits(page: Page): Promise<boolean> {
  return (await page.evaluate('document.documentElement.scrollWidth <= innerWidth')) === true
}

describe('the second factor', { concurrency: 2 }, () => {
  test('by keyboard, at 360 px: the code has the focus, and Enter sends it', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, config)
    await page.look(phone)
    await typePassword(page, server, '/svc-errors')
    assert.equal(await page.evaluate(focused), 'code')
    assert.equal(await page.evaluate(path), '/svc-login')
    assert.deepEqual(
      await page.evaluate("['inputMode', 'autocomplete', 'type'].map((name) => document.activeElement[name])"),
      ['numeric', 'one-time-code', 'text'],
    )
    assert.ok(await fits(page))
    await picture(page, 'code')
    await page.insert('000000' === codeNow(secret) ? '111111' : '000000')
    await page.enter()
    assert.match(await page.text('[role=alert]'), /^Wrong code\. If your app shows it now, check the clocks: /)
    assert.equal(await page.evaluate(focused), 'code')
    assert.equal(await page.evaluate('document.activeElement.value'), '')
    assert.ok(await fits(page))
    await picture(page, 'wrong-code')
    const code = codeNow(secret)
    await page.insert(`${code.slice(0, 3)} ${code.slice(3)}`)
    await page.enter()
    assert.equal(await page.evaluate(path), '/svc-errors')
    assert.deepEqual(page.errors.filter((error) => !/\b401\b/.test(error)), [])
  })

  test('a recovery code is behind a summary that the keyboard opens', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, config)
    await page.look({ ...phone, dark: true })
    await typePassword(page, server)
    await page.tabTo('summary')
    await page.press('Enter')
    await page.tabTo('#recovery')
    await picture(page, 'recovery')
    assert.ok(await fits(page))
    await page.insert(codes[0] ?? '')
    await page.enter()
    assert.equal(await page.evaluate(path), '/svc-monitor')
    assert.match(await server.read('.logs/audit.log'), /"to":"recovery code, 9 left"/)
  })

  test('with the mouse; a used page leads to the first one, not in', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, config)
    await page.look({ width: 1280, height: 900, dark: false })
    await page.open(`${server.url}/svc-login`)
    await page.type('#user', user)
    await page.type('#password', password)
    await page.follow('form button')
    await picture(page, 'code-wide')
    const ticket = String(await page.evaluate("document.querySelector('[name=ticket]').value"))
    await page.type('#code', codeNow(secret))
    await page.follow('form button')
    assert.equal(await page.evaluate(path), '/svc-monitor')
    await page.open(`${server.url}/svc-logout`)
    await page.evaluate(`{
      const form = document.forms[0]
      form.innerHTML = '<input name="ticket" value="${ticket}"><input name="code" value="${codeNow(secret, 1)}"><button>Send</button>'
    }`)
    await page.follow('form button')
    assert.match(await page.text('[role=alert]'), /^The page for the code has expired\. Log in again\.$/)
    assert.equal(await page.evaluate(path), '/svc-login')
  })
})
