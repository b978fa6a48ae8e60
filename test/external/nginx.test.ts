import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { connect } from 'node:tls'
import { applicationFolder } from '../support/application-folder.ts'
import { startClient } from '../support/keep-alive-client.ts'
import { startNginx, type Proxy } from '../support/proxies.ts'
import { serviceManager, type ServiceManager } from '../support/service-manager.ts'
import { until } from '../support/until.ts'
import { waitingApplication } from '../support/waiting-application.ts'
import { handshakeText } from '../support/websocket.ts'
import { clientFrame } from '../websocket/frames.ts'
import { leavesTokensUncompressed, tokenPage } from './in-front.ts'

const files = {
  ...waitingApplication,
  ...tokenPage,
  'routes/id.json': [{ name: 'id', url: '/id', action: 'id.mjs' }],
  'id.mjs': 'export default ({ id }) => id',
  'routes/public/style.css': 'body { color: green }',
}

/** nginx (Debian's package `nginx-light`) with the site of docs/deploy in front of a server, both on ports of their own. */
async function startSite(t: TestContext): Promise<{ url: string; port: number; proxy: Proxy; service: ServiceManager }> {
  const cwd = applicationFolder(files, { 'server.trusted_proxies': ['127.0.0.1'] })
  const service = await serviceManager(t, { cwd })
  await service.start()
  const proxy = await startNginx(t, 'svc.nginx', [], (site) =>
    site
      .replace('server 127.0.0.1:8080;', `server 127.0.0.1:${service.port};`)
      .replace('/srv/svc/public', join(cwd, 'routes/public')),
  )
  const { url, port, check } = proxy
  await until(async () => {
    check()
    return (await ask(`${url}/`).catch(() => undefined))?.body === 'home'
  })
  return { url, port, proxy, service }
}

async function ask(url: string): Promise<{ status: number; body: string }> {
  const sent = get(url, { agent: false, rejectUnauthorized: false })
  const [response] = await once(sent, 'response')
  return { status: response.statusCode, body: await text(response) }
}

/** Sends on a TLS connection of its own and gathers what comes. */
async function converse(t: TestContext, port: number, bytes: string) {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  t.after(() => socket.destroy())
  await once(socket, 'secureConnect')
  let received = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (received += piece))
  socket.write(bytes)
  return { received: () => received, write: (more: Uint8Array) => void socket.write(more) }
}

const line = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: www.example.org\r\n\r\n`

describe('the nginx site', () => {
  it('passes on who asks, serves static files, and lets polls, streams and WebSockets through', async (t) => {
    const { url, port, proxy } = await startSite(t)
    const who = await ask(`${url}/who`)
    assert.deepEqual(JSON.parse(who.body), { ip: '127.0.0.1', secure: true, host: `127.0.0.1:${port}`, id: 32 })
    assert.equal((await ask(`${url}/style.css`)).body, 'body { color: green }')
    assert.equal((await ask(`${url}/svc-ping`)).status, 200)
    await leavesTokensUncompressed(proxy)
    const poll = await converse(t, port, line('/poll'))
    const stream = await converse(t, port, line('/events'))
    const webSocket = await converse(t, port, handshakeText('/socket'))
    await until(() => stream.received().includes('text/event-stream') && webSocket.received().includes(' 101 '))
    assert.match((await ask(`${url}/say`)).body, /^\d+$/)
    webSocket.write(clientFrame({ opcode: 1, payload: 'hello' }))
    await until(() => poll.received().includes('"news"'))
    await until(() => stream.received().includes('data: "news"'))
    await until(() => webSocket.received().includes('HELLO'))
  })

  it('logs the request id that the server has', async (t) => {
    const { url, proxy } = await startSite(t)
    const { body: id } = await ask(`${url}/id`)
    const log = (): string => readFileSync(join(proxy.folder, 'svc.log'), 'utf8')
    await until(() => log().includes('/id'))
    assert.match(log(), new RegExp(`"GET /id HTTP/1\\.1" 200 32 .* ${id} [\\d.]+\n`))
  })

  it('answers every request while the server behind it is started anew', async (t) => {
    const { url, service } = await startSite(t)
    const client = startClient({ url: `${url}/`, connections: 20 })
    for (let count = 0; count < 3; count += 1) {
      const before = client.tally.answered
      await until(() => client.tally.answered >= before + 500)
      await service.restart()
    }
    const before = client.tally.answered
    await until(() => client.tally.answered >= before + 500)
    assert.deepEqual((await client.stop()).failed, [])
  })
})
