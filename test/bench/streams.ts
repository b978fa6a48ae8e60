/**
 * `npm run bench -- streams`: what thousands of held long polls cost, against bare `node:http` that keeps `(request,
 * response)` in an array, and against nginx with nchan; then 100,000 events to 200 clients that leave at random.
 * Servers have one core and the client the other. Rounds alternate, each with a fresh process of each server.
 *
 *   npm run bench -- streams [NAME ...]     some of bare, svc, nchan, delivery alone
 *
 * Surprise: a figure to be held against bare is the median of the ratios to it in the same round. BENCH_POLLS and
 * BENCH_ROUNDS change how many polls are held and how often.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { deliverByChannel, deliverByQueue } from '../events/delivery.ts'
import { bodyOf, RawClient } from './support/raw-client.ts'
import { median, medianRatio, percentile } from './support/statistics.ts'
import { missingFor, nginxVersions, startRival, type Rival } from './support/stream-rivals.ts'

/** What one round has shown of one server. */
interface Figures {
  /** Resident memory of a held poll, in bytes. */
  readonly memoryBytes: number
  /** From the publishing to the last answer, in milliseconds. */
  readonly publishMs: number
  /** The server's processor time for it, in milliseconds. */
  readonly publishCpuMs: number
  /** The 99th percentile of a plain request, in microseconds, with no poll held and with all; how many times that is. */
  readonly quietUs: number
  readonly busyUs: number
  readonly busyTimes: number
  /** From the publishing to the answer of the one poll that waits for it, in milliseconds. */
  readonly wakeMs: number
}

interface Row {
  readonly title: string
  readonly valueOf: (figures: Figures) => number
  /** The most that the ratio to bare may be, or the value itself. */
  readonly mostRatio?: number
  readonly mostValue?: number
}

const polls = Number(process.env['BENCH_POLLS'] ?? 9000)
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 5)
const publishings = { unmeasured: 2, measured: 5 }
const plain = { connections: 8, unmeasured: 30_000, slices: 40, inSlice: 1000 }
const wakeUps = 200
const clientCore = '1'
const rows: readonly Row[] = [
  { title: 'memory of a held poll, kB', valueOf: ({ memoryBytes }) => memoryBytes / 1000, mostRatio: 1.15 },
  { title: 'published until all answered, ms', valueOf: ({ publishMs }) => publishMs, mostRatio: 1 },
  { title: '  processor time of it, ms', valueOf: ({ publishCpuMs }) => publishCpuMs },
  { title: 'plain request, p99, us', valueOf: ({ quietUs }) => quietUs },
  { title: '  while polls are held', valueOf: ({ busyUs }) => busyUs },
  { title: '  times that without', valueOf: ({ busyTimes }) => busyTimes, mostValue: 1.3 },
  { title: 'wake-up of one poll, ms', valueOf: ({ wakeMs }) => wakeMs, mostValue: 2 },
]
const file = fileURLToPath(import.meta.url)
const wanted = process.argv.slice(2)

if (wanted[0] === 'measure') await compare(wanted.slice(1))
else {
  const names = wanted.length === 0 ? ['bare', 'svc', 'nchan', 'delivery'] : wanted
  const servers = names.filter((name) => name !== 'delivery')
  if (servers.length > 0) await measureApart(servers)
  if (names.includes('delivery')) await deliver()
}

/** The client is a process of its own, on a core of its own. */
async function measureApart(names: readonly string[]): Promise<void> {
  const descriptors = Number(spawnSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).stdout)
  if (descriptors < polls + 100) {
    throw new Error(`${polls} connections need ${polls + 100} file descriptors, here are ${descriptors}: raise ulimit -n`)
  }
  const args = ['-c', clientCore, process.execPath, '--expose-gc', ...process.execArgv, file, 'measure', ...names]
  const [status] = (await once(spawn('taskset', args, { stdio: 'inherit' }), 'exit')) as [number | null]
  process.exitCode = status ?? 1
}

async function compare(names: readonly string[]): Promise<void> {
  const present = names.filter((name) => {
    const missing = missingFor(name)
    if (missing !== undefined) console.log(`Left out: ${missing}`)
    return missing === undefined
  })
  const found = new Map<string, Figures[]>(present.map((name) => [name, []]))
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const name of round % 2 === 0 ? present : present.toReversed()) {
        const [rival, quiet] = await Promise.all(
          ['busy', 'quiet'].map((which) => startRival(name, join(folder, `${name}-${round}-${which}`))),
        ) as [Rival, Rival]
        try {
          found.get(name)?.push(await measure(rival, quiet))
        } finally {
          rival.stop()
          quiet.stop()
        }
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  print(found)
  if (present.includes('svc')) await printOthers()
}

/** What the other kinds of waiting clients take, of svc alone. */
async function printOthers(): Promise<void> {
  for (const kind of ['stream', 'WebSocket'] as const) {
    const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
    const rival = await startRival('svc', folder)
    try {
      const first = await openEach(rival, 500, rival.others[kind])
      await rival.settle()
      const before = rival.residentBytes()
      const opened = await openEach(rival, polls, rival.others[kind])
      await rival.settle()
      console.log(`memory of an open ${kind}: ${((rival.residentBytes() - before) / opened.length / 1000).toFixed(1)} kB`)
      for (const client of [...first, ...opened]) client.close()
    } finally {
      rival.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

async function openEach(rival: Rival, count: number, request: string): Promise<RawClient[]> {
  const clients: RawClient[] = []
  while (clients.length < count) {
    const length = Math.min(250, count - clients.length)
    const piece = await Promise.all(Array.from({ length }, () => RawClient.open(rival.port)))
    await Promise.all(piece.map((client) => client.ask(request)))
    clients.push(...piece)
  }
  return clients
}

/** @param quiet a server of the same kind that holds nothing, for requests at the same time */
async function measure(rival: Rival, quiet: Rival): Promise<Figures> {
  const { requests, port } = rival
  const publisher = await RawClient.open(port)
  const some = await openAndHold(rival, 100)
  await publish(publisher, requests.publish, some)
  const lone = some.slice(0, plain.connections)
  const others = await Promise.all(lone.map(() => RawClient.open(quiet.port)))
  for (const clients of [lone, others]) await latencies(clients, requests.plain, plain.unmeasured)

  await rival.settle()
  const before = rival.residentBytes()
  const waiting = await openAndHold(rival, polls)
  await rival.settle()
  const memoryBytes = (rival.residentBytes() - before) / polls

  globalThis.gc?.()
  const p99s = await p99sUs([others, lone], requests.plain)
  const wakeMs = median(await wake(rival, lone[0] as RawClient, publisher)) // It has more than one.

  const times: number[] = []
  let cpuMs = 0
  for (let count = 0; count < publishings.unmeasured + publishings.measured; count += 1) {
    if (count > 0) await hold(rival, waiting, await rival.poll())
    globalThis.gc?.()
    const cpuBefore = rival.cpuMs()
    const ms = await publish(publisher, requests.publish, waiting)
    if (count < publishings.unmeasured) continue
    times.push(ms)
    cpuMs += rival.cpuMs() - cpuBefore
  }
  for (const client of [publisher, ...some, ...others, ...waiting]) client.close()
  const publishCpuMs = cpuMs / publishings.measured
  const [quietUs = [], busyUs = []] = p99s
  const plainFigures = { quietUs: median(quietUs), busyUs: median(busyUs), busyTimes: medianRatio(busyUs, quietUs) }
  return { memoryBytes, publishMs: median(times), publishCpuMs, wakeMs, ...plainFigures }
}

/** Opens connections with a poll on each, and resolves when all are waiting. */
async function openAndHold(rival: Rival, count: number): Promise<RawClient[]> {
  const clients: RawClient[] = []
  const request = await rival.poll()
  while (clients.length < count) {
    const length = Math.min(250, count - clients.length)
    const piece = await Promise.all(Array.from({ length }, () => RawClient.open(rival.port)))
    await hold(rival, piece, request)
    clients.push(...piece)
  }
  return clients
}

/** Sends a poll on each connection, and resolves when all are waiting. */
async function hold(rival: Rival, clients: readonly RawClient[], request: string): Promise<void> {
  const before = await rival.arrived()
  for (const client of clients) client.send(request)
  while ((await rival.arrived()) - before < clients.length) await delay(5)
}

/** Publishes, and resolves with the time until the last has its answer. */
function publish(publisher: RawClient, request: string, clients: readonly RawClient[]): Promise<number> {
  return new Promise((resolve) => {
    let open = clients.length + 1
    const startedAt = performance.now()
    const answered = (answer: string): void => {
      open -= 1
      if (open > 0) return
      bodyOf(answer)
      resolve(performance.now() - startedAt)
    }
    for (const client of [publisher, ...clients]) client.answered = answered
    publisher.send(request)
  })
}

/** The 99th percentiles of slices, which alternate between servers: what else the machine does falls on all of them. */
async function p99sUs(servers: readonly (readonly RawClient[])[], request: string): Promise<number[][]> {
  const found = servers.map((): number[] => [])
  for (let slice = 0; slice < plain.slices; slice += 1) {
    for (const [at, clients] of servers.entries()) {
      found[at]?.push(percentile(await latencies(clients, request, plain.inSlice), 99) * 1000)
    }
  }
  return found
}

/** The milliseconds of requests, of which each connection has one on the way. */
function latencies(clients: readonly RawClient[], request: string, count: number): Promise<number[]> {
  return new Promise((resolve) => {
    const times: number[] = []
    for (const client of clients) {
      let sentAt = performance.now()
      client.answered = () => {
        const now = performance.now()
        times.push(now - sentAt)
        if (times.length === count) resolve(times)
        if (times.length + clients.length > count) return
        sentAt = now
        client.send(request)
      }
      client.send(request)
    }
  })
}

/** The milliseconds from the publishing to the answer of the one that waits. */
async function wake(rival: Rival, waiting: RawClient, publisher: RawClient): Promise<number[]> {
  const times: number[] = []
  for (let count = 0; count < wakeUps; count += 1) {
    await hold(rival, [waiting], rival.requests.lone)
    times.push(await publish(publisher, rival.requests.notify, [waiting]))
  }
  return times
}

function print(found: ReadonlyMap<string, readonly Figures[]>): void {
  const bare = found.get('bare')
  console.log(`${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.versions.node}${nginxVersions()}`)
  console.log(`${polls} polls held, ${rounds} alternating rounds; medians, and behind each the ratio to bare\n`)
  console.log(`${''.padEnd(36)}${[...found.keys()].map((name) => name.padStart(18)).join('')}   wanted of svc`)
  for (const { title, valueOf, mostRatio, mostValue } of rows) {
    const cells = [...found].map(([name, figures]) => {
      const values = figures.map(valueOf)
      const ratio = bare === undefined ? Number.NaN : medianRatio(values, bare.map(valueOf))
      const missed = ratio > (mostRatio ?? Infinity) || median(values) > (mostValue ?? Infinity)
      if (name === 'svc' && missed) process.exitCode = 1
      return `${median(values).toFixed(median(values) < 100 ? 2 : 0)} (${ratio.toFixed(2)})`.padStart(18)
    })
    const limit = mostRatio === undefined ? mostValue : `${mostRatio} times bare`
    console.log(`${title.padEnd(36)}${cells.join('')}   ${limit === undefined ? '' : `at most ${limit}`}`)
  }
}

/** Both fail by an AssertionError when an event is lost, comes twice or goes to a client that is known to have left. */
async function deliver(): Promise<void> {
  const kinds = [
    { source: 'a channel', run: deliverByChannel, fate: 'asked for again' },
    { source: 'a queue', run: deliverByQueue, fate: 'on the wire when their client left' },
  ]
  for (const { source, run, fate } of kinds) {
    const closers: (() => unknown)[] = []
    // The helpers hand over functions without parameters.
    const end = { after: (close: () => unknown) => void closers.push(close) } as Pick<TestContext, 'after'>
    const startedAt = performance.now()
    const { left, lost } = await run(end, { events: 100_000, clients: 200, seed: Date.now() >>> 0 })
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    for (const close of closers) await close()
    console.log(`\n100,000 events over ${source} to 200 clients: ${seconds} s; ${left} times a client left`)
    console.log(`${lost.toLocaleString('en')} events were ${fate}; none was lost otherwise, none came twice`)
  }
}
