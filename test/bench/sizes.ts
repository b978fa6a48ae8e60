/**
 * `npm run bench -- sizes`: memory that a held long poll takes outside of the server, and what sessions and events take in Redis. A poll: in the
 * kernel, at each end of its connection; in nginx and in HAProxy as docs/deploy has them, with TLS to the client. Needs Debian's
 * packages `nginx-light`, `haproxy` and `redis-server`. What a poll takes in the server is measured by `npm run bench -- streams`.
 *
 * Surprise: the kernel's part is what its slabs grow by on the whole machine, so nothing else should run. BENCH_POLLS changes
 * how many polls are held.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Redis } from '../../lib/redis/client.ts'
import { RedisSessionStore } from '../../lib/redis/session-store.ts'
import { parseRedisUrl } from '../../lib/config/redis-url.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { plainNode } from '../support/nodes.ts'
import { startHaproxy, startNginx, type Proxy } from '../support/proxies.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { residentMiB } from './http/process-figures.ts'

const polls = Number(process.env['BENCH_POLLS'] ?? 4000)
const sessions = 20_000
const events = 20_000
const application = `const limits = { events: ${events} }
  export default ({ channel, longPoll }) => longPoll(channel('c'), { timeout_s: 3600 })
  export const publish = async ({ channel }) => {
    const c = channel('events', limits)
    await Promise.all(Array.from({ length: 1000 }, () => c.publish('x'.repeat(98))))
    return 'published'
  }`
const endings: (() => unknown)[] = []
const owner = { after: (ending: () => unknown) => void endings.push(ending) }

try {
  const config = { 'app.env': 'dev', 'server.allowed_hosts': ['127.0.0.1', 'www.example.org'], 'pool_rest.workers_longpoll': polls }
  const node = await plainNode(owner, applicationFolder({ 'home.mjs': application }, config))
  await node.start()
  console.log(`${polls} polls\n\n| what | bytes |\n| --- | --- |`)
  const kernel = await grownBy(() => slabBytes(), node.port, () => connectPlain({ port: node.port, host: '127.0.0.1' }))
  print('the kernel, for each end of a connection', kernel / 2)
  for (const [name, proxy] of [
    ['nginx', await startNginx(owner, 'svc-nodes.nginx', [node.port, node.port, node.port])],
    ['HAProxy', await startHaproxy(owner, 'svc-nodes.haproxy', [node.port, node.port, node.port])],
  ] as const) {
    await until(() => reaches(proxy))
    const taken = await grownBy(() => residentMiB(proxy.pid) * 2 ** 20, node.port, () => {
      return connectTls({ port: proxy.port, host: '127.0.0.1', rejectUnauthorized: false })
    })
    print(`${name}, for a poll`, taken)
  }
  const server = await startRedis(owner)
  print('Redis, for a session of three fields', await sessionBytes(server))
  print('Redis, for an event of 100 bytes', await eventBytes(server))
} finally {
  for (const end of endings.reverse()) await end()
}

function print(what: string, bytes: number): void {
  console.log(`| ${what} | ${bytes.toFixed()} |`)
}

/** How much a figure grows with each poll that is held, once some have been held before. */
async function grownBy(bytes: () => number, nodePort: number, open: () => Socket): Promise<number> {
  const sockets: Socket[] = []
  const hold = async (count: number): Promise<void> => {
    while (sockets.length < count) {
      const socket = open().on('error', (error) => console.error(error.message))
      socket.write('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
      sockets.push(socket)
      if (sockets.length % 100 === 0) await until(async () => (await held(nodePort)) === sockets.length)
    }
  }
  await hold(polls / 4)
  const before = bytes()
  await hold(polls)
  const grown = bytes() - before
  await Promise.all(sockets.map((socket) => once(socket.destroy(), 'close')))
  await until(async () => (await held(nodePort)) === 0)
  return grown / (polls - polls / 4)
}

async function held(port: number): Promise<number> {
  const status = (await request(`http://127.0.0.1:${port}/svc-status`)).json() as { pool_rest: { longpoll: number } }
  return status.pool_rest.longpoll
}

async function reaches({ port, check }: Proxy): Promise<boolean> {
  check()
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  socket.on('error', () => {}).end('GET /svc-ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n')
  let received = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (received += piece))
  await new Promise((resolve) => socket.once('close', resolve))
  return received.startsWith('HTTP/1.1 200')
}

function slabBytes(): number {
  return Number(/^Slab:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) * 1024
}

async function used(server: RedisServer): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await server.ask('INFO', 'memory'))?.[1])
}

async function sessionBytes(server: RedisServer): Promise<number> {
  const redis = new Redis({ target: parseRedisUrl(server.url), name: 'bench' })
  const store = new RedisSessionStore({ redis, prefix: 'svc:', problemOf: () => undefined, onProblem: console.error })
  const before = await used(server)
  for (let number = 0; number < sessions; number += 1) {
    const id = `${number}`.padStart(43, 'k')
    const fields = [['key:user', '"ann"'], ['key:_csrf_token', `"${id}"`], ['key:cart', '[1,2,3]']] as const
    await store.create(id, new Map(fields), 3_600_000)
  }
  const bytes = ((await used(server)) - before) / sessions
  await redis.close()
  return bytes
}

async function eventBytes(server: RedisServer): Promise<number> {
  const routes = [{ name: 'publish', url: '/publish', action: 'home.mjs@publish' }]
  const folder = applicationFolder({ 'routes/home.json': routes, 'home.mjs': application }, { 'shared.url': server.url })
  const node = await plainNode(owner, folder)
  await node.start()
  const before = await used(server)
  for (let published = 0; published < events; published += 1000) await request(`http://127.0.0.1:${node.port}/publish`)
  return ((await used(server)) - before) / events
}
