import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CoreContext } from '../../lib/http/context.ts'
import { createContextClass } from '../../lib/http/features.ts'
import { createClientAddress } from '../../lib/http/client-address.ts'
import { createHostGuard } from '../../lib/http/host.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { exchange, parseAnswer } from '../support/raw.ts'
import { serve } from '../support/serve.ts'

const services = { bodyLimitBytes: 1, clientAddress: createClientAddress([]) }
const { ContextClass } = createContextClass([], services)

/** The parts of a context that the guard reads. */
function withHosts(hosts: readonly string[], httpVersion = '1.1'): CoreContext {
  const headers = hosts.length === 0 ? {} : { host: hosts[0] }
  const rawHeaders = hosts.flatMap((host) => ['HOST', host])
  const request = { method: 'GET', url: '/', httpVersion, headers, rawHeaders, socket: { remoteAddress: '127.0.0.1' } }
  return new ContextClass(request as unknown as IncomingMessage, {} as ServerResponse)
}

describe('createHostGuard', () => {
  it('accepts one well-formed field, repeatedly', () => {
    const guard = createHostGuard([])
    for (const host of ['a', 'a', 'b:80', '[::1]:8080', 'a']) guard(withHosts([host]))
    guard(withHosts([], '1.0'))
    guard(withHosts(['a']))
  })

  it('refuses a field that is missing, duplicated or malformed', () => {
    const guard = createHostGuard([])
    guard(withHosts(['a']))
    const rows: [CoreContext, RegExp][] = [
      [withHosts([]), /no Host field/],
      [withHosts(['a', 'a']), /more than one/],
      [withHosts(['']), /malformed/],
      [withHosts(['a b']), /malformed/],
      [withHosts(['a/b']), /malformed/],
      [withHosts(['a:99999']), /malformed/],
    ]
    for (const [ctx, message] of rows) assert.throws(() => guard(ctx), { status: 400, code: 'bad_host', message })
  })

  it('accepts only listed hosts if there is a list', () => {
    const guard = createHostGuard(['example.org', '*.example.net'])
    for (const host of ['example.org', 'EXAMPLE.org:8080', 'a.example.net']) guard(withHosts([host]))
    for (const host of ['other', 'example.net', 'example.org.evil']) {
      assert.throws(() => guard(withHosts([host])), { code: 'bad_host' }, host)
    }
    assert.throws(() => guard(withHosts([], '1.0')), { code: 'bad_host' })
  })
})

describe('server.allowed_hosts', () => {
  const actions = { '/': '(ctx) => ctx.host' }
  const ask = async (port: number, fields: string): Promise<number> =>
    parseAnswer(await exchange(port, `GET / HTTP/1.1\r\n${fields}Connection: close\r\n\r\n`)).status

  it('refuses other hosts with 400', async (t) => {
    const { port } = await serve(t, actions, { 'server.allowed_hosts': ['example.org'] })
    assert.equal(await ask(port, 'Host: example.org\r\n'), 200)
    assert.equal(await ask(port, 'Host: other\r\n'), 400)
    assert.equal(await ask(port, 'Host: example.org\r\nHost: example.org\r\n'), 400)
    assert.equal(await ask(port, ''), 400)
    assert.equal(await ask(port, 'Host: other\r\nX-Forwarded-Host: example.org\r\n'), 400)
  })

  it('lets health checks through with any host, since load balancers send their address, and nothing else', async (t) => {
    const { port } = await serve(t, { ...actions, '/svc-ready/x': '(ctx) => ctx.host' }, { 'server.allowed_hosts': ['example.org'] })
    const of = async (target: string, fields: string, version = '1.1'): Promise<number> => {
      const bytes = `GET ${target} HTTP/${version}\r\n${fields}Connection: close\r\n\r\n`
      return parseAnswer(await exchange(port, bytes)).status
    }
    for (const target of ['/svc-ready', '/svc-ping', '/svc-ready/', '/svc-ready?a=b']) {
      assert.equal(await of(target, 'Host: 10.0.0.7:8080\r\n'), 200, target)
    }
    assert.equal(await of('/svc-ready', '', '1.0'), 200)
    for (const target of ['/', '/svc-ready/x', '//svc-ready', '/?/svc-ready']) {
      assert.equal(await of(target, 'Host: 10.0.0.7:8080\r\n'), 400, target)
    }
    for (const fields of ['', 'Host: a b\r\n', 'Host: a\r\nHost: a\r\n']) assert.equal(await of('/svc-ready', fields), 400, fields)
  })

  it('applies the list to the host of an absolute target and of a trusted proxy', async (t) => {
    const config = { 'server.allowed_hosts': ['example.org'], 'server.trusted_proxies': ['127.0.0.1'] }
    const { port } = await serve(t, actions, config)
    assert.equal(await ask(port, 'Host: inner\r\nX-Forwarded-Host: example.org\r\n'), 200)
    assert.equal(await ask(port, 'Host: example.org\r\nX-Forwarded-Host: evil\r\n'), 400)
    const absolute = (host: string): string => `GET http://${host}/ HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n`
    assert.equal(parseAnswer(await exchange(port, absolute('example.org'))).status, 200)
    assert.equal(parseAnswer(await exchange(port, absolute('evil'))).status, 400)
  })
})
