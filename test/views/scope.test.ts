import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowedGlobals } from '../../lib/views/render.ts'
import { makeViews } from './make-views.ts'

test('resolves a name from data, then helpers, then the ECMAScript globals', () => {
  const { views } = makeViews({ 'v.html': '{{ a }} {{ b }} {{ Math.max(1, 2) }} {{ String(c) }}' })
  assert.equal(views.render('v.html', { a: 1, c: 3 }, { a: 9, b: 2 }), '1 2 2 3')
  assert.equal(views.render('v.html', { a: 1, c: 3, Math: { max: () => 'data' } }, { b: 2 }), '1 2 data 3')
  assert.equal(views.render('v.html', { a: 1, c: 3 }, { b: 2, String: () => 'helper' }), '1 2 2 helper')
})

test('reads a getter of a helper only in views that use its name', () => {
  const { views } = makeViews({ 'with.html': '{{ user.name }}', 'without.html': '{{ x.user }}' })
  let reads = 0
  class Helpers {
    get user() {
      reads++
      return { name: 'Ann' }
    }
  }
  assert.equal(views.render('without.html', { x: {} }, new Helpers()), '')
  assert.equal(reads, 0)
  assert.equal(views.render('with.html', {}, new Helpers()), 'Ann')
  assert.equal(reads, 1)
})

const reads: readonly (readonly [expression: string, read: readonly string[], shown: string])[] = [
  ['id / n', [], '0.875'],
  ["'eval, import and arguments' + id", [], 'eval, import and arguments7'],
  ['`import ${id}`', [], 'import 7'],
  ["'/' + note.csrf_token + note?.csp_nonce + note . notes", [], '/abc'],
  ["'/' + csrf_token", ['csrf_token'], '/helper'],
  ['`/${csp_nonce}`', ['csp_nonce'], '/helper'],
  ['[...notes].length / 2', ['notes'], '3'],
  // Words in strings are looked up too, without further effect.
  ['`/notes/${id}`', ['notes'], '/notes/7'],
  ["n + ' csrf_token'", ['csrf_token'], '8 csrf_token'],
  ["'2026/11'.replace(/[/]/, ' csrf_token ')", ['csrf_token'], '2026 csrf_token 11'],
  ["'eval a'.replace(/eval/g, 'import')", [], 'import a'],
  ["`${id > 5 ? 'many' : 'few'} notes`", ['notes'], 'many notes'],
]

for (const [expression, expected, shown] of reads) {
  test(`reads ${expected.length === 0 ? 'no helper' : expected.join()} for ${expression}`, () => {
    const { views } = makeViews({ 'v.html': `{{ ${expression} }}` })
    const read: string[] = []
    const helpers = {}
    for (const name of ['csrf_token', 'csp_nonce', 'notes']) {
      Object.defineProperty(helpers, name, { get: () => (read.push(name), 'helper') })
    }
    const note = { csrf_token: 'a', csp_nonce: 'b', notes: 'c' }
    assert.equal(views.render('v.html', { id: 7, n: 8, note }, helpers), shown)
    assert.deepEqual(read, expected)
  })
}

test('reads no helper for the names that a pattern binds', () => {
  const { views } = makeViews({ 'v.html': '@foreach [user, {note: [title = prefix]}] in list\n-\n@endforeach' })
  const read: string[] = []
  const helpers = {}
  for (const name of ['user', 'title', 'prefix']) Object.defineProperty(helpers, name, { get: () => read.push(name) })
  assert.equal(views.render('v.html', { list: [] }, helpers), '')
  assert.deepEqual(read, ['prefix'])
})

test('reports the line of the first use when a getter throws', () => {
  const { views } = makeViews({ 'v.html': '\n{{ 1 }}\n{{ user }}' })
  const helpers = {
    get user() {
      throw new Error('no session')
    },
  }
  assert.throws(() => views.render('v.html', {}, helpers), { message: 'v.html:3: no session' })
})

test('does not resolve names from Object.prototype', () => {
  const names = ['toString', 'constructor', 'hasOwnProperty', 'valueOf', '__proto__']
  for (const name of names) {
    const { views } = makeViews({ 'v.html': `{{ ${name} }}` })
    const data = JSON.parse('{}') as Record<string, unknown>
    assert.throws(() => views.render('v.html', data, new (class {})()), { message: `v.html:1: unknown name "${name}"` })
    const own = JSON.parse(`{"${name}": "own"}`) as Record<string, unknown>
    assert.equal(views.render('v.html', own, {}), 'own')
  }
})

test('accepts data without a prototype', () => {
  const { views } = makeViews({ 'v.html': '{{ a }}{{ b }}' })
  const data = Object.assign(Object.create(null) as Record<string, unknown>, { a: 1 })
  assert.equal(views.render('v.html', data, Object.assign(Object.create(null) as object, { b: 2 })), '12')
})

test('knows no global of Node', () => {
  const hidden = Object.getOwnPropertyNames(globalThis).filter((name) => !allowedGlobals.has(name) && name !== 'eval')
  assert.ok(hidden.includes('process') && hidden.includes('fetch') && hidden.includes('Function'))
  for (const name of [...hidden, 'require', 'module', '__filename', 'globalThis']) {
    const { views } = makeViews({ 'v.html': `{{ ${name} }}` })
    assert.throws(() => views.render('v.html', {}, {}), { message: `v.html:1: unknown name "${name}"` })
    assert.equal(views.render('v.html', { [name]: 'data' }, {}), 'data')
  }
})

test('has the allowed ECMAScript globals', () => {
  const list = [...allowedGlobals].join(', ')
  const { views } = makeViews({ 'v.html': `{{ [${list}].length }}` })
  assert.equal(views.render('v.html', {}, {}), String(allowedGlobals.size))
})

test('hides a global that the application adds later', (t) => {
  const { views } = makeViews({ 'v.html': '{{ svcTestGlobal }}' })
  assert.throws(() => views.render('v.html', {}, {}), { message: 'v.html:1: unknown name "svcTestGlobal"' })
  t.after(() => Reflect.deleteProperty(globalThis, 'svcTestGlobal'))
  Object.assign(globalThis, { svcTestGlobal: 1 })
  assert.throws(() => views.render('v.html', {}, {}), { message: 'v.html:1: unknown name "svcTestGlobal"' })
})

test('reports an unknown name only where it is used', () => {
  const { views } = makeViews({
    'v.html': '@if typeof note === "string"\n{{ note }}\n@endif\n{{ ok || nope }}{{ [1].map((x) => x) }}{{ {y: 1}.y }}',
  })
  assert.equal(views.render('v.html', { ok: 'a' }, {}), 'a11')
  assert.equal(views.render('v.html', { ok: 'a', note: 'n' }, {}), 'n\na11')
  assert.throws(() => views.render('v.html', { ok: '' }, {}), { message: 'v.html:4: unknown name "nope"' })
})

test('resolves csrf_token to an empty string unless data or helpers have it', () => {
  const { views } = makeViews({ 'v.html': '[{{ csrf_token }}]' })
  assert.equal(views.render('v.html', {}, {}), '[]')
  assert.equal(views.render('v.html', {}, { csrf_token: 'h' }), '[h]')
  assert.equal(views.render('v.html', { csrf_token: 'd' }, { csrf_token: 'h' }), '[d]')
})

test('reports that the helper of @csrf, @resource or @error is unknown', () => {
  const files = { 'csrf.html': '\n@csrf', 'resource.html': '\n\n@resource 1', 'error.html': "@error 'a'\n@enderror" }
  const { views } = makeViews(files)
  assert.throws(() => views.render('error.html', {}, {}), { message: 'error.html:1: unknown name "errorsOf"' })
  assert.throws(() => views.render('csrf.html', {}, {}), { message: 'csrf.html:2: unknown name "UCsrfToHtml"' })
  const message = 'resource.html:3: unknown name "UResourceToHtml"'
  assert.throws(() => views.render('resource.html', {}, {}), { message })
})

test('renders correctly with more sets of data keys than it keeps functions for', () => {
  const keys = ['a', 'b', 'c', 'd', 'e', 'f']
  const { views } = makeViews({ 'v.html': keys.map((key) => `{{ typeof ${key} }}`).join(' ') })
  for (let round = 0; round < 2; round++) {
    for (let set = 0; set < 64; set++) {
      const data = Object.fromEntries(keys.filter((_, at) => (set >> at) & 1).map((key) => [key, 1]))
      const expected = keys.map((key) => (key in data ? 'number' : 'undefined')).join(' ')
      assert.equal(views.render('v.html', data, {}), expected)
    }
  }
})

test('does not leak names from one render to the next', () => {
  const { views } = makeViews({ 'v.html': '{{ a }}' })
  assert.equal(views.render('v.html', { a: 1 }, {}), '1')
  assert.throws(() => views.render('v.html', {}, {}), { message: 'v.html:1: unknown name "a"' })
  assert.equal(views.render('v.html', {}, { a: 2 }), '2')
})
