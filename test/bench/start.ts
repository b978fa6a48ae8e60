/**
 * Start-up and memory at rest: from the spawn of a process to its `listening on` line, and what it holds in memory a
 * moment later. For a bare `node:http` script, the compiled server, the server in TypeScript with a cold and with a
 * warm compile cache, and the server with one route and with 10,000. Rounds alternate; medians, and the medians of the
 * ratios of each round with their 95 % intervals.
 *
 *   npm run bench -- start [NODE ...]     with these Nodes too, by their paths
 *
 * Surprise: the processes get an environment without Node's own variables. `NODE_EXTRA_CA_CERTS` alone makes Node 20
 * read hundreds of certificates at each start, which takes as long as the bare script and would flatter every ratio.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { initApplication } from '../../lib/commands/init.ts'
import { median, medianInterval, ratios } from './support/statistics.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const rounds = 15
const manyRoutes = 10_000
/** How long after its line a process is at rest, in milliseconds. */
const restMs = 250

interface Contender {
  readonly name: string
  readonly args: readonly string[]
  /** The folder of its application. */
  readonly cwd: string
  /** A folder to remove before each start. */
  readonly cache?: string
}

/** One start: milliseconds until it listens, and mebibytes at rest, where /proc tells them. */
interface Start {
  readonly ms: number
  readonly memory: number
}

const bare = `import { createServer } from 'node:http'
const server = createServer((request, response) => response.end('here'))
server.listen(0, '127.0.0.1', () => console.log('listening on http://127.0.0.1:' + server.address().port))
`

const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('NODE_')))
const folder = mkdtempSync(join(tmpdir(), 'svc-start-'))
try {
  const application = makeApplication('application')
  const withOne = makeApplication('one', 1)
  const withMany = makeApplication('many', manyRoutes)
  writeFileSync(join(folder, 'bare.mjs'), bare)
  const compiled = copy('compiled', ['bin', 'dist', 'package.json'])
  const cold = copy('cold', ['bin', 'lib', 'package.json'])
  const warm = copy('warm', ['bin', 'lib', 'package.json'])
  const start = ['start', '--port', '0']
  for (const node of [process.execPath, ...process.argv.slice(2)]) {
    const runsTypeScript = ask(node, 'Boolean(process.features.typescript)') === 'true'
    const asOldNode = runsTypeScript ? ['--no-experimental-strip-types'] : []
    const runCompiled = [...asOldNode, join(compiled, 'bin/svc.js'), ...start]
    const runWarm = [join(warm, 'bin/svc.js'), ...start]
    const contenders: Contender[] = [
      { name: 'bare node:http', args: [join(folder, 'bare.mjs')], cwd: application },
      { name: 'svc, compiled', args: runCompiled, cwd: application },
    ]
    if (runsTypeScript) {
      const args = [join(cold, 'bin/svc.js'), ...start]
      contenders.push({ name: 'svc, TypeScript, cold cache', args, cwd: application, cache: join(cold, '.cached') })
      contenders.push({ name: 'svc, TypeScript, warm cache', args: runWarm, cwd: application })
    }
    const args = runsTypeScript ? runWarm : runCompiled
    contenders.push({ name: 'svc, 1 route', args, cwd: withOne })
    contenders.push({ name: `svc, ${manyRoutes} routes`, args, cwd: withMany })
    const starts = contenders.map((): Start[] => [])
    for (let round = 0; round <= rounds; round += 1) {
      for (const [at, contender] of contenders.entries()) {
        const measured = await measure(node, contender)
        if (round > 0) starts[at]?.push(measured) // The first round warms the caches.
      }
    }
    print(node, contenders, starts)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** An application as `svc init` makes it; with a number of routes, that many of one action. */
function makeApplication(name: string, routes?: number): string {
  const target = join(folder, name)
  initApplication(target)
  if (routes === undefined) return target
  const records = Array.from({ length: routes }, (_, at) => {
    const [area, item] = [at % 100, Math.floor(at / 100)]
    const url = [`/area${area}/item${item}`, `/area${area}/item${item}/:id`, `/area${area}/:id/part${item}`][at % 3]
    return { name: `route${at}`, url, method: 'GET', action: 'routes/home.mjs' }
  })
  writeFileSync(join(target, 'routes/app.json'), JSON.stringify(records, null, 2))
  return target
}

/** A copy of its own, so that its compile cache is its own too. */
function copy(name: string, parts: readonly string[]): string {
  const target = join(folder, name)
  for (const part of parts) {
    if (!existsSync(join(root, part))) throw new Error(`Cannot measure: ${part} is missing: run \`npm run build\``)
    cpSync(join(root, part), join(target, part), { recursive: true, preserveTimestamps: true })
  }
  return target
}

/** Starts a process and ends it. */
async function measure(node: string, { name, args, cwd, cache }: Contender): Promise<Start> {
  if (cache !== undefined) rmSync(cache, { recursive: true, force: true })
  const begun = performance.now()
  const child = spawn(node, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  let output = ''
  const listening = new Promise<number>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.includes('listening on')) resolve(performance.now() - begun)
    })
  })
  const ms = await Promise.race([listening, ended.then(() => Promise.reject(new Error(`${name} ended:\n${output}`)))])
  await delay(restMs)
  const memory = residentMemory(child.pid ?? 0)
  child.kill('SIGTERM')
  await ended
  return { ms, memory }
}

/** Mebibytes that a process has in memory; NaN where there is no /proc. */
function residentMemory(pid: number): number {
  const file = `/proc/${pid}/status`
  const [, kibibytes] = /^VmRSS:\s*(\d+)/m.exec(existsSync(file) ? readFileSync(file, 'utf8') : '') ?? []
  return Number(kibibytes) / 1024
}

function print(node: string, contenders: readonly Contender[], starts: readonly (readonly Start[])[]): void {
  const times = starts.map((list) => list.map(({ ms }) => ms))
  const memories = starts.map((list) => list.map(({ memory }) => memory))
  console.log(`Node ${ask(node, 'process.versions.node')}, ${rounds} alternating starts; ratios to the bare script`)
  for (const [at, { name }] of contenders.entries()) {
    console.log(`  ${name.padEnd(28)}${compare(times, at, 'ms')}   at rest${compare(memories, at, 'MiB')}`)
  }
  const [one = [], many = []] = times.slice(-2)
  const more = many.map((ms, round) => ms - (one[round] ?? Number.NaN))
  console.log(`  ${manyRoutes} routes are ready later than 1 by ${median(more).toFixed(0)} ms ${interval(more, 0)}`)
}

function compare(lists: readonly (readonly number[])[], at: number, unit: string): string {
  const [values = [], ofBare = []] = [lists[at], lists[0]]
  const toBare = ratios(values, ofBare)
  return ` ${median(values).toFixed(1).padStart(6)} ${unit}  ${median(toBare).toFixed(2)} ${interval(toBare, 2)}`
}

function interval(values: readonly number[], digits: number): string {
  const ends = medianInterval(values)
  return ends === undefined ? '' : `(${ends.low.toFixed(digits)} to ${ends.high.toFixed(digits)})`
}

function ask(node: string, expression: string): string {
  return spawnSync(node, ['-p', expression], { encoding: 'utf8', env }).stdout.trim()
}
