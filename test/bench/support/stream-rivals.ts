/**
 * The servers that the streams' benchmark compares, each started in a fresh process on one core: bare `node:http`
 * (`stream-bare.js`), svc as it ships with an application of one module, and nginx with nchan.
 *
 * Surprise: the access log of svc is on, as it is in production, and that of nginx with a buffer; bare has none.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../support/free-port.ts'
import { bodyOf, get, RawClient } from './raw-client.ts'

/** A server that runs. */
export interface Rival {
  readonly name: string
  readonly port: number
  /** What is sent to it: a poll of its own channel, what wakes the many and this one, a plain request. */
  readonly requests: Readonly<Record<'lone' | 'publish' | 'notify' | 'plain', string>>
  /** Of svc alone: what opens a stream and a WebSocket. */
  readonly others: Readonly<Record<'stream' | 'WebSocket', string>>
  /** A poll of the many, from the newest event on. */
  poll(): Promise<string>
  /** How many polls have arrived since its start; of nginx how many wait now. */
  arrived(): Promise<number>
  /** Lets it collect its garbage, where it has one. */
  settle(): Promise<void>
  /** Its resident memory in bytes. */
  residentBytes(): number
  /** The processor time that it has taken, in milliseconds, in steps of 10. */
  cpuMs(): number
  stop(): void
}

const root = fileURLToPath(new URL('../../../', import.meta.url))
const serverCore = '0'
const nginxModule = '/usr/lib/nginx/modules/ngx_nchan_module.so'
const ticksPerSecond = 100

const action = `import { setTimeout as delay } from 'node:timers/promises'
const data = { text: 'The harbour is closed until noon', by: 'Ada' }
let asked = 0
const hold = ({ longPoll, channel }, name) => {
  asked += 1
  return longPoll(channel(name), { timeout_s: 600 })
}
const publish = (channel) => {
  channel.publish(data)
  return { ok: true }
}
export const poll = (ctx) => hold(ctx, 'all')
export const lone = (ctx) => hold(ctx, 'one')
export const publishAll = ({ channel }) => publish(channel('all'))
export const notify = ({ channel }) => publish(channel('one'))
export const stream = ({ sse, channel }) => sse(channel('all'))
export const plain = () => ({ ok: true })
export const count = () => ({ asked })
export const cursor = ({ channel }) => ({ cursor: channel('all').last_id })
export const collect = async () => {
  for (let times = 0; times < 4; times += 1) {
    globalThis.gc()
    await delay(50)
  }
  return { ok: true }
}
`
const routes = {
  poll: 'poll', lone: 'lone', publish: 'publishAll', notify: 'notify',
  plain: 'plain', asked: 'count', cursor: 'cursor', collect: 'collect', stream: 'stream',
}
const handshake = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]
const others = {
  stream: get('/stream'),
  WebSocket: get('/socket').replace('\r\n', `\r\n${handshake.join('\r\n')}\r\n`),
}

/** What is missing on this machine for a server; undefined when nothing is. */
export function missingFor(name: string): string | undefined {
  if (name !== 'nchan' || existsSync(nginxModule)) return undefined
  return 'nginx with nchan is not here: apt-get install nginx libnginx-mod-nchan'
}

/** The versions of nginx and nchan; '' where they are not installed. */
export function nginxVersions(): string {
  if (!existsSync(nginxModule)) return ''
  const nginx = /nginx\/([\d.]+)/.exec(spawnSync('nginx', ['-v'], { encoding: 'utf8' }).stderr)?.[1]
  const query = ['-W', '-f', '${Version}', 'libnginx-mod-nchan']
  return `, nginx ${nginx}, nchan ${spawnSync('dpkg-query', query, { encoding: 'utf8' }).stdout}`
}

/**
 * Starts a server.
 * @param folder an empty folder for its files
 */
export async function startRival(name: string, folder: string): Promise<Rival> {
  mkdirSync(folder, { recursive: true })
  return name === 'nchan' ? startNchan(folder) : startNode(name, folder)
}

async function startNode(name: string, folder: string): Promise<Rival> {
  const program = name === 'bare' ? [join(root, 'test/bench/stream-bare.js')] : svcArguments(folder)
  const command = ['-c', serverCore, process.execPath, '--expose-gc', ...program]
  const child = spawn('taskset', command, { stdio: ['ignore', 'pipe', 'inherit'] })
  endWithClient(child)
  const port = await portOf(child)
  const control = await RawClient.open(port)
  const number = async (path: string): Promise<number> => Number(/\d+/.exec(bodyOf(await control.ask(get(path))))?.[0])
  await number('/asked') // A connection without a request would soon be closed.
  return {
    name,
    port,
    requests: { lone: get('/lone'), publish: get('/publish'), notify: get('/notify'), plain: get('/plain') },
    others,
    poll: async () => get(`/poll?since=${await number('/cursor')}`),
    arrived: () => number('/asked'),
    settle: async () => void bodyOf(await control.ask(get('/collect'))),
    residentBytes: () => residentBytes(child.pid as number), // It runs.
    cpuMs: () => cpuMs(child.pid as number), // As above.
    stop: () => {
      control.close()
      child.kill('SIGKILL')
    },
  }
}

/** The launcher as it ships, with the configuration of production but for the limits of the pool. */
function svcArguments(folder: string): string[] {
  mkdirSync(join(folder, 'routes'))
  const pools = { pool_rest: { workers_longpoll: 20_000, workers_sse: 20_000 }, pool_ws: { workers: 20_000 } }
  writeFileSync(join(folder, 'svc.json'), JSON.stringify({ app_key: 'benchmark', server: { port: 0 }, ...pools }))
  writeFileSync(join(folder, 'polls.mjs'), action)
  writeFileSync(join(folder, 'socket.mjs'), 'export const websocket = { message: (ws, data) => ws.send(data) }\n')
  const records = Object.entries(routes).map(([path, name]) => {
    return { name, url: `/${path}`, method: 'GET', action: `polls.mjs@${name}` }
  })
  records.push({ name: 'socket', url: '/socket', method: 'GET', action: 'socket.mjs' })
  writeFileSync(join(folder, 'routes', 'bench.json'), JSON.stringify(records))
  return [join(root, 'bin/svc.js'), '--config', join(folder, 'svc.json')]
}

/** However the client ends, the server does not stay. */
function endWithClient(child: ChildProcess): void {
  const end = (): void => void child.kill('SIGTERM')
  process.on('exit', end)
  child.on('exit', () => process.off('exit', end))
}

async function portOf(child: ChildProcess): Promise<number> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) { // It is piped.
    const port = /(?:port |listening on http:\/\/127\.0\.0\.1:)(\d+)/.exec(line)?.[1]
    if (port !== undefined) return Number(port)
  }
  throw new Error('A server ended before it listened')
}

async function startNchan(folder: string): Promise<Rival> {
  const port = await freePort()
  writeFileSync(join(folder, 'nginx.conf'), nginxConfiguration(folder, port))
  const command = ['-c', serverCore, 'nginx', '-p', folder, '-c', join(folder, 'nginx.conf')]
  const master = spawn('taskset', command, { stdio: ['ignore', 'inherit', 'inherit'] })
  endWithClient(master)
  const pid = master.pid as number // It was found: taskset is there.
  const worker = await until(() => /^(\d+)/.exec(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'))?.[1])
  const control = await until(() => RawClient.open(port).catch(() => undefined))
  return {
    name: 'nchan',
    port,
    requests: { lone: get('/lone'), publish: post('/publish'), notify: post('/notify'), plain: get('/plain') },
    others,
    poll: () => Promise.resolve(get('/poll')),
    arrived: async () => Number(/subscribers: (\d+)/.exec(await control.ask(get('/status')))?.[1]),
    settle: () => delay(200),
    residentBytes: () => residentBytes(Number(worker)),
    cpuMs: () => cpuMs(Number(worker)),
    stop: () => {
      control.close()
      master.kill('SIGTERM')
    },
  }
}

function nginxConfiguration(folder: string, port: number): string {
  return `load_module ${nginxModule};
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 19000; }
http {
  access_log ${folder}/access.log combined buffer=64k flush=1s;
  keepalive_timeout 65;
  keepalive_requests 10000000;
  nchan_shared_memory_size 64M;
  nchan_message_buffer_length 1;
  nchan_subscriber_timeout 600;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    nchan_subscriber_first_message newest;
    location = /poll { nchan_subscriber longpoll; nchan_channel_id all; }
    location = /lone { nchan_subscriber longpoll; nchan_channel_id one; }
    location = /publish { nchan_publisher http; nchan_channel_id all; }
    location = /notify { nchan_publisher http; nchan_channel_id one; }
    location = /status { nchan_stub_status; }
    location = /plain { default_type application/json; return 200 '{"ok":true}'; }
  }
}
`
}

/** The same answer as that of the others, brought by the publisher. */
function post(path: string): string {
  const event = '{"id":1795188000000000,"data":{"text":"The harbour is closed until noon","by":"Ada"}}'
  const body = `{"events":[${event}],"last_id":1795188000000000}`
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

async function until<T>(look: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (let times = 0; times < 200; times += 1) {
    const found = await look()
    if (found !== undefined) return found
    await delay(25)
  }
  throw new Error('A server did not start within 5 s')
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

/** User and system time, fields 14 and 15; the name in field 2 may have blanks. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond
}
