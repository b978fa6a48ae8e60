import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { FullContext } from '../support/context.ts'
import { createResourceTokens } from '../../lib/tokens/resource-id.ts'
import { serveForms, valueOf } from '../csrf/form-server.ts'
import { multipart } from '../http/body-support.ts'
import { request, type Answer } from '../support/request.ts'

const now = (): number => 1_700_000_000_000
const tokens = createResourceTokens({ keys: ['test'], now })
const one = tokens.make('1')
const two = tokens.make('2')
const foreign = createResourceTokens({ keys: ['foreign'], now }).make('3')
const urlencoded = 'application/x-www-form-urlencoded'

type Ask = (query: string, type?: string, body?: string | Uint8Array, method?: string) => Promise<Answer>

/** Requests an action that replies with the id it reads. */
async function readsId(t: TestContext): Promise<Ask> {
  const action = async ({ resourceId }: FullContext): Promise<unknown> => ({ id: await resourceId() })
  const { url } = await serveForms(t, { routes: { '/': [[], action] } })
  return (query, type, body, method = body === undefined ? 'GET' : 'POST') =>
    request(`${url}/${query}`, {
      method,
      headers: {
        ...(type === undefined ? {} : { 'Content-Type': type }),
        ...(body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
      },
      ...(body === undefined ? {} : { body }),
    })
}

const form = (...values: string[]): string =>
  values.map((value) => `_resource_id=${encodeURIComponent(value)}`).join('&')
const json = JSON.stringify({ _resource_id: two })
const part = 'Content-Disposition: form-data; name="_resource_id"'
const multipartType = 'multipart/form-data; boundary=x'

describe('resourceId', () => {
  it('reads a field of the form body, else of the query', async (t) => {
    const ask = await readsId(t)
    const rows: Array<[string, string, string, (string | undefined)?, (string | Uint8Array)?, string?]> = [
      ['nothing', '', ''],
      ['the query', '1', `?${form(one)}`],
      ['an invalid token in the query', '', `?${form(foreign)}`],
      ['an empty token in the query', '', '?_resource_id='],
      ['twice in the query', '', `?${form(one, one)}`],
      ['a form', '1', '', urlencoded, form(one)],
      ['a form with a charset', '1', '', `${urlencoded}; charset=utf-8`, form(one)],
      ['a form before the query', '1', `?${form(two)}`, urlencoded, form(one)],
      ['an invalid token in the form, a valid one in the query', '', `?${form(one)}`, urlencoded, form(foreign)],
      ['an empty token in the form, a valid one in the query', '', `?${form(one)}`, urlencoded, '_resource_id='],
      ['twice in the form', '', '', urlencoded, form(one, one)],
      ['a valid and an invalid token in the form', '', '', urlencoded, form(one, foreign)],
      ['a form without a token, a valid one in the query', '1', `?${form(one)}`, urlencoded, 'a=b'],
      ['a form in a PUT', '1', '', urlencoded, form(one), 'PUT'],
      ['a form in a GET', '1', `?${form(two)}`, urlencoded, form(one), 'GET'],
      ['a multipart form', '1', `?${form(two)}`, multipartType, multipart('x', [[part, one]])],
      ['twice in a multipart form', '', '', multipartType, multipart('x', [[part, one], [part, one]])],
      [
        'a file with that name, a valid token in the query',
        '1',
        `?${form(one)}`,
        multipartType,
        multipart('x', [[`${part}; filename="a"`, two]]),
      ],
      ['a JSON body, which is not read', '1', `?${form(one)}`, 'application/json', json],
      ['a body with a malformed type', '1', `?${form(one)}`, 'a b', form(two)],
      ['a body without a type', '1', `?${form(one)}`, undefined, form(two)],
    ]
    for (const [title, id, query, type, body, method] of rows) {
      const answer = await ask(query, type, body, method)
      assert.equal(answer.status, 200, title)
      assert.deepEqual(answer.json(), { id }, title)
    }
  })

  it('fails like the form: 400 if it is broken or has too many fields, 413 if it is too large', async (t) => {
    const ask = await readsId(t)
    const query = `?${form(one)}`
    assert.equal((await ask(query, urlencoded, '%ff=1')).status, 400)
    assert.equal((await ask(query, urlencoded, 'a&'.repeat(10_001))).status, 400)
    assert.equal((await ask(query, urlencoded, `a=${'b'.repeat(100_000)}`)).status, 413)
    assert.equal((await ask(query, multipartType, '--x\r\n')).status, 400)
  })
})

describe('resourceInput', () => {
  async function render(t: TestContext, id: unknown): Promise<Answer> {
    // JavaScript allows values that are not ids.
    const action = ({ UResourceToHtml }: FullContext): string => `(${UResourceToHtml(id as string)})`
    const { url } = await serveForms(t, { routes: { '/': [[], action] } })
    return request(url)
  }

  it('renders a hidden input with the token of a string, a number or a bigint', async (t) => {
    const rows: Array<[unknown, string]> = [
      ['a|"é"', 'a|"é"'],
      [42, '42'],
      [0, '0'],
      [10n ** 20n, '100000000000000000000'],
    ]
    for (const [id, text] of rows) {
      const { text: html } = await render(t, id)
      assert.match(html, /^\(<input type="hidden" name="_resource_id" value="[A-Za-z0-9+/=.]+">\)$/)
      assert.equal(tokens.read(valueOf(html)), text)
    }
  })

  it('renders nothing for the empty id', async (t) => {
    assert.equal((await render(t, '')).text, '()')
  })

  it('refuses values that are not ids', async (t) => {
    for (const [id, found] of [[undefined, 'undefined'], [null, 'null'], [{}, 'object'], [true, 'boolean']]) {
      const { status, text } = await render(t, id)
      assert.equal(status, 500)
      assert.match(text, new RegExp(`must be a string, a number or a bigint: it is ${String(found)}`))
    }
  })

  it('is visible in views under the names of the specification', async (t) => {
    let seen: string[] = []
    const action = (ctx: FullContext): string => {
      const scope = viewScope(ctx)
      seen = ['UGetResource', 'UResourceToHtml', 'resourceId', 'resourceInput'].filter((name) => name in scope)
      return 'done'
    }
    const { url, viewScope } = await serveForms(t, { routes: { '/': [[], action] } })
    await request(url)
    assert.deepEqual(seen, ['UGetResource', 'UResourceToHtml'])
  })
})
