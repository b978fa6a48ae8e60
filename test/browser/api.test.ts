// The page of the application's API: requests are sent from it, and their replies shown as text.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { described } from '../panel/described.ts'
import { password, startPanel, user, type PanelServer } from '../panel/panel-server.ts'
import { openPage, type Page } from '../support/browser.ts'
import { until } from '../support/until.ts'

async function openApi(page: Page, server: PanelServer): Promise<void> {
  await page.open(`${server.url}/svc-openapi`)
  await page.type('#user', user)
  await page.type('#password', password)
  await page.follow('form button')
}

/** Opens an operation. Returns the selector of its form. */
async function openOperation(page: Page, method: string, path: string): Promise<string> {
  const form = `form[data-method="${method}"][data-path="${path}"]`
  await page.evaluate(`document.querySelector(${JSON.stringify(form)}).closest('details').open = true`)
  return form
}

/** Waits for the end of a form's request. Returns what is shown of the reply. */
async function replyIn(page: Page, form: string): Promise<{ outcome: string; head: string; body: string }> {
  await until(async () => (await page.evaluate(`document.querySelector('${form} .message.good, ${form} .message.error') !== null
    && document.querySelector('${form} .stop').hidden`)) === true)
  const text = (part: string): Promise<string> => page.text(`${form} .${part}`)
  return { outcome: await text('outcome'), head: await text('head'), body: await text('body') }
}

const isAsked = 'document.getElementById("ask").open'

describe('the API page', { concurrency: 2 }, () => {
  test('sends a GET with its parameters, and shows status, time, header fields and body', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, {}, described)
    await openApi(page, server)
    const show = await openOperation(page, 'GET', '/tasks/{id}')
    await page.type(`${show} input[name=id]`, '..')
    await page.click(`${show} button`)
    assert.equal(await page.evaluate(`document.querySelector('${show}').checkValidity()`), false)
    await page.evaluate(`document.querySelector('${show} input').value = '7'`)
    await page.click(`${show} button`)
    const { outcome, head, body } = await replyIn(page, show)
    assert.match(outcome, /^200 OK, \d+ ms, 8 bytes$/)
    assert.match(head, /^content-type: application\/json; charset=utf-8$/m)
    assert.equal(body, '{\n  "id": 7\n}')

    const list = await openOperation(page, 'GET', '/tasks')
    await page.type(`${list} [name=words]`, 'a&b')
    await page.evaluate(`document.querySelector('${list} [name=words]').value += '\\nc'`)
    await page.click(`${list} button`)
    assert.deepEqual(JSON.parse((await replyIn(page, list)).body), { words: ['a&b', 'c'], limit: 10 })
    assert.equal(await page.evaluate(isAsked), false)
    assert.deepEqual(page.errors, [])
  })

  test('asks before the first request that changes something, and shows a body with HTML as text', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, {}, described)
    await openApi(page, server)
    const add = await openOperation(page, 'POST', '/tasks')
    const value = { title: '<img src=x onerror=alert(1)>', tags: [], steps: [] }
    await page.evaluate(`document.querySelector('${add} textarea').value = ${JSON.stringify(JSON.stringify(value))}`)
    await page.click(`${add} button`)
    await until(async () => (await page.evaluate(isAsked)) === true)
    assert.equal(await page.text('#ask-request'), 'POST /tasks')
    await page.click('#ask button:not([value])')
    assert.equal(await page.evaluate(`document.querySelector('${add} .reply').hidden`), true)
    await page.click(`${add} button`)
    await page.click('#ask button[value=send]')
    const { outcome, body } = await replyIn(page, add)
    assert.match(outcome, /^201 Created, \d+ ms, /)
    assert.deepEqual(JSON.parse(body), { ...value, state: 'open' })
    assert.equal(await page.evaluate('document.querySelector("main img")'), null)
    assert.deepEqual(page.errors, [])

    await page.click(`${add} button`)
    assert.equal(await page.evaluate(isAsked), false)
    const upload = await openOperation(page, 'POST', '/tasks/{id}/files')
    await page.type(`${upload} input[name=id]`, '7')
    await page.click(`${upload} button`)
    assert.match((await replyIn(page, upload)).outcome, /^403 Forbidden/)
  })

  test('sends the typed bearer token, and stops a stream', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, {}, described)
    await openApi(page, server)
    await page.type('#token', 'not.a.token')
    const secret = await openOperation(page, 'GET', '/secret')
    await page.click(`${secret} button`)
    const refused = await replyIn(page, secret)
    assert.match(refused.outcome, /^401 Unauthorized/)
    assert.match(refused.body, /"invalid_token"/)

    const follow = await openOperation(page, 'GET', '/tasks/{id}/news')
    await page.type(`${follow} input[name=id]`, '7')
    await page.click(`${follow} button`)
    await until(async () => (await page.text(`${follow} .body`)) === 'first\n')
    await page.click(`${follow} .stop`)
    const { outcome, body } = await replyIn(page, follow)
    assert.match(outcome, /^200 OK, \d+ ms, 6 bytes, stopped$/)
    assert.equal(body, 'first\n')
  })

  test('filters while the user types, and the filtered operations can be tried', async (t) => {
    const page = await openPage(t)
    const server = await startPanel(t, {}, described)
    await openApi(page, server)
    await page.type('#q', 'task.show')
    await until(async () => (await page.text('#count')) === '1 of 8 operations')
    const show = await openOperation(page, 'GET', '/tasks/{id}')
    await page.type(`${show} input[name=id]`, '7')
    await page.click(`${show} button`)
    assert.match((await replyIn(page, show)).outcome, /^200 OK/)
  })
})
