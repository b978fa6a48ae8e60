import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stackLines } from '../../lib/log/stack.ts'

test('writes an error with its frames, each on a line that begins with four spaces', () => {
  const [head, ...frames] = stackLines(new TypeError('wrong'))
  assert.equal(head, '    TypeError: wrong')
  assert.ok(frames.length > 0)
  for (const frame of frames) assert.match(frame, /^    at /)
})

test('follows the causes and the errors of an AggregateError', () => {
  const cause = new AggregateError([new Error('first'), 'second'], 'both')
  const heads = stackLines(new Error('outer', { cause })).filter((line) => !line.startsWith('    at '))
  assert.deepEqual(heads, [
    '    Error: outer',
    '    caused by: AggregateError: both',
    '    one of: Error: first',
    "    one of: 'second'",
  ])
})

test('ends at an error that is its own cause', () => {
  const error = new Error('round')
  error.cause = new Error('inner', { cause: error })
  assert.equal(stackLines(error).filter((line) => line.includes('Error: ')).length, 2)
})

test('shows 16 errors of a long chain', () => {
  let error = new Error('0')
  for (let depth = 1; depth < 100; depth += 1) error = new Error(String(depth), { cause: error })
  assert.equal(stackLines(error).filter((line) => line.includes('Error: ')).length, 16)
})

test('no message can forge a line of the log', () => {
  const lines = stackLines(new Error('a\n[2026-11-20 11:27:00.123] [INFO ] [server] forged\r\n\u2028b\x85'))
  assert.deepEqual(lines.slice(0, 3), [
    '    Error: a',
    '    [2026-11-20 11:27:00.123] [INFO ] [server] forged\\x0d',
    '    \\u2028b\\x85',
  ])
})

const getter = { get: () => assert.fail('from a getter') }
const getters = { stack: getter, cause: getter }
const oddities: readonly (readonly [what: string, thrown: unknown, line: RegExp])[] = [
  ['text', 'text\nmore', /^    'text\\nmore'$/],
  ['empty text', '', /^    ''$/],
  ['null', null, /^    null$/],
  ['a number', 404, /^    404$/],
  ['an object', { code: 'E', list: [1] }, /^    \{ code: 'E', list: \[ 1 \] \}$/],
  ['an object without prototype', Object.create(null), /^    \[Object: null prototype\] \{\}$/],
  ['a symbol', Symbol('s'), /^    Symbol\(s\)$/],
  ['an error without a stack', Object.assign(new Error('bare'), { stack: undefined }), /bare/],
  ['an error whose stack is empty', Object.assign(new Error('bare'), { stack: ' \n' }), /./],
  ['an error whose getters throw', Object.defineProperties(new Error('evil'), getters), /^    /],
  ['a proxy that throws', new Proxy({}, { get: () => assert.fail('from a proxy') }), /^    /],
  ['a revoked proxy', revokedProxy(), /^    /],
]

for (const [what, thrown, line] of oddities) {
  test(`shows ${what} that was thrown`, () => {
    const lines = stackLines(thrown)
    assert.ok(lines.length > 0)
    assert.match(lines[0] ?? '', line)
    for (const each of lines) assert.match(each, /^    \S/)
  })
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
