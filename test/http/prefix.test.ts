// The prefix: its grammar, which field of a proxy counts, and what is taken off a path.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkPrefix, cookiePath, createPrefixes, pathBelow } from '../../lib/http/prefix.ts'

const long = (length: number): string => `/${'a'.repeat(length - 1)}`
const wrong = [
  'app', '/', '/app/', '//evil.example', '/app//x', '/\\evil.example', '\\app', '/.', '/..', '/app/..', '/../app',
  '/app/./x', '/%61pp', '/a b', '/a?b', '/a#b', '/a;b', '/a"b', '/<b>', '/é', '/a\r\nX: y', 'https://evil.example',
  '/a:b@evil.example', long(257),
]
const right = ['/app', '/a/b/c', '/A-z_0.9~', '/...', '/.app', '/app..', '/svc', long(256)]

describe('server.prefix', () => {
  for (const text of ['', ...right]) it(`may be ${JSON.stringify(text.slice(0, 30))}`, () => assert.equal(checkPrefix(text), undefined))
  for (const text of wrong) {
    it(`must not be ${JSON.stringify(text.slice(0, 30))}`, () => assert.match(checkPrefix(text) ?? '', /^must be a path such as \/app/))
  }
})

const warned = (line: string): void => assert.fail(line)

describe('X-Forwarded-Prefix', () => {
  const warnings: string[] = []
  const prefixes = createPrefixes('/own', (peer) => peer === '10.0.0.1', (line) => void warnings.push(line))
  const of = (value: string, peer = '10.0.0.1'): string | undefined => prefixes?.of(value, peer)

  it('of a trusted proxy replaces the own one', () => right.forEach((text) => assert.equal(of(text), text)))
  it('of anybody else is ignored', () => assert.equal(of('/app', '10.0.0.2'), '/own'))
  it('is ignored when it is wrong', () => wrong.forEach((text) => assert.equal(of(text), '/own', text)))
  it('is ignored when it came more than once', () => {
    for (const text of ['/a,/b', '/a, /a', ',/a', '/a,', '/a,//evil.example']) assert.equal(of(text), '/own', text)
  })
  it('that is ignored is in a warning, of which there is one a minute', () => {
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] ?? '', /^X-Forwarded-Prefix from 10\.0\.0\.1 has no effect: it must be a path such as \/app.*: it is "app"$/)
  })
  it('is ignored without trusted proxies', () => assert.equal(createPrefixes('/own', undefined, warned)?.of('/app', '10.0.0.1'), '/own'))
  it('needs nothing where nobody can send it', () => assert.equal(createPrefixes('', undefined, warned), undefined))
})

it('is the path of a cookie whose name allows it', () => {
  const rows = [['', 'SVCSID', '/'], ['/app', 'SVCSID', '/app'], ['/app', '__Host-id', '/'], ['/app', '__host-id', '/'], ['/app', '__Secure-id', '/app']] as const
  for (const [prefix, name, path] of rows) assert.equal(cookiePath(prefix, name), path, `${prefix} ${name}`)
})

describe('a path', () => {
  for (const [prefix, path, below] of [
    ['', '/x', '/x'],
    ['/app', '/app', '/'],
    ['/app', '/app/', '/'],
    ['/app', '/app/x/y', '/x/y'],
    ['/app', '/app/app/x', '/app/x'],
    ['/app', '/app//evil.example', '//evil.example'],
    ['/app', '/apple', '/apple'],
    ['/app', '/APP/x', '/APP/x'],
    ['/app', '/%61pp/x', '/%61pp/x'],
    ['/app', '/app%2Fx', '/app%2Fx'],
    ['/app', '/x/app/y', '/x/app/y'],
    ['/app', '*', '*'],
  ] as const) {
    it(`${path} below "${prefix}" is ${below}`, () => assert.equal(pathBelow(prefix, path), below))
  }
})
