// Stops that give idle TLS connections half a second.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { describe, it } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { parseAnswer, readAll } from '../support/raw.ts'
import { ask, connectTls, startSecure } from './listener-support.ts'

describe('HTTPS', () => {
  it('answers requests sent at the moment of the stop, and closes idle connections', async (t) => {
    const { app, port } = await startSecure(t)
    const connected = Array.from({ length: 4 }, () => connectTls(t, port))
    const [kept, used, unused, partial] = (await Promise.all(connected)) as [TLSSocket, TLSSocket, TLSSocket, TLSSocket]
    const silent = connectTcp(port, '127.0.0.1') // It never begins its handshake.
    const begun = connectTcp(port, '127.0.0.1') // It never finishes it.
    const idle = [used, unused, silent, begun, partial]
    t.after(() => idle.forEach((socket) => socket.destroy()))
    await Promise.all([once(silent, 'connect'), once(begun, 'connect'), ask(kept), ask(used)])
    begun.write('\x16\x03\x01\x02\x00\x01', 'latin1')
    partial.write('GET / HTTP/1.1\r\nHost:')
    const closed = idle.map((socket) => once(socket.resume(), 'close'))
    const before = performance.now()
    const stopped = app.stop()
    const text = readAll(kept)
    kept.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
    const { status, headers } = parseAnswer(await text)
    assert.deepEqual([status, headers['connection']], [200, 'close'])
    await Promise.all([stopped, ...closed])
    assert.ok(performance.now() - before < 10_000) // A third of the maximum duration of a stop.
  })

  it('answers a running request while the stop closes idle connections', async (t) => {
    const { app, port } = await startSecure(t)
    const [held, idle] = await Promise.all([connectTls(t, port), connectTls(t, port)])
    const text = readAll(held)
    held.write('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab')
    await ask(idle)
    const gone = once(idle, 'close')
    const stopped = app.stop()
    await gone
    held.write('cd')
    assert.equal(parseAnswer(await text).status, 200)
    await stopped
  })
})
