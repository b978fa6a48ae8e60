/**
 * `npm run bench -- websocket`: echoed messages a second, and the server's processor time for each, against the package
 * `ws`. One client for both: it sends prepared frames over raw sockets, keeps a window of them on the way and counts
 * the bytes that come back. Server and client have a core each, rounds alternate, and a ratio is the median over the
 * rounds.
 *
 * Surprise: this file is the servers too, each in a process of its own (`serve svc`, `serve ws`). That of `ws` sends
 * the Buffer back that it got, also for text, which spares it making a string; the handlers of svc get strings.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Heartbeat } from '../../lib/base/heartbeat.ts'
import { beatMs, WebSocketConnection, type WebSocketServices } from '../../lib/websocket/connection.ts'
import { checkHandshake } from '../../lib/websocket/handshake.ts'
import { installPeers, requirePeer, versionOf } from './support/peers.ts'
import { median, medianRatio } from './support/statistics.ts'

interface Case {
  readonly name: string
  readonly opcode: number
  readonly bytes: number
  /** Messages on the way on each connection. */
  readonly window: number
}

interface Running {
  readonly name: string
  readonly child: ChildProcess
  readonly port: number
}

/** What one run has shown. */
interface Figures {
  readonly perSecond: number
  readonly cpuUs: number
}

const text = 1
const binary = 2
const cases: readonly Case[] = [
  { name: '16 B, text', opcode: text, bytes: 16, window: 32 },
  { name: '16 B, binary', opcode: binary, bytes: 16, window: 32 },
  { name: '16 B, text, one at a time', opcode: text, bytes: 16, window: 1 },
  { name: '64 KiB, text', opcode: text, bytes: 65_536, window: 4 },
  { name: '64 KiB, binary', opcode: binary, bytes: 65_536, window: 4 },
]
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7)
const seconds = Number(process.env['BENCH_SECONDS'] ?? 1)
const connections = 8
const serverCore = '0'
const clientCore = '1'
const required = 0.9
const file = fileURLToPath(import.meta.url)

if (process.argv[2] === 'serve') serve(process.argv[3] ?? '')
else if (process.argv[2] === 'measure') await measure()
else {
  installPeers('ws')
  const args = ['-c', clientCore, process.execPath, ...process.execArgv, file, 'measure']
  const child = spawn('taskset', args, { stdio: 'inherit' })
  const [status] = (await once(child, 'exit')) as [number | null]
  process.exitCode = status ?? 1
}

async function measure(): Promise<void> {
  const running: Running[] = []
  try {
    for (const name of ['svc', 'ws']) running.push(await startServer(name))
    console.log(`${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.versions.node}, ws ${versionOf('ws')}`)
    console.log(`${rounds} alternating rounds of ${seconds} s, ${connections} connections; medians over the rounds\n`)
    const heads = ['svc/s', 'ws/s', 'ratio', 'svc us CPU', 'ws us CPU']
    console.log(`${'echo'.padEnd(28)}${heads.map((head) => head.padStart(12)).join('')}`)
    for (const row of cases) await measureCase(row, running)
  } finally {
    for (const { child } of running) child.kill('SIGKILL')
  }
}

async function measureCase(row: Case, running: readonly Running[]): Promise<void> {
  const figures = running.map((): Figures[] => [])
  for (const server of running) await run(server, row)
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, server] of running.entries()) figures[at]?.push(await run(server, row))
  }
  const [own = [], peer = []] = figures.map((list) => list.map(({ perSecond }) => perSecond))
  const ratio = medianRatio(own, peer)
  const [ownCpu, peerCpu] = figures.map((list) => median(list.map(({ cpuUs }) => cpuUs)).toFixed(2))
  const rates = [own, peer].map((list) => Math.round(median(list)).toLocaleString('en'))
  const cells = [...rates, ratio.toFixed(2), ownCpu ?? '', peerCpu ?? '']
  console.log(`${row.name.padEnd(28)}${cells.map((cell) => cell.padStart(12)).join('')}`)
  if (ratio >= required) return
  console.error(`Below what is required: ${row.name} is ${ratio.toFixed(2)} times ws, at least ${required} is wanted`)
  process.exitCode = 1
}

/** Echoes on all connections for the time of a round. */
async function run(server: Running, row: Case): Promise<Figures> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(server.port)))
  const { frames, frameBytes, echoBytes } = prepare(row)
  let echoed = 0
  let running = true
  for (const socket of sockets) {
    let received = 0
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length
      const whole = Math.floor(received / echoBytes)
      if (whole === 0) return
      received -= whole * echoBytes
      echoed += whole
      if (running) socket.write(frames.subarray(0, whole * frameBytes))
    })
  }
  const cpuBefore = await cpuOf(server)
  const startedAt = performance.now()
  for (const socket of sockets) socket.write(frames)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  running = false
  const elapsedS = (performance.now() - startedAt) / 1000
  const count = echoed
  const cpuUs = (await cpuOf(server)) - cpuBefore
  for (const socket of sockets) socket.destroy()
  if (count === 0) throw new Error(`${server.name} echoed nothing`)
  return { perSecond: count / elapsedS, cpuUs: cpuUs / count }
}

/** A window of masked frames, and what the echo of one has in bytes. */
function prepare({ opcode, bytes, window }: Case): { frames: Buffer; frameBytes: number; echoBytes: number } {
  const mask = [0x12, 0x34, 0x56, 0x78]
  const payload = Buffer.alloc(bytes, 'The quick brown fox. ').map((byte, at) => byte ^ (mask[at % 4] as number))
  const length = Buffer.from(bytes < 126 ? [bytes] : [127, 0, 0, 0, 0, 0, bytes >> 16, (bytes >> 8) & 255, bytes & 255])
  const head = Buffer.from([0x80 | opcode, ...length, ...mask])
  head[1] = (head[1] as number) | 0x80
  const frame = Buffer.concat([head, payload])
  const frames = Buffer.concat(Array.from({ length: window }, () => frame))
  return { frames, frameBytes: frame.length, echoBytes: frame.length - mask.length }
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const fields = ['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
  socket.write(`GET / HTTP/1.1\r\n${fields.join('\r\n')}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  const text = answer.toString('latin1')
  if (!text.startsWith('HTTP/1.1 101 ')) throw new Error(`The handshake failed: ${text}`)
  return socket
}

/** The processor time that a server has taken so far, in microseconds. */
async function cpuOf({ child }: Running): Promise<number> {
  child.send('cpu')
  const [us] = (await once(child, 'message')) as [number]
  return us
}

async function startServer(name: string): Promise<Running> {
  const args = ['-c', serverCore, process.execPath, ...process.execArgv, file, 'serve', name]
  const child = spawn('taskset', args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const [port] = (await once(child, 'message')) as [number]
  return { name, child, port }
}

function serve(name: string): void {
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.(user + system)
  })
  const server = createServer()
  if (name === 'svc') serveSvc(server)
  else serveWs(server)
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

function serveSvc(server: ReturnType<typeof createServer>): void {
  const services: WebSocketServices<undefined> = {
    heartbeat: new Heartbeat(beatMs),
    maxMessageBytes: 1 << 20,
    maxBufferedBytes: 1 << 24,
    onError: (error) => console.error(error),
    onProtocolError: (error) => console.error(error),
    onSlow: () => console.error('a slow client'),
    onClosed: () => {},
  }
  const handlers = { message: (ws: WebSocketConnection<undefined>, data: string | Buffer) => ws.send(data) }
  server.on('upgrade', ({ method = '', httpVersion, headers }, socket, head) => {
    const request = { method, httpVersion, header: (field: string) => headers[field] as string | undefined }
    const accept = checkHandshake(request)
    const fields = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}`
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n\r\n`)
    new WebSocketConnection(socket as Socket, services, handlers, undefined).start(head) // It listens: it is a Socket.
  })
}

/** What is used of `ws`; its types are not there to check against. */
interface Ws {
  readonly WebSocketServer: new (options: object) => {
    on(event: 'connection', listener: (socket: WsSocket) => void): void
  }
}

interface WsSocket {
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): void
  on(event: 'error', listener: (error: Error) => void): void
  send(data: Buffer, options: { binary: boolean }): void
}

function serveWs(server: ReturnType<typeof createServer>): void {
  const { WebSocketServer } = requirePeer('ws') as Ws
  new WebSocketServer({ server, maxPayload: 1 << 20 }).on('connection', (socket) => {
    socket.on('message', (data, binary) => socket.send(data, { binary }))
    socket.on('error', () => {})
  })
}
