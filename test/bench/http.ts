/**
 * `npm run bench`: requests a second of a JSON route with one parameter, against bare `node:http` and the frameworks that
 * its users would pick instead. `wrk` (Debian's package) makes the load. Server and load have a core each, rounds
 * alternate, and a figure is the median of the ratios to bare in the same round.
 *
 * Surprise: the access log of svc is on, as it is in production; that of Fastify is a row of its own.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { installPeers, versionOf } from './support/peers.ts'
import { median, medianRatio } from './support/statistics.ts'

const peers = ['fastify', 'pino', 'hono', '@hono/node-server', 'koa', '@koa/router', 'express']
const rivals = ['bare', 'svc', 'fastify', 'fastify, logger', 'hono', 'koa', 'express'] as const
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7)
const seconds = Number(process.env['BENCH_SECONDS'] ?? 3)
const connections = 64
const serverCore = '0'
const loadCore = '1'
const root = fileURLToPath(new URL('../../', import.meta.url))
const only = process.argv.slice(2)

interface Running {
  readonly name: string
  readonly child: ChildProcess
  readonly url: string
}

if (spawnSync('wrk', ['-v']).error !== undefined) {
  console.error('The load generator is missing: apt-get install wrk')
  process.exit(1)
}
installPeers(...peers)
const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
const running: Running[] = []
try {
  for (const name of rivals) if (only.length === 0 || name === 'bare' || only.includes(name)) running.push(await startServer(name))
  await checkAnswers()
  const rates = await measure()
  print(rates)
} finally {
  for (const { child } of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

async function measure(): Promise<Map<string, number[]>> {
  const rates = new Map<string, number[]>(running.map(({ name }) => [name, []]))
  for (const { url } of running) load(url, 2)
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, url } of running) rates.get(name)?.push(load(url, seconds))
  }
  return rates
}

function load(url: string, durationSeconds: number): number {
  const args = ['-c', loadCore, 'wrk', '-t1', `-c${connections}`, `-d${durationSeconds}s`, url]
  const { stdout } = spawnSync('taskset', args, { encoding: 'utf8' })
  const rate = /Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]
  if (rate === undefined || /Non-2xx|Socket errors/.test(stdout)) throw new Error(`The load on ${url} failed:\n${stdout}`)
  return Number(rate)
}

function print(rates: ReadonlyMap<string, readonly number[]>): void {
  const versions = peers.map((name) => `${name} ${versionOf(name)}`).join(', ')
  console.log(`${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.versions.node}, ${versions}`)
  console.log(`${rounds} alternating rounds of ${seconds} s, ${connections} connections; ratio: median over the rounds\n`)
  console.log(`${'server'.padEnd(18)}${'requests/s'.padStart(12)}${'to bare'.padStart(10)}`)
  const bare = rates.get('bare') ?? []
  for (const [name, list] of rates) {
    const rate = Math.round(median(list)).toLocaleString('en')
    console.log(`${name.padEnd(18)}${rate.padStart(12)}${medianRatio(list, bare).toFixed(3).padStart(10)}`)
  }
}

/** All must answer the same bytes. */
async function checkAnswers(): Promise<void> {
  for (const { name, url } of running) {
    const text = await (await fetch(url)).text()
    if (text !== '{"id":"42","name":"Ada"}') throw new Error(`${name} answers ${text}`)
  }
}

async function startServer(name: string): Promise<Running> {
  const args = name === 'svc' ? svcArguments() : [join(root, 'test/bench/http-servers.js'), name, join(folder, 'fastify.log')]
  const child = spawn('taskset', ['-c', serverCore, process.execPath, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /(?:port |listening on http:\/\/127\.0\.0\.1:)(\d+)/.exec(line)?.[1]
    if (port !== undefined) return { name, child, url: `http://127.0.0.1:${port}/users/42` }
  }
  throw new Error(`${name} ended before it listened`)
}

/** The launcher as it ships, with the configuration of production and an application of one route. */
function svcArguments(): string[] {
  mkdirSync(join(folder, 'routes'))
  writeFileSync(join(folder, 'svc.json'), JSON.stringify({ app_key: 'benchmark', server: { port: 0 } }))
  writeFileSync(join(folder, 'user.mjs'), "export default ({ params }) => ({ id: params.id, name: 'Ada' })\n")
  const route = { name: 'user', url: '/users/:id', method: 'GET', action: 'user.mjs' }
  writeFileSync(join(folder, 'routes', 'bench.json'), JSON.stringify([route]))
  return [join(root, 'bin/svc.js'), '--config', join(folder, 'svc.json')]
}

