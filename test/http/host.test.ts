import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkAllowedHost, createHostCheck, hostName, isLoopbackHost, parseAuthority } from '../../lib/http/host.ts'
import { Seeded } from '../support/seeded.ts'

const names: [string, string | undefined][] = [
  ['example.org', 'example.org'],
  ['EXAMPLE.Org:8080', 'example.org'],
  ['example.org.', 'example.org'],
  ['example.org.:80', 'example.org'],
  ['example.org:', 'example.org'],
  ['my_host-1', 'my_host-1'],
  ['127.0.0.1:3000', '127.0.0.1'],
  ['[::1]', '::1'],
  ['[::1]:3000', '::1'],
  ['[2001:DB8:0:0::1]', '2001:db8::1'],
  ['[::ffff:127.0.0.1]', '127.0.0.1'],
  ['', undefined],
  ['.', undefined],
  [':80', undefined],
  ['a..b', undefined],
  ['.a', undefined],
  ['a:b', undefined],
  ['a:80:80', undefined],
  ['a:65535', 'a'],
  ['a:65536', undefined],
  ['a:123456', undefined],
  ['a b', undefined],
  ['a,b', undefined],
  ['user@a', undefined],
  ['a/b', undefined],
  ['a\\b', undefined],
  ['a?b', undefined],
  ['a#b', undefined],
  ['a%62', undefined],
  ['caf\u00e9', undefined],
  ['::1', undefined],
  ['[::1', undefined],
  ['[]', undefined],
  ['[a.b]', undefined],
  ['[127.0.0.1]', undefined],
  ['[fe80::1%eth0]', undefined],
  ['a\n', undefined],
  [`${'a'.repeat(63)}.`.repeat(3) + 'a'.repeat(61), `${'a'.repeat(63)}.`.repeat(3) + 'a'.repeat(61)],
  [`${'a'.repeat(63)}.`.repeat(3) + 'a'.repeat(62), undefined],
]
for (const [header, name] of names) {
  test(`parses the host ${JSON.stringify(header.slice(0, 40))}`, () => assert.equal(hostName(header), name))
}

test('returns the port separately', () => {
  assert.deepEqual(parseAuthority('[::1]:65535'), { name: '::1', port: 65_535 })
  assert.deepEqual(parseAuthority('a:'), { name: 'a', port: undefined })
})

const allowed = ['Example.org', 'admin.example.org:8443', '*.apps.example.org', '*.ports.example.org:81', '[::1]',
  'tls.example.org:443', '10.0.0.1']
const hosts: [string | undefined, boolean][] = [
  ['example.org', true],
  ['EXAMPLE.ORG.:99', true],
  ['www.example.org', false],
  ['example.org.evil.com', false],
  ['admin.example.org:8443', true],
  ['admin.example.org', false],
  ['admin.example.org:80', false],
  ['a.apps.example.org', true],
  ['a.apps.example.org:99', true],
  ['apps.example.org', false],
  ['a.b.apps.example.org', false],
  ['a.ports.example.org:81', true],
  ['a.ports.example.org', false],
  ['[::1]:99', true],
  ['[0:0::1]', true],
  ['tls.example.org', true],
  ['tls.example.org:443', true],
  ['tls.example.org:8443', false],
  ['10.0.0.1', true],
  ['10.0.0.2', false],
  ['localhost', false],
  ['*.apps.example.org', false],
  ['', false],
  ['a b', false],
  [undefined, false],
]
for (const [header, passes] of hosts) {
  test(`${passes ? 'serves' : 'does not serve'} ${JSON.stringify(header)}`, () => {
    assert.equal(createHostCheck(allowed)(header), passes)
  })
}

for (const entry of ['', '*', '*.', 'https://example.org', 'example.org/', '*.*.org', 'a.*.org', '*.10.0.0.1',
  '*.[::1]', '::1', 'a:x']) {
  test(`refuses ${JSON.stringify(entry)} as an allowed host`, () => {
    assert.match(checkAllowedHost(entry) ?? '', /^must be a host/)
  })
}

const loopback: [string | undefined, boolean][] = [
  ['localhost', true],
  ['LOCALHOST:8080', true],
  ['app.localhost', true],
  ['127.0.0.1', true],
  ['127.8.8.8:1', true],
  ['[::1]:8080', true],
  ['[::ffff:127.0.0.1]', true],
  ['localhost.evil.com', false],
  ['127.0.0.1.evil.com', false],
  ['127.1', false],
  ['10.0.0.1', false],
  ['[::2]', false],
  ['evil.com', false],
  ['', false],
  [undefined, false],
]
for (const [header, is] of loopback) {
  test(`${JSON.stringify(header)} ${is ? 'is' : 'is not'} this machine`, () =>
    assert.equal(isLoopbackHost(header), is))
}

test('parses any bytes as a host without throwing, and its own output again', () => {
  const random = new Seeded(3)
  const parts = ['a', 'B', '.', '-', ':', '8', '[', ']', '::1', '%', '@', '/', ' ', '\u00ff', '*', 'localhost']
  let wellFormed = 0
  for (let round = 0; round < 5000; round += 1) {
    const text = Array.from({ length: random.integer(6) }, () => random.pick(parts)).join('')
    const name = hostName(text)
    if (name === undefined) continue
    wellFormed += 1
    assert.equal(hostName(name.includes(':') ? `[${name}]` : name), name, text)
  }
  assert.ok(wellFormed > 100)
})
