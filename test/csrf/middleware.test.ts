import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createCsrfTokens } from '../../lib/csrf/token.ts'
import type { FullContext } from '../support/context.ts'
import { multipart } from '../http/body-support.ts'
import { request, type Answer, type Question } from '../support/request.ts'
import { cookieOf, serveForms, valueOf, type FormServer, type FormServerOptions } from './form-server.ts'

const urlencoded = 'application/x-www-form-urlencoded'
const madeAtMs = 1_700_000_000_000
const signedTokens = createCsrfTokens({ keys: ['test'], now: () => madeAtMs })
const token = signedTokens.make()
const foreign = createCsrfTokens({ keys: ['foreign'], now: () => madeAtMs }).make()
const otherSite = { 'Sec-Fetch-Site': 'cross-site' }

const act = (ctx: FullContext): unknown => (ctx.method === 'GET' ? ctx.csrfInput() : { changed: true })
const routes: FormServerOptions['routes'] = {
  '/signed': [['SVC_MwCsrfCheck'], act],
  '/signed-session': [['SVC_MwSession', 'SVC_MwCsrfCheck'], act],
  '/session': [['SVC_MwSession', 'SVC_MwCsrf'], act],
  '/too-early': [['SVC_MwCsrf', 'SVC_MwSession'], act],
  '/alone': [['SVC_MwCsrf'], act],
  '/flash': [['SVC_MwSession'], (ctx) => ({ error: ctx.flash('csrf').get('error', 'none') })],
  '/lose': [['SVC_MwSession'], (ctx) => ctx.session.set('_csrf_token', 5)],
}

/** A form as a body. */
function form(fields: string, headers: Record<string, string> = {}): Question {
  return { method: 'POST', headers: { 'Content-Type': urlencoded, ...headers }, body: fields }
}

function serve(t: TestContext, options: Omit<Partial<FormServerOptions>, 'routes'> = {}): Promise<FormServer> {
  return serveForms(t, { ...options, routes })
}

/** The reason of a refusal; 'ok' if the action replied. */
function outcomeOf(answer: Answer): string {
  const body = answer.json() as { changed?: boolean; error?: string; reason?: string }
  if (answer.status === 200) {
    assert.deepEqual(body, { changed: true })
    return 'ok'
  }
  assert.equal(answer.status, 403)
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  assert.deepEqual(Object.keys(body), ['error', 'reason'])
  assert.equal(body.error, 'csrf_invalid')
  return body.reason ?? ''
}

describe('SVC_MwCsrfCheck', () => {
  it('passes safe methods, from anywhere', async (t) => {
    const { url, lines } = await serve(t)
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      assert.equal((await request(`${url}/signed`, { method, headers: otherSite })).status, 200, method)
    }
    assert.deepEqual(lines, [])
  })

  it('requires a token for every other method', async (t) => {
    const { url } = await serve(t)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
      assert.equal(outcomeOf(await request(`${url}/signed`, { method })), 'missing', method)
      const headers = { 'X-CSRF-Token': token }
      assert.equal(outcomeOf(await request(`${url}/signed`, { method, headers })), 'ok', method)
    }
  })

  it('reads the token from the header, else from a form, and reports its problem', async (t) => {
    const { url } = await serve(t, { settings: { lapse: 60 } })
    const part = 'Content-Disposition: form-data; name="_csrf"'
    const parts = (...list: Array<readonly [string, string]>): Question => ({
      method: 'POST',
      headers: { 'Content-Type': 'multipart/form-data; boundary=x' },
      body: multipart('x', list),
    })
    const old = createCsrfTokens({ keys: ['test'], now: () => madeAtMs - 61_000 }).make()
    const rows: Array<[string, string, Question]> = [
      ['nothing', 'missing', { method: 'POST' }],
      ['an empty header', 'missing', { method: 'POST', headers: { 'X-CSRF-Token': '' } }],
      ['an empty header and a valid field', 'missing', form(`_csrf=${token}`, { 'X-CSRF-Token': '' })],
      ['an invalid header and a valid field', 'signature', form(`_csrf=${token}`, { 'X-CSRF-Token': foreign })],
      ['a valid header and an invalid field', 'ok', form(`_csrf=${foreign}`, { 'X-CSRF-Token': token })],
      ['a valid header twice', 'malformed', { method: 'POST', headers: { 'X-CSRF-Token': [token, token] } }],
      ['a valid header and a JSON body', 'ok', {
        method: 'POST', headers: { 'x-csrf-token': token, 'Content-Type': 'application/json' }, body: '{}',
      }],
      ['a field', 'ok', form(`a=b&_csrf=${token}`)],
      ['a percent-encoded field', 'ok', form(`%5fcsrf=${token.replace('.', '%2E')}`)],
      ['an empty field', 'missing', form('_csrf=')],
      ['a field without a value', 'missing', form('_csrf')],
      ['another field', 'missing', form(`_CSRF=${token}`)],
      ['a field twice', 'malformed', form(`_csrf=${token}&_csrf=${token}`)],
      ['a field of a list', 'missing', form(`_csrf[]=${token}`)],
      ['a field that is not a token', 'malformed', form('_csrf=__proto__')],
      ['a field signed with a foreign key', 'signature', form(`_csrf=${foreign}`)],
      ['an old field', 'expired', form(`_csrf=${old}`)],
      ['a part', 'ok', parts(['Content-Disposition: form-data; name="a"', 'b'], [part, token])],
      ['a part twice', 'malformed', parts([part, token], [part, token])],
      ['a file with that name', 'missing', parts([`${part}; filename="a"`, token])],
      ['a form without a body', 'missing', { method: 'POST', headers: { 'Content-Type': urlencoded } }],
      ['a form with another type', 'missing', form(`_csrf=${token}`, { 'Content-Type': 'text/plain' })],
      ['a JSON body', 'missing', form(JSON.stringify({ _csrf: token }), { 'Content-Type': 'application/json' })],
      ['a query', 'missing', { method: 'POST' }],
      ['a cookie', 'missing', { method: 'POST', headers: { Cookie: `_csrf=${token}; x-csrf-token=${token}` } }],
    ]
    for (const [title, outcome, question] of rows) {
      const query = title === 'a query' ? `?_csrf=${token}` : ''
      assert.equal(outcomeOf(await request(`${url}/signed${query}`, question)), outcome, title)
    }
  })

  it('passes errors of the body unchanged', async (t) => {
    const { url, lines } = await serve(t)
    const rows: Array<[number, Question]> = [
      [400, form('_csrf=%ff')],
      [400, form(`_csrf=${token}&${'a&'.repeat(10_000)}`)],
      [413, form(`_csrf=${token}&a=${'b'.repeat(100_000)}`)],
      [415, form(`_csrf=${token}`, { 'Content-Encoding': 'gzip' })],
      [400, form('--x\r\n', { 'Content-Type': 'multipart/form-data; boundary=x' })],
    ]
    for (const [status, question] of rows) assert.equal((await request(`${url}/signed`, question)).status, status)
    assert.deepEqual(lines, [])
  })

  it('refuses a request from another site before it reads the token or the body', async (t) => {
    const { url } = await serve(t, { trustedOrigins: ['https://partner.example'] })
    const rows: Array<[string, Record<string, string>]> = [
      ['cross_site', otherSite],
      ['cross_site', { 'Sec-Fetch-Site': 'same-site', Origin: 'https://sub.example' }],
      ['cross_site', { Origin: 'https://evil.example' }],
      ['cross_site', { Referer: 'https://evil.example/page' }],
      ['ok', { 'Sec-Fetch-Site': 'same-origin' }],
      ['ok', { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://partner.example' }],
      ['ok', { Origin: url }],
      ['ok', { Referer: `${url}/page` }],
      ['ok', { Origin: 'null' }],
    ]
    for (const [outcome, headers] of rows) {
      const answer = await request(`${url}/signed`, { method: 'POST', headers: { ...headers, 'X-CSRF-Token': token } })
      assert.equal(outcomeOf(answer), outcome, JSON.stringify(headers))
      assert.equal(outcomeOf(await request(`${url}/signed`, form(`_csrf=${token}`, headers))), outcome)
    }
    assert.equal(outcomeOf(await request(`${url}/signed`, form('%zz', otherSite))), 'cross_site')
    assert.equal(outcomeOf(await request(`${url}/signed`, form('%zz', { 'X-CSRF-Token': foreign }))), 'signature')
  })

  it('accepts a token until it is too old, any number of times', async (t) => {
    const { url, clock } = await serve(t, { settings: { lapse: 60 } })
    const made = valueOf((await request(`${url}/signed`)).text)
    for (const [ageS, outcome] of [[0, 'ok'], [60, 'ok'], [61, 'expired']] as const) {
      clock.ms = madeAtMs + ageS * 1000
      assert.equal(outcomeOf(await request(`${url}/signed`, form(`_csrf=${made}`))), outcome, String(ageS))
    }
  })

  it('accepts tokens of the previous key, and makes none with it', async (t) => {
    const { url } = await serve(t, { keys: ['new', 'test'] })
    assert.equal(outcomeOf(await request(`${url}/signed`, form(`_csrf=${token}`))), 'ok')
    assert.equal(signedTokens.check(valueOf((await request(`${url}/signed`)).text), 0), 'signature')
  })

  it('uses the configured header and field, also after a change', async (t) => {
    const { url, group } = await serve(t, { settings: { header: 'X-Token', field: 'to"ken' } })
    const { text } = await request(`${url}/signed`)
    assert.match(text, /^<input type="hidden" name="to&quot;ken" value="/)
    assert.equal(outcomeOf(await request(`${url}/signed`, form(`to%22ken=${valueOf(text)}`))), 'ok')
    assert.equal(outcomeOf(await request(`${url}/signed`, { method: 'POST', headers: { 'x-token': token } })), 'ok')
    const defaultsForm = form(`_csrf=${token}`, { 'X-CSRF-Token': token })
    assert.equal(outcomeOf(await request(`${url}/signed`, defaultsForm)), 'missing')
    group.prepare(undefined).commit()
    assert.equal(outcomeOf(await request(`${url}/signed`, form(`_csrf=${token}`))), 'ok')
  })
})

describe('both middlewares', () => {
  it('return no promise unless they read a body', async (t) => {
    const { url, wasSynchronous } = await serve(t)
    const rows: Array<[boolean, string, Question]> = [
      [true, '/signed', {}],
      [true, '/signed', { method: 'POST' }],
      [true, '/signed', { method: 'POST', headers: { 'X-CSRF-Token': token } }],
      [true, '/signed', form('_csrf=', otherSite)],
      [false, '/signed', form(`_csrf=${token}`)],
      [true, '/session', {}],
      [true, '/session', { method: 'POST', headers: { 'X-CSRF-Token': token } }],
      [false, '/session', form(`_csrf=${token}`)],
    ]
    for (const [expected, path, question] of rows) {
      await request(url + path, question)
      assert.equal(wasSynchronous(), expected, `${path} ${JSON.stringify(question)}`)
    }
  })
})

/** A log line with `[id]` in place of the request id. */
function withoutId(line: string): string {
  return line.replace(/\[[\w-]{36}\]$/, '[id]')
}

describe('a refusal', () => {
  it('is one log line, with reason, method, path and route', async (t) => {
    const { url, lines } = await serve(t)
    await request(`${url}/signed?secret=1`, { method: 'DELETE' })
    await request(`${url}/session`, form(`_csrf=${token}`, otherSite))
    assert.deepEqual(lines.map(withoutId), [
      'error WARN DELETE /signed (route of /signed) was refused by the CSRF check: missing [id]',
      'error WARN POST /session (route of /session) was refused by the CSRF check: cross_site [id]',
    ])
  })

  it('redirects if configured, with a flash message once if there is a session', async (t) => {
    const { url, lines } = await serve(t, { settings: { redirect: '/flash' } })
    const headers = { Cookie: cookieOf(await request(`${url}/session`)) ?? '' }
    const sentences = { '/signed-session': /^The security token of this form is damaged\. /, '/session': /^This form does not / }
    for (const [path, sentence] of Object.entries(sentences)) {
      const answer = await request(`${url}${path}`, form('_csrf=wrong', headers))
      assert.deepEqual([answer.status, answer.headers.location, answer.text], [302, '/flash', ''])
      const flash = (await request(`${url}/flash`, { headers })).json() as { error: string }
      assert.match(flash.error, sentence)
      assert.deepEqual((await request(`${url}/flash`, { headers })).json(), { error: 'none' })
    }
    assert.equal(lines.length, 2)
  })

  it('redirects without a flash message if there is no session', async (t) => {
    const { url, lines } = await serve(t, { settings: { redirect: 'https://example.org/sign-in?again=1' } })
    const answer = await request(`${url}/signed`, { method: 'POST', headers: { Accept: 'application/json' } })
    assert.deepEqual([answer.status, answer.headers.location], [302, 'https://example.org/sign-in?again=1'])
    assert.equal(cookieOf(answer), undefined)
    assert.equal(lines.length, 1)
  })

  it('begins no session for a request without one that has no origin of this site', async (t) => {
    const { url } = await serve(t, { settings: { redirect: '/flash' } })
    const unknown = { Cookie: cookieOf(await request(`${url}/session`))?.replace(/=.{8}/, '=AAAAAAAA') ?? '' }
    const wrong = [{}, { Origin: 'null' }, unknown].map((headers) => ['_csrf=wrong', headers] as const)
    for (const path of ['/signed-session', '/session']) {
      for (const [body, headers] of [[`_csrf=${token}`, otherSite] as const, ...wrong]) {
        const answer = await request(`${url}${path}`, form(body, headers))
        assert.deepEqual([answer.status, answer.headers.location, cookieOf(answer)], [302, '/flash', undefined])
      }
    }
  })

  it('begins a session for the message if the request has an origin of this site', async (t) => {
    const { url } = await serve(t, { settings: { redirect: '/flash' } })
    for (const own of [{ 'Sec-Fetch-Site': 'same-origin' }, { Origin: url }, { Referer: `${url}/session` }]) {
      const headers = { Cookie: cookieOf(await request(`${url}/session`, form('_csrf=wrong', own))) ?? '' }
      const flash = (await request(`${url}/flash`, { headers })).json() as { error: string }
      assert.match(flash.error, /^This form does not /, JSON.stringify(own))
    }
  })

  it("sends a flash message for another site's request if it came with the session", async (t) => {
    const { url } = await serve(t, { settings: { redirect: '/flash' } })
    const Cookie = cookieOf(await request(`${url}/session`)) ?? ''
    await request(`${url}/signed-session`, form(`_csrf=${token}`, { ...otherSite, Cookie }))
    const flash = (await request(`${url}/flash`, { headers: { Cookie } })).json() as { error: string }
    assert.match(flash.error, /another site/)
  })
})

describe('SVC_MwCsrf', () => {
  /** Opens the page: returns its token, and the cookie of the session. */
  async function openPage(url: string, cookie = ''): Promise<{ token: string; cookie: string }> {
    const page = await request(`${url}/session`, { headers: cookie === '' ? {} : { Cookie: cookie } })
    return { token: valueOf(page.text), cookie: cookieOf(page) ?? cookie }
  }

  it('creates one token per session, and accepts it from the header or the field, repeatedly', async (t) => {
    const { url } = await serve(t)
    const page = await openPage(url)
    assert.match(page.token, /^[A-Za-z0-9_-]{43}$/)
    assert.deepEqual(await openPage(url, page.cookie), page)
    for (let round = 0; round < 2; round += 1) {
      const headers = { Cookie: page.cookie }
      assert.equal(outcomeOf(await request(`${url}/session`, form(`_csrf=${page.token}`, headers))), 'ok')
      const inHeader = { ...headers, 'X-Csrf-Token': page.token }
      assert.equal(outcomeOf(await request(`${url}/session`, { method: 'PUT', headers: inHeader })), 'ok')
    }
  })

  it('refuses anything but the token of this session', async (t) => {
    const { url } = await serve(t)
    const ownPage = await openPage(url)
    const other = await openPage(url)
    const lost = cookieOf(await request(`${url}/lose`)) ?? ''
    const rows: Array<[string, string, string, string]> = [
      ['no session', 'mismatch', '', ownPage.token],
      ['an unknown session', 'mismatch', 'SVCSID=k3Jr0vYw9LZ_x-2bq7H1cT5nE8sDfG4uMaPiOyRtWvQ', ownPage.token],
      ['the token of another session', 'mismatch', ownPage.cookie, other.token],
      ['no token', 'missing', ownPage.cookie, ''],
      ['half a token', 'mismatch', ownPage.cookie, ownPage.token.slice(0, -1)],
      ['a longer token', 'mismatch', ownPage.cookie, `${ownPage.token}A`],
      ['a token in other characters', 'mismatch', ownPage.cookie, `é${ownPage.token.slice(2)}`],
      ['a signed token', 'mismatch', ownPage.cookie, token],
      ['a session without its token', 'mismatch', lost, ownPage.token],
      ['its own token', 'ok', ownPage.cookie, ownPage.token],
    ]
    for (const [title, outcome, cookie, sent] of rows) {
      const headers = cookie === '' ? {} : { Cookie: cookie }
      const answer = await request(`${url}/session`, form(`_csrf=${encodeURIComponent(sent)}`, headers))
      assert.equal(outcomeOf(answer), outcome, title)
      if (outcome !== 'ok') assert.equal(cookieOf(answer), undefined, `${title}: a refusal begins no session`)
    }
    assert.match((await openPage(url, lost)).token, /^[A-Za-z0-9_-]{43}$/)
  })

  it('answers 500 on a route without a session, to every client and method, and logs the route', async (t) => {
    const { url, lines } = await serve(t)
    for (const path of ['/alone', '/too-early']) {
      for (const question of [{}, { headers: { Accept: 'text/html' } }, { method: 'POST' }]) {
        const answer = await request(`${url}${path}`, question)
        assert.deepEqual([answer.status, answer.json()], [500, { error: 'csrf_requires_session' }])
      }
    }
    assert.equal(lines.length, 6)
    assert.equal(
      withoutId(lines[0] ?? ''),
      'error ERROR GET /alone was not served: SVC_MwCsrf has no session: ' +
        'add SVC_MwSession before it to the middleware of route "route of /alone" [id]',
    )
  })
})
