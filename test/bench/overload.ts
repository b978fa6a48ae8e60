/**
 * `npm run bench -- overload`: what a server does at five times what it can serve. First its capacity is measured, with as
 * many connections as keep it at work; then requests come at five times that rate, whether answered or not; then at half
 * of it. Server and load have a core each.
 *
 * Surprise: the processor's time that a refusal takes is taken from the answers. What is left of the capacity is about
 * 1 / (1 + 4 * refusal / answer), so a route of a tenth of a millisecond cannot keep 90 % of its rate.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { OpenLoop, type Outcome } from './support/open-loop.ts'
import { percentile } from './support/statistics.ts'

const seconds = Number(process.env['BENCH_SECONDS'] ?? 8)
const times = 5
const crowd = 1000
const maxConnections = 4000
const serverCore = '0'
const loadCore = '1'
const root = fileURLToPath(new URL('../../', import.meta.url))
const scenarios: Readonly<Record<string, readonly string[]>> = {
  '1 ms of the processor': ['/work'],
  '50 ms of waiting': ['/wait'],
  'one of each': ['/work', '/wait'],
}

/** The work is a fixed number of rounds, so that a slower server takes longer for it, not one that does less. */
const action = `import { pbkdf2Sync } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
const time = (rounds) => {
  const startedAt = performance.now()
  for (let count = 0; count < 20; count += 1) pbkdf2Sync('load', 'salt', rounds, 32, 'sha256')
  return (performance.now() - startedAt) / 20
}
time(1000)
const rounds = Math.round(1000 / time(1000))
export const work = () => ({ key: pbkdf2Sync('load', 'salt', rounds, 32, 'sha256').toString('hex') })
export const wait = async () => {
  await delay(50)
  return { ok: true }
}
`

interface Running {
  readonly child: ChildProcess
  readonly port: number
}

spawnSync('taskset', ['-cp', loadCore, String(process.pid)])
const only = process.argv.slice(2)
const processor = cpus()[0]?.model ?? 'unknown processor'
console.log(`${processor}, Node ${process.versions.node}; ${times} times the capacity for ${seconds} s`)
for (const [name, paths] of Object.entries(scenarios)) {
  if (only.length > 0 && !only.some((word) => name.includes(word))) continue
  const folder = mkdtempSync(join(tmpdir(), 'svc-overload-'))
  const server = await startServer(folder)
  try {
    await measure(name, paths, server)
  } finally {
    server.child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(name: string, paths: readonly string[], server: Running): Promise<void> {
  const pid = server.child.pid as number // It runs.
  const load = new OpenLoop(server.port, paths, maxConnections)
  await load.saturate(64, 1000)
  const idleMs = cpuMs(pid)
  const saturated = await load.saturate(64, 3000)
  const answerMs = (cpuMs(pid) - idleMs) / saturated.length
  const capacity = rateOf(saturated, 3000)
  await load.open(crowd, '/svc-ping')
  const restBytes = residentBytes(pid)
  let highestBytes = 0
  const watch = setInterval(() => (highestBytes = Math.max(highestBytes, residentBytes(pid))), 100)
  const beforeMs = [pid, process.pid].map(cpuMs)
  const startedAt = performance.now()
  await load.run(capacity * times, seconds * 1000)
  const elapsedMs = performance.now() - startedAt
  const [busy = 0, loadBusy = 0] = [pid, process.pid].map((id, at) => (cpuMs(id) - (beforeMs[at] as number)) / elapsedMs)
  const owed = load.unanswered
  const over = [...(await load.settle(30_000))]
  const { connections } = load
  clearInterval(watch)
  print(name, capacity, over, { owed, connections, answerMs, busy, loadBusy, restBytes, highestBytes })
  load.close()
  await recover(paths, capacity, server)
}

/** Overloads a second time, and goes on at half the capacity without a pause. */
async function recover(paths: readonly string[], capacity: number, server: Running): Promise<void> {
  await delay(500)
  const many = new OpenLoop(server.port, paths, maxConnections)
  await many.open(crowd, '/svc-ping')
  const few = new OpenLoop(server.port, paths, maxConnections)
  await few.open(64, '/svc-ping')
  await many.run(capacity * times, 2000)
  await few.run(capacity / 2, 3000)
  const after = await few.settle(30_000)
  const late = after.filter(({ dueMs }) => dueMs >= 1000)
  const refused = late.filter(({ status }) => status !== 200).length
  const first = after.filter(({ dueMs }) => dueMs < 1000).filter(({ status }) => status !== 200).length
  const p99 = percentile(late.map(timeOf), 99).toFixed(0)
  console.log(`  afterwards, at half of it: refused ${first} in the first second, ${refused} later; then p99 ${p99} ms`)
  many.close()
  few.close()
}

interface Facts {
  readonly owed: number
  readonly connections: number
  /** The processor's time that an answer takes of the server where nothing is refused. */
  readonly answerMs: number
  /** The shares of a core that the server and the load took. */
  readonly busy: number
  readonly loadBusy: number
  readonly restBytes: number
  readonly highestBytes: number
}

function print(name: string, capacity: number, outcomes: readonly Outcome[], facts: Facts): void {
  const durationMs = seconds * 1000
  const answered = outcomes.filter(({ status }) => status === 200)
  const refused = outcomes.filter(({ status }) => status === 503)
  const other = outcomes.length - answered.length - refused.length
  const rate = rateOf(outcomes, durationMs)
  console.log(`\n${name}: capacity ${capacity.toFixed(0)}/s, sent ${(outcomes.length / seconds).toFixed(0)}/s`)
  console.log(`  answered ${rate.toFixed(0)}/s, ${(rate / capacity).toFixed(3)} of the capacity, ${timesOf(answered)}`)
  const untold = refused.filter(({ retryAfter }) => !retryAfter).length
  console.log(`  refused ${refused.length}, ${timesOf(refused)}, ${untold} without Retry-After; neither ${other}`)
  const megabytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)
  const { owed, connections, answerMs, busy, loadBusy } = facts
  const inTime = (list: readonly Outcome[]): number => list.filter(({ answeredMs }) => answeredMs <= durationMs).length
  const refusalUs = (1000 * (busy * durationMs - inTime(answered) * answerMs)) / inTime(refused)
  const each = `an answer ${(answerMs * 1000).toFixed(0)} us, a refusal ${refusalUs.toFixed(0)} us`
  console.log(`  at its end ${owed} without an answer yet, ${connections} connections`)
  console.log(`  of a core each: the server took ${busy.toFixed(2)}, the load ${loadBusy.toFixed(2)}; ${each}`)
  console.log(`  memory ${megabytes(facts.restBytes)} MB before, ${megabytes(facts.highestBytes)} MB at most`)
}

/** The answers with 200 in a second, of those that came within the time. */
function rateOf(outcomes: readonly Outcome[], durationMs: number): number {
  const inTime = outcomes.filter(({ status, answeredMs }) => status === 200 && answeredMs <= durationMs)
  return (inTime.length * 1000) / durationMs
}

function timeOf({ dueMs, answeredMs }: Outcome): number {
  return answeredMs - dueMs
}

function timesOf(outcomes: readonly Outcome[]): string {
  if (outcomes.length === 0) return 'none'
  const list = outcomes.map(timeOf)
  const [half, most, all] = [50, 99, 100].map((percent) => percentile(list, percent).toFixed(0))
  return `p50 ${half} ms, p99 ${most} ms, longest ${all} ms`
}

/** The launcher as it ships, with the configuration of production but for the pool. */
async function startServer(folder: string): Promise<Running> {
  mkdirSync(join(folder, 'routes'))
  const pool = { workers: 64, queue_size: 200 }
  const config = { app_key: 'benchmark', server: { port: 0 }, pool_http: pool }
  writeFileSync(join(folder, 'svc.json'), JSON.stringify(config))
  writeFileSync(join(folder, 'load.mjs'), action)
  const records = ['work', 'wait'].map((name) => ({ name, url: `/${name}`, method: 'GET', action: `load.mjs@${name}` }))
  writeFileSync(join(folder, 'routes/bench.json'), JSON.stringify(records))
  const command = ['-c', serverCore, process.execPath, join(root, 'bin/svc.js'), '--config', join(folder, 'svc.json')]
  const child = spawn('taskset', command, { stdio: ['ignore', 'pipe', 'inherit'] })
  process.once('exit', () => child.kill('SIGKILL')) // However the load ends, the server does not stay.
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1]
    if (port === undefined) continue
    child.stdout.resume()
    return { child, port: Number(port) }
  }
  throw new Error('The server ended before it listened')
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

/** The processor time of a process in milliseconds, in steps of 10. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}
