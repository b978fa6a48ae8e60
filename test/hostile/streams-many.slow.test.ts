import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { it, type TestContext } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { requestText } from '../support/connection.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

/** 10,000, or what the limit of open files leaves, with room for the rest of this process. */
function clientCount(): number {
  const limit = Number(spawnSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).stdout)
  return Math.min(10_000, (limit || 1024) - 200)
}

/** A client that sends one request and keeps the first bytes of the response. */
class Client {
  readonly socket: Socket
  status = 0
  body = ''
  closed = false

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1' })
    this.socket.setEncoding('latin1').on('data', (text: string) => {
      this.status ||= Number(text.slice(9, 12))
      this.body += text.slice(text.indexOf('\r\n\r\n') + 4)
    })
    this.socket.on('error', () => {})
    this.socket.on('close', () => (this.closed = true))
  }
}

/** Opens connections, a few hundred at a time, so that none is lost in the queue of the listening socket. */
async function open(t: TestContext, port: number, count: number): Promise<Client[]> {
  const clients: Client[] = []
  while (clients.length < count) {
    const some = Array.from({ length: Math.min(250, count - clients.length) }, () => new Client(port))
    clients.push(...some)
    await Promise.all(some.map(({ socket }) => once(socket, 'connect')))
  }
  t.after(() => clients.forEach(({ socket }) => socket.destroy()))
  return clients
}

interface Status {
  readonly pool_rest: { readonly longpoll: number; readonly queue: number; readonly refused: number }
  readonly connections: { readonly active: number }
  readonly requests: { readonly active: number }
}

it('of 10,000 polls from one address those with a place wait, the rest get 503, and all is free afterwards', async (t) => {
  const count = clientCount()
  const [workers, places] = [Math.floor(count * 0.6), Math.floor(count * 0.2)]
  const refused = count - workers - places
  const folder = temporaryFolder()
  writeFiles(folder, {
    'svc.json': {
      app: { env: 'dev' },
      server: { port: 0 },
      access_log: { enabled: false },
      // A slow machine puts what comes at once into this queue first, where none is to be refused.
      pool_http: { queue_size: count },
      pool_rest: { workers_longpoll: workers, queue_size: places },
    },
    'routes/r.json': [
      { name: 'poll', url: '/poll', action: 'a.mjs@poll' },
      { name: 'publish', url: '/publish', action: 'a.mjs@publish' },
    ].map((route) => ({ ...route, method: 'GET', scope: '' })),
    'a.mjs':
      "export const poll = (ctx) => ctx.longPoll(ctx.channel('c'), { timeout_s: 600 })\n" +
      "export const publish = (ctx) => ctx.channel('c').publish('event')\n",
  })
  const server = launch(t, ['start', '--config', `${folder}/svc.json`], { cwd: folder })
  const url = await server.listening()
  const port = Number(new URL(url).port)
  const status = async () => {
    const { pool_rest, connections, requests } = (await request(`${url}/svc-status`)).json() as Status
    const { longpoll, queue, refused: turnedAway } = pool_rest
    return { longpoll, queue, refused: turnedAway, connections: connections.active, requests: requests.active }
  }
  const descriptors = (): number => {
    const path = `/proc/${server.child.pid}/fd`
    return existsSync(path) ? readdirSync(path).length : 0
  }
  const settled = async (expected: Awaited<ReturnType<typeof status>>): Promise<void> => {
    // Each question is a connection, which the next one may still see: one answer has to have it all.
    let last = await status()
    await until(async () => (last = await status()).connections === expected.connections)
    assert.deepEqual(last, expected)
  }
  await request(`${url}/publish`)
  await settled({ longpoll: 0, queue: 0, refused: 0, connections: 1, requests: 1 })
  const before = descriptors()

  const clients = await open(t, port, count)
  for (const { socket } of clients) socket.write(requestText('GET /poll'))
  await until(() => clients.filter((client) => client.status === 503).length === refused)
  await settled({ longpoll: workers, queue: places, refused, connections: count + 1, requests: workers + places + 1 })
  assert.equal(clients.filter((client) => client.status !== 0).length, refused)

  const half = Math.floor(count / 2)
  const [leaving, staying] = [clients.slice(0, half), clients.slice(half)]
  for (const [at, { socket }] of leaving.entries()) {
    if (at % 3 === 0) socket.resetAndDestroy()
    else if (at % 3 === 1) socket.destroy()
    else socket.end()
  }
  await until(async () => (await status()).connections === staying.length + 1)
  await request(`${url}/publish`)
  const answered = staying.filter((client) => client.status !== 503)
  await until(() => answered.every((client) => client.body.includes('"data":"event"')))
  assert.ok(answered.every((client) => client.status === 200))
  assert.ok(leaving.every((client) => client.body === '' || client.status === 503))
  await settled({ longpoll: 0, queue: 0, refused, connections: staying.length + 1, requests: 1 })

  for (const { socket } of staying) socket.end()
  await settled({ longpoll: 0, queue: 0, refused, connections: 1, requests: 1 })
  await until(() => descriptors() <= before)

  const again = await open(t, port, 1)
  again[0]?.socket.write(requestText('GET /poll'))
  await until(async () => (await status()).longpoll === 1)
  server.child.kill('SIGTERM')
  assert.equal(await server.ended, 0)
  assert.equal(again[0]?.status, 200)
})
