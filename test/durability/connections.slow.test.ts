import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

interface Status {
  readonly connections: { readonly active: number; readonly refused: number }
}

test('10,000 connections of one address over its limit: another one is served as before', async (t) => {
  const folder = temporaryFolder()
  const limit = 50
  const attempts = 10_000
  writeFiles(folder, {
    'svc.json': {
      app: { env: 'dev' },
      app_key: 'test',
      // Those that are held send nothing: the time-out must not free their places, however long the attack takes.
      server: { port: 0, max_connections_per_ip: limit, header_timeout_s: 600, request_timeout_s: 600 },
    },
    'routes/hello.json': [{ name: 'hello', url: '/hello', action: 'hello.mjs' }],
    'hello.mjs': 'export default () => ({ ok: true })\n',
  })
  const server = launch(t, ['start'], { cwd: folder })
  const url = await server.listening()
  const port = Number(new URL(url).port)
  const status = async (): Promise<Status> => (await request(`${url}/svc-status`)).json() as Status

  const from = { port, host: '127.0.0.1', localAddress: '127.0.0.2' }
  const held = Array.from({ length: limit }, () => connect(from).on('error', () => {}))
  t.after(() => held.forEach((socket) => socket.destroy()))
  await until(async () => (await status()).connections.active > limit)
  const attack = async (): Promise<void> => {
    for (let count = 0; count < (attempts - limit) / 10; count += 1) {
      await once(connect(from).on('error', () => {}).resume(), 'close')
    }
  }
  const attacks = Promise.all(Array.from({ length: 10 }, attack))
  let under = true
  void attacks.finally(() => (under = false))
  let served = 0
  while (under) {
    assert.equal((await request(`${url}/hello`)).status, 200)
    served += 1
  }
  await attacks
  await until(async () => (await status()).connections.active === limit + 1) // The server may yet learn of an end.
  assert.equal((await status()).connections.refused, attempts - limit)
  assert.ok(served > 100, `${served} requests were served meanwhile`)
  assert.match(server.stdout(), /refused a connection from 127\.0\.0\.2: it already has 50 open \(and \d+ more/)
})
