import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { createCsrfTokens } from '../../lib/csrf/token.ts'
import type { FullContext } from '../support/context.ts'
import type { TestAction } from '../support/context.ts'
import { request, type Answer } from '../support/request.ts'
import { cookieOf, serveForms, valueOf } from './form-server.ts'

const signed = ['SVC_MwCsrfCheck']
const sessionMiddleware = ['SVC_MwSession', 'SVC_MwCsrf']
const tokens = createCsrfTokens({ keys: ['test'], now: () => 1_700_000_000_000 })

/** Requests an action behind this middleware. */
async function ask(
  t: TestContext,
  middleware: readonly string[],
  action: TestAction,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const { url } = await serveForms(t, { routes: { '/': [middleware, action] } })
  return request(url, { headers })
}

describe('csrfInput', () => {
  it('is a newly signed token if SVC_MwCsrf did not run, one for all forms of the page', async (t) => {
    const { url } = await serveForms(t, {
      routes: { '/': [signed, ({ csrfInput, UCsrfToHtml }: FullContext) => csrfInput() + UCsrfToHtml()] },
    })
    const { text } = await request(url)
    const [first, second] = text.split('>', 2)
    assert.match(text, /^<input type="hidden" name="_csrf" value="[\w-]+\.[0-9a-f]{64}"><input /)
    assert.equal(first, second)
    assert.equal(tokens.check(valueOf(text), 1), 'ok')
    assert.notEqual(valueOf((await request(url)).text), valueOf(text))
  })

  it('is a signed token on a page without CSRF middleware, even if the session has a token', async (t) => {
    const act: TestAction = ({ csrfInput }) => csrfInput()
    const { url } = await serveForms(t, { routes: { '/a': [sessionMiddleware, act], '/b': [['SVC_MwSession'], act] } })
    const page = await request(`${url}/a`)
    assert.equal(valueOf(page.text).length, 43)
    const other = await request(`${url}/b`, { headers: { Cookie: cookieOf(page) ?? '' } })
    assert.equal(tokens.check(valueOf(other.text), 1), 'ok')
  })

  it('is the token of the new session if the action has ended the old one', async (t) => {
    const act: TestAction = ({ session, csrfInput }) => {
      const before = csrfInput()
      session.destroy()
      return { before: valueOf(before), after: valueOf(csrfInput()), kept: session.get('_csrf_token') }
    }
    const { before, after, kept } = (await ask(t, sessionMiddleware, act)).json() as Record<string, string>
    assert.notEqual(before, after)
    assert.equal(after, kept)
  })
})

describe('csrf_token', () => {
  it('is the token of the session if SVC_MwCsrf ran, else empty', async (t) => {
    const act: TestAction = ({ csrf_token, csrfInput }) => ({ text: csrf_token, input: valueOf(csrfInput()) })
    const { text, input } = (await ask(t, sessionMiddleware, act)).json() as Record<string, string>
    assert.equal(text, input)
    assert.equal(text?.length, 43)
    for (const middleware of [signed, ['SVC_MwSession'], []]) {
      assert.equal(((await ask(t, middleware, act)).json() as Record<string, string>)['text'], '')
    }
  })

  it('is visible in views, and so is UCsrfToHtml', async (t) => {
    const act: TestAction = (ctx) => {
      const scope = viewScope(ctx)
      assert.equal('csrfInput' in scope, false)
      return { token: scope['csrf_token'], input: (scope['UCsrfToHtml'] as () => string)() }
    }
    const { url, viewScope } = await serveForms(t, { routes: { '/': [sessionMiddleware, act] } })
    const { token, input } = (await request(url)).json() as Record<string, string>
    assert.equal(input, `<input type="hidden" name="_csrf" value="${token}">`)
  })
})

describe('a page with a token', () => {
  const filler = 'x'.repeat(5000)
  const gzip = { 'Accept-Encoding': 'gzip' }

  it('is private unless the application sets Cache-Control', async (t) => {
    const rows: Array<[string | undefined, readonly string[], TestAction]> = [
      ['private', signed, (ctx) => ctx.csrfInput()],
      ['private', [], (ctx) => ctx.csrfInput()],
      ['private', sessionMiddleware, (ctx) => ctx.csrf_token],
      ['no-store', signed, (ctx) => (ctx.setHeader('Cache-Control', 'no-store'), ctx.csrfInput())],
      ['no-store', signed, (ctx) => [ctx.csrfInput(), ctx.setHeader('Cache-Control', 'no-store')]],
      [undefined, signed, () => 'no token'],
      [undefined, signed, (ctx) => `none: ${ctx.csrf_token}`],
    ]
    for (const [expected, middleware, action] of rows) {
      assert.equal((await ask(t, middleware, action)).headers['cache-control'], expected)
    }
  })

  it("is not compressed if it has the session's token", async (t) => {
    for (const show of [(ctx: FullContext) => ctx.csrfInput(), (ctx: FullContext) => ctx.csrf_token]) {
      const answer = await ask(t, sessionMiddleware, (ctx) => show(ctx) + filler, gzip)
      assert.equal(answer.headers['content-encoding'], undefined)
      assert.ok(answer.text.endsWith(filler))
    }
  })

  it('is compressed if the token is signed, or is not shown', async (t) => {
    const rows: Array<[readonly string[], TestAction]> = [
      [signed, (ctx) => ctx.csrfInput() + filler],
      [sessionMiddleware, () => filler],
    ]
    for (const [middleware, action] of rows) {
      const answer = await ask(t, middleware, action, gzip)
      assert.equal(answer.headers['content-encoding'], 'gzip')
      assert.ok(gunzipSync(answer.bytes).toString().endsWith(filler))
    }
  })
})
