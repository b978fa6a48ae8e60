import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:https'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { createApp } from '../support/app.ts'
import { ConfigError } from '../../lib/config/load.ts'
import { Listener, type ListenerOptions } from '../../lib/core/listener.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { RequestServer } from '../../lib/core/server.ts'
import { makeCertificate } from '../support/certificate.ts'
import { tenSeconds } from '../support/deadlines.ts'
import { parseAnswer } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { ask, config, connectTls, makeFolder, startSecure } from './listener-support.ts'

const nameOf = (socket: TLSSocket): unknown => socket.getPeerCertificate().subject.CN

describe('HTTPS', () => {
  it('serves, with files relative to the folder of the configuration', async (t) => {
    const { url, port } = await startSecure(t)
    assert.equal(url, `https://127.0.0.1:${port}`)
    const answer = parseAnswer(await ask(await connectTls(t, port)))
    assert.deepEqual([answer.status, answer.body], [200, '{"secure":true}'])
  })

  it('uses a renewed certificate for new connections and keeps open ones', async (t) => {
    const { app, port, use } = await startSecure(t)
    const old = await connectTls(t, port)
    assert.equal(nameOf(old), 'first')
    use('second')
    await app.control.apply({ type: 'certificates.reload' })
    assert.equal(parseAnswer(await ask(old)).status, 200)
    const renewed = await connectTls(t, port)
    assert.equal(nameOf(renewed), 'second')
    assert.equal(parseAnswer(await ask(renewed)).status, 200)
  })

  it('refuses a mismatched, invalid or missing pair, and keeps the old one', async (t) => {
    const { app, port, folder } = await startSecure(t)
    const other = makeCertificate(folder, 'other')
    const broken: readonly [() => void, RegExp][] = [
      [
        () => copyFileSync(other.key, join(folder, 'tls/key.pem')),
        /server\.tls\.cert "tls\/cert\.pem" cannot be used with server\.tls\.key "tls\/key\.pem": .*mismatch/,
      ],
      [() => writeFileSync(join(folder, 'tls/cert.pem'), 'none'), /server\.tls\.cert "tls\/cert\.pem" cannot be used/],
      [() => copyFileSync('/dev/null', join(folder, 'tls/key.pem')), /cannot be used/],
    ]
    for (const [spoil, problem] of broken) {
      spoil()
      await assert.rejects(app.control.apply({ type: 'certificates.reload' }), problem)
      assert.equal(nameOf(await connectTls(t, port)), 'first')
    }
  })

  it('serves a client that resumes its session after a renewal', async (t) => {
    const { app, port, use } = await startSecure(t)
    const agent = new Agent({ maxCachedSessions: 10, keepAlive: false, rejectUnauthorized: false })
    t.after(() => agent.destroy())
    const status = (): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const sent = get({ port, host: '127.0.0.1', agent }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode))
        })
        sent.on('error', reject)
      })
    assert.equal(await status(), 200)
    use('second')
    await app.control.apply({ type: 'certificates.reload' })
    assert.equal(await status(), 200)
    assert.equal(await status(), 200)
  })

  it('survives clients that do not speak TLS', async (t) => {
    const { port } = await startSecure(t)
    for (const bytes of ['GET / HTTP/1.1\r\nHost: h\r\n\r\n', '\0\0\0\0', '\x16\x03\x01\x00\x05abcde']) {
      const socket = connectTcp(port, '127.0.0.1')
      socket.on('error', () => {})
      socket.end(bytes, 'latin1')
      socket.resume()
      if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve))
    }
    assert.equal(parseAnswer(await ask(await connectTls(t, port))).status, 200)
  })
})

describe('an invalid certificate', () => {
  const wrong: readonly [title: string, keys: Readonly<Record<string, string>>, problem: RegExp][] = [
    ['a certificate without a key', { 'server.tls.key': '' }, /server\.tls\.cert is ".*" and server\.tls\.key is empty: set both, or none of them/],
    ['a key without a certificate', { 'server.tls.cert': '' }, /server\.tls\.key is ".*" and server\.tls\.cert is empty/],
    ['a missing certificate', { 'server.tls.cert': 'none.pem' }, /server\.tls\.cert cannot be read: ENOENT/],
    ['a missing key', { 'server.tls.key': 'none.pem' }, /server\.tls\.key cannot be read: ENOENT.*none\.pem/],
    ['a key that is a folder', { 'server.tls.key': 'tls' }, /server\.tls\.key cannot be read: EISDIR/],
    ['an invalid certificate', { 'server.tls.cert': 'a.mjs' }, /server\.tls\.cert "a\.mjs" cannot be used/],
    ['an invalid key', { 'server.tls.key': 'a.mjs' }, /cannot be used with server\.tls\.key "a\.mjs"/],
  ]
  for (const [title, keys, problem] of wrong) {
    it(`is a configuration error: ${title}`, () => {
      const { folder } = makeFolder()
      assert.throws(
        () => createApp({ folder, config: { ...config, ...keys } }),
        (error) => error instanceof ConfigError && problem.test(error.message),
      )
    })
  }
})

describe('a listener', () => {
  /** Makes a listener that answers all requests without a body. */
  function makeListener(options: Partial<ListenerOptions> = {}) {
    const answer = { handle: (_request: unknown, response: { end(): void }) => void response.end() }
    return new Listener(answer as unknown as RequestServer, {
      deadlines: tenSeconds,
      guardDescriptors: undefined,
      certificates: undefined,
      connections: { addressLimit: undefined, isTrusted: () => false, log: silentLogger, onRefused: () => {} },
      ...options,
    })
  }

  it('reports whether it listens, and rejects an unavailable address', async () => {
    const listener = makeListener()
    assert.equal(listener.listening, false)
    await assert.rejects(listener.listen('192.0.2.1', 0), { code: 'EADDRNOTAVAIL' })
    assert.equal(listener.listening, false)
    await listener.stopAccepting()
    const { port } = await listener.listen('127.0.0.1', 0)
    const rows = [
      ['127.0.0.1', port, 'EADDRINUSE', /^Cannot listen on 127\.0\.0\.1, port \d+: .*; another program has this port, .*set server\.port$/],
      ['192.0.2.1', 0, 'EADDRNOTAVAIL', /; no interface of this machine has this address: set server\.host$/],
      ['no-such-host.invalid', 0, /^(ENOTFOUND|EAI_AGAIN)$/, /^Cannot listen on no-such-host\.invalid, .*set server\.host to/],
    ] as const
    for (const [host, wanted, code, message] of rows) {
      const error = await makeListener().listen(host, wanted).then(() => assert.fail(host), (each: NodeJS.ErrnoException) => each)
      assert.match(error.message, message)
      assert.match(String(error.code), typeof code === 'string' ? new RegExp(`^${code}$`) : code)
    }
    assert.deepEqual([listener.listening, port > 0], [true, true])
    await listener.stopAccepting()
    assert.equal(listener.listening, false)
  })

  it('has no certificate to renew with plain HTTP', () => {
    assert.throws(() => makeListener().setCertificates({ cert: Buffer.of(), key: Buffer.of() }), TypeError)
  })

  it('cuts every connection', async (t) => {
    const listener = makeListener()
    const { port } = await listener.listen('127.0.0.1', 0)
    const sockets = Array.from({ length: 3 }, () => connectTcp(port, '127.0.0.1'))
    t.after(() => sockets.forEach((socket) => socket.destroy()))
    for (const socket of sockets) socket.on('error', () => {}).resume().write('GET / HT')
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)))
    const stopped = listener.stopAccepting()
    await until(async () => {
      await listener.closeAll()
      return sockets.every((socket) => socket.closed)
    })
    await Promise.all([stopped, ...closed])
  })
})
