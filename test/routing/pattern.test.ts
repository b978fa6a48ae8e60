import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildPath, maxSegments, parsePattern, PatternError } from '../../lib/routing/pattern.ts'
import type { Segment } from '../../lib/routing/pattern.ts'
import { Seeded } from '../support/seeded.ts'

const good: readonly (readonly [text: string, segments: string, names: string])[] = [
  ['/', '', ''],
  ['/a', 'a', ''],
  ['/a/', 'a', ''],
  ['/a/:id', 'a :id', 'id'],
  ['/:id/', ':id', 'id'],
  ['/*path', '*path', 'path'],
  ['/:a/b/:c/*d', ':a b :c *d', 'a c d'],
  ['/:_x9/:X', ':_x9 :X', '_x9 X'],
  ['/café', 'café', ''],
  ['/caf%C3%A9', 'café', ''],
  ['/a%20b/c d', 'a b|c d', ''],
  ['/items%3Abatch', 'items:batch', ''],
  ['/%2Aall', '*all', ''],
  ['/a%2Fb', 'a/b', ''],
  ['/100%25', '100%', ''],
  ['/why%3F', 'why?', ''],
  ['/.well-known/x', '.well-known|x', ''],
  ['/...', '...', ''],
  ['/@me;v=1,2', '@me;v=1,2', ''],
]

test('parses patterns', async (t) => {
  for (const [text, segments, names] of good) {
    await t.test(text, () => {
      const pattern = parsePattern(text)
      const shown = pattern.segments.map(show)
      assert.equal(shown.join(segments.includes('|') ? '|' : ' '), segments)
      assert.equal(pattern.names.join(' '), names)
      assert.equal(pattern.text, text)
    })
  }
})

const wrong: readonly (readonly [text: string, position: number, reason: RegExp])[] = [
  ['', 1, /begins with \//],
  ['a', 1, /begins with \//],
  [':id', 1, /begins with \//],
  ['//', 2, /empty/],
  ['/a//b', 4, /empty/],
  ['/a//', 4, /empty/],
  ['/:', 2, /name is missing: write :id/],
  ['/a/:/b', 4, /name is missing/],
  ['/*', 2, /name is missing: write \*path/],
  ['/:1a', 3, /does not begin with a digit: it is "1a"/],
  ['/:a-b', 3, /"a-b"/],
  ['/:a:b', 3, /"a:b"/],
  ['/:é', 3, /"é"/],
  ['/*a.b', 3, /"a.b"/],
  ['/:a/:a', 5, /the name a is used twice/],
  ['/:a/*a', 5, /twice/],
  ['/*a/b', 2, /last segment/],
  ['/*a/', 2, /last segment/],
  ['/v:major', 3, /only begins a segment: write %3A/],
  ['/a*', 3, /write %2A/],
  ['/a?b=1', 3, /no query/],
  ['/a#b', 3, /no fragment/],
  ['/a\nb', 3, /control character/],
  ['/a\u007f', 3, /control character/],
  ['/a\ud800', 3, /surrogate/],
  ['/a%00', 2, /encodes a control character/],
  ['/a%', 2, /wrong percent-encoding/],
  ['/a%2', 2, /wrong percent-encoding/],
  ['/a%zz', 2, /wrong percent-encoding/],
  ['/%ff', 2, /wrong percent-encoding/],
  ['/%C3', 2, /wrong percent-encoding/],
  ['/./a', 2, /\. or \.\./],
  ['/a/..', 4, /\. or \.\./],
  ['/%2e%2E/a', 2, /\. or \.\./],
]

test('refuses invalid patterns, with text, position and reason', async (t) => {
  for (const [text, position, reason] of wrong) {
    await t.test(JSON.stringify(text), () => {
      assert.throws(() => parsePattern(text), (error) => {
        assert.ok(error instanceof PatternError)
        const beginning = `bad pattern ${JSON.stringify(text)} at position ${position}: `
        assert.ok(error.message.startsWith(beginning), error.message)
        assert.match(error.message, reason)
        return true
      })
    })
  }
})

test('accepts exactly the maximum number of segments', () => {
  assert.equal(parsePattern('/a'.repeat(maxSegments)).segments.length, maxSegments)
  assert.throws(() => parsePattern('/a'.repeat(maxSegments + 1)), /at most 100 segments/)
  assert.throws(() => parsePattern('/a'.repeat(100_000)), /at most 100 segments/)
})

const built: readonly (readonly [pattern: string, params: Record<string, string | number>, path: string])[] = [
  ['/', {}, '/'],
  ['/a/', {}, '/a'],
  ['/a/:id', { id: 7 }, '/a/7'],
  ['/a/:id', { id: 'x y/z?#%' }, '/a/x%20y%2Fz%3F%23%25'],
  ['/a/:id', { id: 'é:@$&+,;=' }, '/a/%C3%A9:@$&+,;='],
  ['/café/x%2Fy', {}, '/caf%C3%A9/x%2Fy'],
  ['/f/*path', { path: 'a b/c' }, '/f/a%20b/c'],
  ['/f/*path', { path: '' }, '/f/'],
  ['/f/*path', { path: '/x/' }, '/f//x/'],
  ['/:constructor', { constructor: 'x' } as unknown as Record<string, string>, '/x'],
]

test('builds paths', () => {
  for (const [pattern, params, path] of built) assert.equal(buildPath(parsePattern(pattern), params), path, pattern)
  assert.equal(buildPath(parsePattern('/x')), '/x')
})

const unbuilt: readonly (readonly [pattern: string, params: Record<string, string>, reason: RegExp])[] = [
  ['/a/:id', {}, /\/a\/:id: parameter "id": it is missing/],
  ['/a/:id', { id: '' }, /"id": it is empty/],
  ['/a/:id', { id: '..' }, /"id": clients remove the segment \.\./],
  ['/a/*path', { path: 'a/../b' }, /"path": clients remove/],
  ['/a/*path', {}, /"path": it is missing/],
  ['/a/:id', { id: '1', page: '2' }, /"page": the pattern has no such parameter/],
  ['/a/:id', { id: '\ud800' }, /"id": it contains half a surrogate pair/],
  ['/:toString', {}, /"toString": it is missing/],
  ['/*all', { all: '/evil.example' }, /"all": it begins with an empty segment/],
  ['/*all', { all: '//x' }, /"all": it begins with an empty segment/],
]

test('refuses to build a path from invalid parameters, naming the parameter', () => {
  for (const [pattern, params, reason] of unbuilt) {
    const build = (): string => buildPath(parsePattern(pattern), params)
    assert.throws(build, (error) => error instanceof TypeError && reason.test(error.message), pattern)
  }
})

test('parses any text or refuses it with a PatternError', () => {
  const seeded = new Seeded(41)
  const alphabet = ['/', ':', '*', 'a', '%', '2', 'F', '.', '?', '\0', 'é', '\udc00']
  let parsed = 0
  for (let round = 0; round < 20_000; round += 1) {
    const characters = Array.from({ length: seeded.integer(9) }, () => seeded.pick(alphabet))
    const text = `/${characters.join('')}`
    try {
      const pattern = parsePattern(text)
      parsed += 1
      assert.equal(pattern.names.length, pattern.segments.filter((segment) => segment.kind !== 'literal').length)
    } catch (error) {
      assert.ok(error instanceof PatternError, `${JSON.stringify(text)}: ${String(error)}`)
    }
  }
  assert.ok(parsed > 1_000)
})

function show(segment: Segment): string {
  if (segment.kind === 'literal') return segment.text
  return `${segment.kind === 'rest' ? '*' : ':'}${segment.name}`
}
