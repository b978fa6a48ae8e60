import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkHandshake, chooseProtocol } from '../../lib/websocket/handshake.ts'
import { sampleKey } from './peer.ts'

const fields: Readonly<Record<string, string>> = {
  host: 'example.org',
  upgrade: 'websocket',
  connection: 'Upgrade',
  'sec-websocket-version': '13',
  'sec-websocket-key': sampleKey,
}

/** A valid handshake with these changes; `undefined` removes a field. */
function handshake(changes: Readonly<Record<string, string | undefined>>): Parameters<typeof checkHandshake>[0] {
  const { method = 'GET', httpVersion = '1.1', ...headers } = { ...fields, ...changes }
  return { method, httpVersion, header: (name) => headers[name as keyof typeof headers] }
}

test('answers the sample of RFC 6455', () => {
  assert.equal(checkHandshake(handshake({})), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
})

for (const changes of [
  {},
  { upgrade: 'WebSocket', connection: 'UPGRADE' },
  { connection: 'keep-alive, Upgrade' },
  { upgrade: 'h2c , websocket' },
  { 'content-length': '0' },
  { 'sec-websocket-extensions': 'permessage-deflate', 'sec-websocket-protocol': 'chat', origin: 'null' },
]) {
  test(`accepts a handshake with ${JSON.stringify(changes)}`, () => {
    assert.deepEqual(checkHandshake(handshake(changes)), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
  })
}

for (const [changes, message] of [
  [{ method: 'POST' }, /method must be GET: it is POST/],
  [{ method: 'get' }, /method must be GET/],
  [{ httpVersion: '1.0' }, /version must be 1\.1: it is 1\.0/],
  [{ host: undefined }, /no Host/],
  [{ host: '' }, /no Host/],
  [{ upgrade: undefined }, /Upgrade must name/],
  [{ upgrade: 'h2c' }, /Upgrade must name/],
  [{ upgrade: 'websocket/13' }, /Upgrade must name/],
  [{ connection: undefined }, /Connection must name/],
  [{ connection: 'close' }, /Connection must name/],
  [{ 'content-length': '5' }, /body/],
  [{ 'transfer-encoding': 'chunked' }, /body/],
  [{ 'sec-websocket-key': undefined }, /16 bytes/],
  [{ 'sec-websocket-key': '' }, /16 bytes/],
  [{ 'sec-websocket-key': 'AAAA' }, /16 bytes/],
  [{ 'sec-websocket-key': `${sampleKey}, ${sampleKey}` }, /16 bytes/],
  [{ 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZTE=' }, /16 bytes/],
  [{ 'sec-websocket-key': 'dGhlIHNhbXBsZS!ub25jZQ==' }, /16 bytes/],
  [{ 'sec-websocket-key': ` ${sampleKey}` }, /16 bytes/],
] as const) {
  test(`refuses a handshake with ${JSON.stringify(changes)} with 400`, () => {
    assert.throws(() => checkHandshake(handshake(changes)), { status: 400, code: 'bad_handshake', message })
  })
}

for (const version of [undefined, '', '8', '14', '13, 13']) {
  test(`refuses version ${version} with 426 and names the supported one`, () => {
    assert.throws(() => checkHandshake(handshake({ 'sec-websocket-version': version })), {
      status: 426,
      code: 'upgrade_required',
      headers: { 'Sec-WebSocket-Version': '13', Upgrade: 'websocket' },
    })
  })
}

for (const [offered, protocols, chosen] of [
  ['chat', ['chat'], 'chat'],
  ['superchat, chat', ['chat', 'superchat'], 'chat'],
  ['chat,superchat', ['superchat', 'chat'], 'superchat'],
  [' a ,\tb ', ['b'], 'b'],
  [',, a', ['a'], 'a'],
  ['chat', ['Chat'], undefined],
  ['chatter', ['chat'], undefined],
  ['a chat', ['chat'], undefined],
  ['', ['chat'], undefined],
  ['chat', [], undefined],
  ['chat', undefined, undefined],
  [undefined, ['chat'], undefined],
] as const) {
  test(`chooses ${chosen ?? 'no protocol'} of ${JSON.stringify(protocols)} for ${JSON.stringify(offered)}`, () => {
    assert.equal(chooseProtocol(offered, protocols), chosen)
  })
}
