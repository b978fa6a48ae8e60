import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { connect } from 'node:tls'
import type { Status } from '../../lib/panel/status.ts'
import { startSecure } from '../core/listener-support.ts'
import { until } from '../support/until.ts'

describe('a failed handshake', () => {
  it('is logged with the reason, and counted; a connection that only opens and closes is not', async (t) => {
    const { app, port, folder } = await startSecure(t, { 'app.env': 'dev' })
    const lines = (): string => readFileSync(join(folder, '.logs/svc.log'), 'utf8')
    const closed = connectTcp(port, '127.0.0.1', () => closed.end())
    await once(closed, 'close')
    const plain = connectTcp(port, '127.0.0.1', () => plain.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n'))
    plain.on('error', () => {})
    await once(plain, 'close')
    const old = connect({ port, host: '127.0.0.1', maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA' })
    await once(old, 'error')
    await until(() => /\[socket\] the TLS handshake of 127\.0\.0\.1 failed: no shared cipher\n/.test(lines()))
    assert.match(lines(), /\[INFO \] \[socket\] the TLS handshake of 127\.0\.0\.1 failed: it sent plain HTTP to the HTTPS port: use https/)
    const { connections } = (await (await app.request('/svc-status')).json()) as Status
    assert.equal(connections.tls_failed, 2)
  })
})
