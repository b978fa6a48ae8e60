import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { test } from 'node:test'
import { checkAddressEntry } from '../../lib/http/address-list.ts'
import { createClientAddress } from '../../lib/http/client-address.ts'
import { isLoopback, normalizeIp } from '../../lib/http/ip-address.ts'
import { Seeded } from '../support/seeded.ts'

const trusted = ['127.0.0.1', '10.0.0.0/8', '::1', 'fd00::/8', '0:0:0:0:0:0:0:2']

type Row = [what: string, socket: string, headers: Record<string, string>, ip: string, proto?: string, host?: string]

const rows: Row[] = [
  ['an untrusted peer', '192.0.2.1', { 'x-forwarded-for': '198.51.100.1', 'x-forwarded-proto': 'https' },
    '192.0.2.1'],
  ['no header', '127.0.0.1', {}, '127.0.0.1'],
  ['an empty header', '127.0.0.1', { 'x-forwarded-for': '' }, '127.0.0.1'],
  ['one proxy', '127.0.0.1', { 'x-forwarded-for': '198.51.100.1' }, '198.51.100.1'],
  ['a forged address on the left', '127.0.0.1', { 'x-forwarded-for': '1.1.1.1, 198.51.100.1' }, '198.51.100.1'],
  ['two proxies', '127.0.0.1', { 'x-forwarded-for': '198.51.100.1, 10.1.2.3' }, '198.51.100.1'],
  ['only proxies', '127.0.0.1', { 'x-forwarded-for': '10.0.0.9, 10.1.2.3' }, '10.0.0.9'],
  ['a mapped peer', '::ffff:127.0.0.1', { 'x-forwarded-for': '198.51.100.1' }, '198.51.100.1'],
  ['an untrusted mapped peer', '::ffff:192.0.2.1', {}, '192.0.2.1'],
  ['a peer with a zone', 'fe80::1%eth0', {}, 'fe80::1'],
  ['an IPv6 proxy written otherwise', '::2', { 'x-forwarded-for': '2001:DB8:0::1' }, '2001:db8::1'],
  ['a port', '127.0.0.1', { 'x-forwarded-for': '198.51.100.1:4711' }, '198.51.100.1'],
  ['brackets', '::1', { 'x-forwarded-for': '[2001:db8::1]' }, '2001:db8::1'],
  ['brackets and a port', '::1', { 'x-forwarded-for': '[2001:db8::1]:443' }, '2001:db8::1'],
  ['a zone', '::1', { 'x-forwarded-for': 'fe80::1%eth0' }, 'fe80::1'],
  ['a mapped entry', '::1', { 'x-forwarded-for': '::ffff:198.51.100.1' }, '198.51.100.1'],
  ['a mapped entry in hexadecimal', '::1', { 'x-forwarded-for': '::FFFF:c633:6401' }, '198.51.100.1'],
  ['a mapped proxy', '::1', { 'x-forwarded-for': '198.51.100.1, ::ffff:10.0.0.1' }, '198.51.100.1'],
  ['garbage on the right', '127.0.0.1', { 'x-forwarded-for': '198.51.100.1, unknown' }, '127.0.0.1'],
  ['garbage behind a proxy', '127.0.0.1', { 'x-forwarded-for': '198.51.100.1, unknown, 10.0.0.1' }, '10.0.0.1'],
  ['an empty element', '127.0.0.1', { 'x-forwarded-for': '198.51.100.1, , 10.0.0.1' }, '10.0.0.1'],
  ['empty brackets', '127.0.0.1', { 'x-forwarded-for': '[]' }, '127.0.0.1'],
  ['a port of six digits', '127.0.0.1', { 'x-forwarded-for': '198.51.100.1:123456' }, '127.0.0.1'],
  ['a scheme and a host', '::1', { 'x-forwarded-proto': 'HTTPS', 'x-forwarded-host': 'example.org:8443' }, '::1',
    'https', 'example.org:8443'],
  ['an invalid scheme', '::1', { 'x-forwarded-proto': 'javascript', 'x-forwarded-host': 'a b' }, '::1'],
  ['a forged scheme on the left', '::1', { 'x-forwarded-proto': 'https, http' }, '::1', 'http'],
  [
    'lists of two proxies, each with a forged element',
    '::1',
    { 'x-forwarded-for': '1.1.1.1, 198.51.100.1, 10.1.2.3', 'x-forwarded-proto': 'http, https, http',
      'x-forwarded-host': 'x.org, a.org, b.org' },
    '198.51.100.1',
    'https',
    'a.org',
  ],
  [
    'one scheme for two proxies',
    '::1',
    { 'x-forwarded-for': '198.51.100.1, 10.1.2.3', 'x-forwarded-proto': 'https' },
    '198.51.100.1',
    'https',
  ],
]

for (const [what, socket, headers, ip, proto, host] of rows) {
  test(`finds the client behind ${what}`, () => {
    const found = createClientAddress(trusted).resolve(socket, (name) => headers[name])
    assert.deepEqual(found, { ip, proto, host })
  })
}

test('reads no header without trusted proxies or from an untrusted peer', () => {
  const refuse = (): never => assert.fail('a header was read')
  assert.equal(createClientAddress([]).resolve('::ffff:127.0.0.1', refuse).ip, '127.0.0.1')
  assert.equal(createClientAddress(trusted).resolve('192.0.2.1', refuse).ip, '192.0.2.1')
})

test('returns the text of a socket that has no address', () => {
  assert.deepEqual(createClientAddress([]).resolve('', () => undefined), { ip: '', proto: undefined, host: undefined })
  assert.deepEqual(createClientAddress(trusted).resolve('', () => '1.1.1.1').ip, '')
})

const entries: [string, RegExp | undefined][] = [
  ['10.0.0.1', undefined],
  ['10.0.0.0/8', undefined],
  ['0.0.0.0/0', undefined],
  ['::/0', undefined],
  ['2001:db8::/32', undefined],
  ['::ffff:10.0.0.1', undefined],
  ['::ffff:10.0.0.0/104', /IPv4 block/],
  ['10.0.0.0/33', /0 to 32/],
  ['2001:db8::/129', /0 to 128/],
  ['10.0.0.0/', /0 to 32/],
  ['10.0.0.0/8/8', /0 to 32/],
  ['10.0.0.0/-1', /0 to 32/],
  ['10.0.0', /IP address/],
  ['010.0.0.1', /IP address/],
  ['fe80::1%eth0', /IP address/],
  ['', /IP address/],
  ['*', /IP address/],
]
for (const [entry, problem] of entries) {
  test(`${problem === undefined ? 'accepts' : 'refuses'} ${JSON.stringify(entry)} as a trusted proxy`, () => {
    const found = checkAddressEntry(entry)
    if (problem === undefined) {
      assert.equal(found, undefined)
      assert.ok(createClientAddress([entry]))
    } else {
      assert.match(found ?? '', problem)
    }
  })
}

test('trusts a single address that is written as mapped', () => {
  const address = createClientAddress(['::ffff:10.0.0.1'])
  assert.equal(address.resolve('10.0.0.1', () => '198.51.100.1').ip, '198.51.100.1')
  assert.equal(address.resolve('10.0.0.2', () => '198.51.100.1').ip, '10.0.0.2')
})

test('returns an address whatever the header contains', () => {
  const random = new Seeded(2)
  const parts = ['198.51.100.1', '10.0.0.1', '::1', '[', ']', ':', ',', ', ', '%', 'x', '/', '"', '\u00ff',
    '99999999999', '::ffff:']
  const address = createClientAddress(trusted)
  for (let round = 0; round < 5000; round += 1) {
    const text = Array.from({ length: random.integer(8) }, () => random.pick(parts)).join('')
    const { ip } = address.resolve('127.0.0.1', (name) => (name === 'x-forwarded-for' ? text : undefined))
    assert.equal(normalizeIp(ip), ip, text)
  }
})

test('finds the client of a real connection behind a proxy', async (t) => {
  const address = createClientAddress(['127.0.0.0/8'])
  const server = createServer((request, response) => {
    const found = address.resolve(request.socket.remoteAddress ?? '', (name) => request.headers[name]?.toString())
    response.end(JSON.stringify(found))
  })
  t.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const lines = ['GET / HTTP/1.1', 'Host: a', 'Connection: close', 'X-Forwarded-For: 1.1.1.1',
    'X-Forwarded-For: 2.2.2.2']
  socket.end(`${lines.join('\r\n')}\r\n\r\n`)
  let text = ''
  for await (const chunk of socket) text += chunk
  assert.match(text, /"ip":"2\.2\.2\.2"/)
})

for (const ip of ['127.0.0.1', '127.255.0.9', '::1']) {
  test(`recognizes ${ip} as this machine`, () => assert.equal(isLoopback(ip), true))
}
for (const ip of ['10.9.8.7', '192.168.1.1', '169.254.1.1', 'fd12::1', '2001:db8::1', '8.8.8.8', '', 'localhost']) {
  test(`recognizes ${JSON.stringify(ip)} as another machine`, () => assert.equal(isLoopback(ip), false))
}
