/**
 * Prototype pollution: a name such as `__proto__` that a client sends is a name like any other. It is visible only to
 * code that reads it, and `Object.prototype` stays unchanged.
 */
import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { afterEach, describe, it } from 'node:test'
import { assembleConfig } from '../../lib/config/assemble.ts'
import { editConfig } from '../../lib/config/save.ts'
import { parseCookies } from '../../lib/http/cookie.ts'
import { parseJson } from '../../lib/http/json.ts'
import { parseUrlencoded } from '../../lib/http/urlencoded.ts'
import { verifyJws } from '../../lib/jwt/token.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import { parseRecord } from '../../lib/application/record.ts'
import { fromFileText, toFileText } from '../../lib/session-stores/session-file.ts'
import { hmacToken, secret } from '../jwt/tokens.ts'
import { request, type Answer } from '../support/request.ts'
import { serve } from '../support/serve.ts'

const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '__defineGetter__', 'valueOf']
const methods = Object.getOwnPropertyNames(Object.prototype).sort()

/** Fails when `Object.prototype` has been changed. */
function assertClean(): void {
  assert.deepEqual(Object.getOwnPropertyNames(Object.prototype).sort(), methods)
  for (const kind of [Object, Array, Function, String]) {
    for (const name of ['polluted', 'admin', 'isAdmin', 'x']) assert.ok(!(name in kind.prototype), `${kind.name}.prototype.${name}`)
  }
  assert.equal(Reflect.get({}, 'polluted'), undefined)
}

afterEach(assertClean)

const actions = {
  '/query': '(ctx) => ({ own: [...ctx.query.keys()], polluted: {}.polluted })',
  '/cookies': '(ctx) => ({ own: Object.entries(ctx.cookies), constructor: typeof ctx.cookies.constructor, proto: Object.getPrototypeOf(ctx.cookies) })',
  '/headers': '(ctx) => ({ constructor: typeof ctx.headers.constructor, proto: Object.getPrototypeOf(ctx.headers), state: Reflect.ownKeys(Object.getPrototypeOf(ctx.state)) })',
  '/params/:__proto__/:constructor': '(ctx) => ({ own: Object.entries(ctx.params), proto: Object.getPrototypeOf(ctx.params) })',
  '/none/:x': '(ctx) => ({ proto: ctx.params.__proto__ === undefined, constructor: ctx.params.constructor === undefined })',
  '/json': '(ctx) => ctx.readJson().then((value) => ({ own: Object.keys(value), polluted: {}.polluted === undefined, proto: Object.getPrototypeOf(value) === Object.prototype }))',
  '/form': '(ctx) => ctx.readForm().then((form) => ({ entries: [...form.entries()], absent: form.get("valueOf") === undefined, files: form.files.map(({ name }) => name) }))',
}

async function ask(url: string, headers: Record<string, string> = {}, body?: string): Promise<unknown> {
  const answer: Answer = await request(url, body === undefined ? { headers } : { headers, body })
  assert.equal(answer.status, 200, answer.text)
  return answer.json()
}

describe('names of Object.prototype', () => {
  it('in a request are names like any other', async (t) => {
    const { url } = await serve(t, actions)
    const list = names.map((name) => `${name}=${name}&${name}[polluted]=1&${name}.polluted=1`).join('&')
    assert.deepEqual(await ask(`${url}/query?${list}`), { own: names.flatMap((name) => [name, `${name}[polluted]`, `${name}.polluted`]) })
    assert.deepEqual(await ask(`${url}/cookies`, { cookie: names.map((name) => `${name}=v`).join('; ') }), {
      own: names.map((name) => [name, 'v']),
      constructor: 'string',
      proto: null,
    })
    assert.deepEqual(await ask(`${url}/cookies`), { own: [], constructor: 'undefined', proto: null })
    assert.deepEqual(await ask(`${url}/headers`, { ['__proto__']: 'x', 'x-a': 'b' }), { constructor: 'undefined', proto: null, state: [] })
    assert.deepEqual(await ask(`${url}/params/a/b`), { own: [['__proto__', 'a'], ['constructor', 'b']], proto: null })
    assert.deepEqual(await ask(`${url}/none/x`), { proto: true, constructor: true })
  })

  it('in a body are names like any other', async (t) => {
    const { url } = await serve(t, actions)
    const json = `{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}`
    assert.deepEqual(await ask(`${url}/json`, { 'content-type': 'application/json' }, json), {
      own: ['__proto__', 'constructor'],
      polluted: true,
      proto: true,
    })
    const form = '__proto__=a&__proto__[polluted]=b&constructor.prototype.polluted=c'
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    assert.deepEqual(await ask(`${url}/form`, type, form), {
      entries: [['__proto__', 'a'], ['__proto__[polluted]', 'b'], ['constructor.prototype.polluted', 'c']],
      absent: true,
      files: [],
    })
    const part = (name: string, more = ''): string => `--B\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\nv\r\n`
    const parts = `${part('__proto__')}${part('constructor', '; filename="f"')}--B--`
    assert.deepEqual(await ask(`${url}/form`, { 'content-type': 'multipart/form-data; boundary=B' }, parts), {
      entries: [['__proto__', 'v']],
      absent: true,
      files: ['constructor'],
    })
  })

  it('in a session and its flash are keys like any other, also when it is read again', async (t) => {
    const put = '(ctx) => (ctx.session.set(ctx.query.get("k"), { polluted: 1 }), ctx.flash(ctx.query.get("k")).set(ctx.query.get("k"), "m"), "put")'
    const get = `(ctx) => {
      const key = ctx.query.get('k')
      const bag = ctx.flash(key)
      return { value: ctx.session.get(key), has: ctx.session.has(key), flash: bag.get(key, 'none'), again: bag.get(key, 'none'), clean: {}.polluted === undefined }
    }`
    const { url } = await serve(t, {}, {}, {
      'routes/s.json': ['put', 'get'].map((name) => ({ name, url: `/${name}`, action: `s.mjs@${name}`, middleware: 'SVC_MwSession' })),
      's.mjs': `export const put = ${put}\nexport const get = ${get}\n`,
    })
    for (const name of names) {
      const empty = await request(`${url}/get?k=${name}`)
      assert.deepEqual(empty.json(), { has: false, flash: 'none', again: 'none', clean: true }, name)
      const first = await request(`${url}/put?k=${name}`)
      assert.equal(first.status, 200, first.text)
      const cookie = first.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
      const second = await request(`${url}/get?k=${name}`, { headers: { cookie } })
      assert.deepEqual(second.json(), { value: { polluted: 1 }, has: true, flash: 'm', again: 'none', clean: true }, name)
    }
  })

  it('in a view are unknown names, unless data has them itself', async (t) => {
    const { url } = await serve(t, { '/v': "(ctx) => ctx.view('v.html', JSON.parse(ctx.query.get('data')))" }, {}, {
      'v.html': '{{ constructor }}',
    })
    assert.equal((await request(`${url}/v?data=${encodeURIComponent('{"constructor":"own"}')}`)).text, 'own')
    for (const data of ['{}', '{"__proto__":{"constructor":"x"}}']) {
      assert.equal((await request(`${url}/v?data=${encodeURIComponent(data)}`)).status, 500)
    }
  })
})

describe('the parsers', () => {
  const rows: readonly (readonly [what: string, read: () => unknown])[] = [
    ['JSON', () => parseJson('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')],
    ['JSON in a list', () => parseJson('[{"__proto__":{"polluted":1}}]')],
    ['cookies', () => parseCookies('__proto__=1; constructor=2; prototype=3')],
    ['a form', () => parseUrlencoded(Buffer.from('__proto__[polluted]=1&constructor[prototype][polluted]=1'))],
    ['a configuration', () => assembleConfig([JSON.parse('{"__proto__":{"admin":{"user":"x"}},"constructor":{"prototype":{"polluted":1}}}')], {})],
    ['a nested configuration', () => assembleConfig([JSON.parse('{"admin":{"__proto__":{"user":"x"}},"trace":{"__proto__":{"app":false}}}')], {})],
    ['a dotted configuration', () => assembleConfig([JSON.parse('{"__proto__.polluted":1,"admin.__proto__":{"user":"x"}}')], {})],
    ['a configuration that is changed', () => editConfig('{"__proto__":{"admin":{"user":"x"}}}', { 'admin.user': '__proto__' })],
    ['a route record', () => parseRecord(JSON.parse('{"__proto__":{"name":"n","url":"/","action":"a.js"}}'), { root: '/srv', middlewareKnown: () => true })],
    ['a pattern', () => parsePattern('/:__proto__/:constructor/*prototype')],
    ['a session file', () => fromFileText(Buffer.from('{"version":1,"__proto__":{"polluted":1},"fields":[["__proto__","1"],["key:__proto__","{}"]]}'))],
    ['a session that is written', () => toFileText(new Map([['key:__proto__', '{"__proto__":{"polluted":1}}']]))],
    ['a token', () => verifyJws(hmacToken('{"alg":"HS256","__proto__":{"polluted":1}}', '{"__proto__":{"sub":"x","polluted":1}}'), ['HS256'], createSecretKey(Buffer.from(secret)))],
  ]
  for (const [what, read] of rows) {
    it(`of ${what} do not affect other objects`, () => {
      const value = read()
      assert.ok(value !== undefined)
      assertClean()
    })
  }

  it('of a configuration ignore inherited members', () => {
    const { config } = assembleConfig([JSON.parse('{"__proto__":{"admin":{"user":"evil"}},"admin":{"__proto__":{"secret":"evil"}}}')], {})
    assert.deepEqual([config['admin.user'], config['admin.secret']], ['', ''])
    assert.equal(assembleConfig([Object.create({ 'admin.user': 'evil' })], {}).config['admin.user'], '')
  })

  it('of a route record ignore inherited members', () => {
    const text = '{"__proto__":{"name":"n","url":"/","action":"a.js"}}'
    const record = parseRecord(JSON.parse(text), { root: '/srv', middlewareKnown: () => true })
    assert.ok('problems' in record && record.problems.length >= 3)
  })

  it('of a token accept only own claims', () => {
    const key = createSecretKey(Buffer.from(secret))
    const reading = verifyJws(hmacToken('{"alg":"HS256"}', '{"__proto__":{"sub":"evil"}}'), ['HS256'], key)
    assert.ok('payload' in reading && reading.payload['sub'] === undefined && Object.hasOwn(reading.payload, '__proto__'))
    const unsigned = verifyJws(hmacToken('{"__proto__":{"alg":"HS256"}}', '{}'), ['HS256'], key)
    assert.ok('problem' in unsigned)
  })
})
