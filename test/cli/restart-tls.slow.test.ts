import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { applicationFolder } from '../support/application-folder.ts'
import { makeCertificate } from '../support/certificate.ts'
import { startClient } from '../support/keep-alive-client.ts'
import { launch } from '../support/launch.ts'
import { until } from '../support/until.ts'
import { waitingApplication } from '../support/waiting-application.ts'
import { handshakeText } from '../support/websocket.ts'
import { clientFrame } from '../websocket/frames.ts'

const tls = { 'server.tls.cert': 'tls/cert.pem', 'server.tls.key': 'tls/key.pem' }

/** Starts an HTTPS server in a separate process; `use` replaces the certificate with a new one for that name. */
async function startSecure(t: TestContext) {
  const folder = applicationFolder({ ...waitingApplication, 'tls/.keep': '' }, { ...tls, 'log.level': 'info' })
  const use = (name: string): void => {
    const made = makeCertificate(folder, name)
    copyFileSync(made.key, join(folder, 'tls/key.pem'))
    copyFileSync(made.cert, join(folder, 'tls/cert.pem'))
  }
  use('first')
  const server = launch(t, [], { cwd: folder })
  const url = await server.listening()
  const port = Number(new URL(url).port)
  const open = async (): Promise<TLSSocket> => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    await once(socket, 'secureConnect')
    return socket
  }
  const served = async (): Promise<unknown> => {
    const socket = await open()
    const { subject } = socket.getPeerCertificate()
    socket.destroy()
    return subject.CN
  }
  let reloads = 0
  /** Sends SIGHUP; resolves with the resulting log lines. */
  const reload = async (): Promise<string> => {
    const before = server.stdout().length
    reloads += 1
    server.child.kill('SIGHUP')
    await until(() => server.stdout().match(/routes reloaded/g)?.length === reloads)
    return server.stdout().slice(before)
  }
  return { url, folder, server, use, open, served, reload }
}

/** Sends on a connection and collects the response. */
function converse(socket: TLSSocket, text: string | Uint8Array): () => string {
  let received = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (received += piece))
  socket.write(text)
  return () => received
}

const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`

describe('a certificate that is renewed', () => {
  it('is applied on SIGHUP without a failed request, on open connections and on new ones', async (t) => {
    const { url, use, served, reload } = await startSecure(t)
    const kept = startClient({ url, connections: 10 })
    const fresh = startClient({ url, connections: 4, keepAlive: false })
    for (const name of ['second', 'third', 'fourth', 'fifth']) {
      const [ofKept, ofFresh] = [kept.tally.answered, fresh.tally.answered]
      await until(() => kept.tally.answered > ofKept + 200 && fresh.tally.answered > ofFresh + 50)
      use(name)
      assert.match(await reload(), /\[INFO \] \[server\] certificates reloaded\n/)
      assert.equal(await served(), name)
    }
    assert.deepEqual([(await kept.stop()).failed, (await fresh.stop()).failed], [[], []])
  })

  it('keeps the old one in use if it is invalid, with the reason, without a failed request', async (t) => {
    const { url, folder, server, use, served, reload } = await startSecure(t)
    const clients = [startClient({ url, connections: 5 }), startClient({ url, connections: 2, keepAlive: false })]
    const other = makeCertificate(folder, 'other')
    const spoil: readonly [() => void, RegExp][] = [
      [() => copyFileSync(other.key, join(folder, 'tls/key.pem')), /cannot be used with server\.tls\.key "tls\/key\.pem": .*mismatch/],
      [() => writeFileSync(join(folder, 'tls/cert.pem'), '-----BEGIN CERTIFICATE-----\nhalf'), /server\.tls\.cert "tls\/cert\.pem" cannot be used/],
    ]
    for (const [work, reason] of spoil) {
      work()
      const lines = await reload()
      const [error] = lines.split('\n').filter((line) => line.includes('[ERROR]'))
      assert.match(error ?? '', /\[ERROR\] \[server\] SIGHUP: Cannot load /)
      assert.match(error ?? '', reason)
      assert.equal(await served(), 'first')
    }
    use('right again')
    await reload()
    assert.equal(await served(), 'right again')
    for (const client of clients) assert.deepEqual((await client.stop()).failed, [])
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
  })

  it('does not disturb an open long poll, stream and WebSocket', async (t) => {
    const { use, open, reload } = await startSecure(t)
    const poll = converse(await open(), ask('/poll'))
    const stream = converse(await open(), ask('/events'))
    const webSocket = await open()
    const frames = converse(webSocket, handshakeText('/socket'))
    await until(() => stream().includes('text/event-stream') && frames().includes(' 101 '))
    use('second')
    await reload()
    const say = converse(await open(), ask('/say'))
    await until(() => say().includes(' 200 '))
    webSocket.write(clientFrame({ opcode: 1, payload: 'hello' }))
    await until(() => poll().includes('"news"') && stream().includes('data: "news"') && frames().includes('HELLO'))
  })
})
