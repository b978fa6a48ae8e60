import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createSetupToken } from '../../lib/access/setup-token.ts'
import { request } from '../support/request.ts'
import { makePort, serve } from './support.ts'

/** Whether a request with these header fields needs the token. The client is 127.0.0.1. */
async function isRequired(t: TestContext, config: object, headers: Record<string, string>): Promise<boolean> {
  const held = makePort(config as Record<string, unknown>)
  const token = createSetupToken(held.port)
  const url = await serve(t, held, [{ method: 'GET', url: '/', action: (ctx) => ({ required: token.requiredFor(ctx) }) }])
  const { required } = (await request(url, { headers })).json() as { required: boolean }
  assert.equal(held.lines.length, required ? 1 : 0, 'it is logged when it is required')
  return required
}

const trusting = { 'server.trusted_proxies': ['127.0.0.1', '10.0.0.0/8'] }
const rows: [what: string, config: object, headers: Record<string, string>, required: boolean][] = [
  ['a loopback client', {}, {}, false],
  ['a forwarding header without trusted proxies', {}, { 'x-forwarded-for': '127.0.0.1' }, true],
  ['Forwarded', {}, { forwarded: 'for=192.0.2.1' }, true],
  ['X-Real-IP', {}, { 'x-real-ip': '192.0.2.1' }, true],
  ['X-Forwarded-Proto', {}, { 'x-forwarded-proto': 'https' }, true],
  ['Via', {}, { via: '1.1 proxy' }, true],
  ['a public client through a trusted proxy', trusting, { 'x-forwarded-for': '192.0.2.1' }, true],
  ['a private client through a trusted proxy', trusting, { 'x-forwarded-for': '192.168.1.5' }, true],
  ['a client of this machine through a trusted proxy', trusting, { 'x-forwarded-for': '127.0.0.1' }, true],
  ['a client with a private address, through a trusted proxy', trusting, { 'x-forwarded-for': '10.0.0.1, 192.0.2.1' }, true],
  ['a trusted proxy that sends no client address', trusting, { forwarded: 'for=192.0.2.1' }, true],
  ['a trusted proxy itself', trusting, {}, false],
  ['another name for this machine', {}, { host: 'evil.example' }, true],
  ['an address of this machine that is not loopback', {}, { host: '192.168.1.5:8080' }, true],
  ['localhost', {}, { host: 'localhost:8080' }, false],
  ['a name below localhost', {}, { host: 'app.localhost' }, false],
  ['a loopback address', {}, { host: '[::1]:8080' }, false],
  ['on: a loopback client', { 'admin.setup_token': 'on' }, {}, true],
  ['off: a public client', { ...trusting, 'admin.setup_token': 'off' }, { 'x-forwarded-for': '192.0.2.1' }, false],
]

for (const [what, config, headers, required] of rows) {
  test(`${required ? 'requires' : 'does not require'} the token: ${what}`, async (t) => {
    assert.equal(await isRequired(t, config, headers), required)
  })
}

test('is 128 bits, is logged once, as a warning, and is the only text that matches', () => {
  const { port, lines } = makePort()
  const token = createSetupToken(port)
  token.announce()
  token.announce()
  assert.equal(lines.length, 1)
  const written = /^WARN .*requires this token: ([0-9a-f]{32})$/.exec(lines[0] ?? '')?.[1] ?? ''
  assert.equal(token.matches(written), true)
  assert.equal(createSetupToken(makePort().port).matches(written), false)
  for (const wrong of ['', written.slice(1), `${written}0`, written.toUpperCase() + '-']) assert.equal(token.matches(wrong), false)
})

test('is announced only if a setup may require it', () => {
  const quiet: [config: object, user: string][] = [
    [{ 'admin.setup_token': 'off' }, ''],
    [{ 'admin.enabled': false }, ''],
    [{ 'app.env': 'dev' }, ''],
    [{}, 'ann'],
  ]
  for (const [config, user] of quiet) {
    const held = makePort(config as Record<string, unknown>)
    held.credentials = { user, password: user, secret: '' }
    createSetupToken(held.port).announce()
    assert.deepEqual(held.lines, [], JSON.stringify(config))
  }
  const always = makePort({ 'admin.setup_token': 'on' })
  createSetupToken(always.port).announce()
  assert.match(always.lines[0] ?? '', /a setup requires this token/)
})
