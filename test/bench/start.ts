/**
 * Start-up: from the spawn of a process to its `listening on` line, for a bare `node:http` script, for the compiled
 * server, and for the server in TypeScript with a cold and with a warm compile cache. Rounds alternate; medians.
 *
 *   npm run bench:start [-- NODE ...]     with other Nodes than the one that runs this, by their paths
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { initApplication } from '../../lib/cli/init.ts'
import { median } from './support/statistics.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const rounds = 21

interface Contender {
  readonly name: string
  readonly args: readonly string[]
  /** A folder to remove before each start. */
  readonly cache?: string
}

const bare = `import { createServer } from 'node:http'
const server = createServer((request, response) => response.end('here'))
server.listen(0, '127.0.0.1', () => console.log('listening on http://127.0.0.1:' + server.address().port))
`

const folder = mkdtempSync(join(tmpdir(), 'svc-start-'))
try {
  const application = join(folder, 'application')
  initApplication(application)
  writeFileSync(join(folder, 'bare.mjs'), bare)
  const compiled = copy('compiled', ['bin', 'dist', 'package.json'])
  const cold = copy('cold', ['bin', 'lib', 'package.json'])
  const warm = copy('warm', ['bin', 'lib', 'package.json'])
  const start = ['start', '--port', '0']
  const nodes = process.argv.length > 2 ? process.argv.slice(2) : [process.execPath]
  for (const node of nodes) {
    const runsTypeScript = ask(node, 'Boolean(process.features.typescript)') === 'true'
    const asOldNode = runsTypeScript ? ['--no-experimental-strip-types'] : []
    const contenders: Contender[] = [
      { name: 'bare node:http', args: [join(folder, 'bare.mjs')] },
      { name: 'svc, compiled', args: [...asOldNode, join(compiled, 'bin/svc.js'), ...start] },
    ]
    if (runsTypeScript) {
      const cache = join(cold, '.cached')
      contenders.push({ name: 'svc, TypeScript, cold cache', args: [join(cold, 'bin/svc.js'), ...start], cache })
      contenders.push({ name: 'svc, TypeScript, warm cache', args: [join(warm, 'bin/svc.js'), ...start] })
    }
    const times = contenders.map((): number[] => [])
    for (let round = 0; round <= rounds; round += 1) {
      for (const [at, contender] of contenders.entries()) {
        const ms = await measure(node, contender, application)
        if (round > 0) times[at]?.push(ms) // The first round warms the caches.
      }
    }
    const medians = times.map(median)
    console.log(`Node ${ask(node, 'process.versions.node')}, medians of ${rounds} alternating starts`)
    for (const [at, { name }] of contenders.entries()) {
      const ms = medians[at] as number
      console.log(`  ${name.padEnd(28)} ${ms.toFixed(1).padStart(6)} ms  ${(ms / (medians[0] as number)).toFixed(2)}`)
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
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

/** Milliseconds from the spawn to the line that says that it listens. */
async function measure(node: string, { name, args, cache }: Contender, cwd: string): Promise<number> {
  if (cache !== undefined) rmSync(cache, { recursive: true, force: true })
  const begun = performance.now()
  const child = spawn(node, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  let output = ''
  const listening = new Promise<number>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.includes('listening on')) resolve(performance.now() - begun)
    })
  })
  const ms = await Promise.race([listening, ended.then(() => Promise.reject(new Error(`${name} ended:\n${output}`)))])
  child.kill('SIGTERM')
  await ended
  return ms
}

function ask(node: string, expression: string): string {
  return spawnSync(node, ['-p', expression], { encoding: 'utf8' }).stdout.trim()
}
