/**
 * `npm run bench`: requests a second, processor time a request, latency and memory of svc, of bare `node:http` and of
 * what its users would pick instead. docs/decisions/performance.md says how it is measured; `--help` lists the options.
 *
 * Surprise: the access log and the metrics of svc are on, as in production; those of the others are off, but for the
 * rows of Fastify that say so.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { requireQuiet } from '../support/other-load.ts'
import { installPeers, peersFolder } from '../support/peers.ts'
import { readsZstd } from './answers.ts'
import { writeFigures } from './document.ts'
import { measure, turnMs, type Measurement } from './measure.ts'
import { findNode, ownNode } from './nodes.ts'
import { otherCheckout } from './server-process.ts'
import { readOptions, usage, type Options } from './options.ts'
import { renderSection, toSection, type Section } from './tables.ts'
import { comparedPackages, workloads, type Workload } from './workloads.ts'
import { LoadError, missingPrograms } from './wrk.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
/** Those that are measured on other versions of Node. */
const onEveryNode: readonly string[] = ['svc', 'svc, session', 'fastify']

// However it ends, no server and no file stays: that is done when this process exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
const options = readOptionsOrExit()
if (options.help) {
  console.log(usage)
} else {
  const tooFew = availableParallelism() < 2 ? 'Server and load need a core each: there is one' : ''
  const obstacle = missingPrograms() || tooFew || zstdObstacle(options)
  if (obstacle === '') await run(options)
  else giveUp(obstacle)
}

function readOptionsOrExit(): Options {
  try {
    return readOptions(process.argv.slice(2))
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}

${usage}`)
    process.exit(2)
  }
}

/** Asked before anything is measured: a run takes half an hour. */
function zstdObstacle({ nodes, workloads: names }: Options): string {
  const isAsked = workloads.some(({ name, coding }) => coding === 'zstd' && names.includes(name))
  if (readsZstd || !isAsked || !nodes.some((major) => major >= 24)) return ''
  return 'Cannot read zstd: start the benchmark with Node 22.15 or later, or name the workloads without those of zstd'
}

function giveUp(why: string): void {
  console.error(options.short ? `No ratios to bare node:http: ${why}` : why)
  process.exitCode = options.short ? 0 : 1
}

async function run({ short, write }: Options): Promise<void> {
  if (!short) installPeers(...comparedPackages)
  const conditions = describeConditions(options)
  console.log(`${conditions}\n`)
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  try {
    for (const workload of workloads.filter(({ name }) => options.workloads.includes(name))) {
      const before = write ? await requireQuiet() : 0
      const measurements = await measureOnNodes(workload, join(folder, workload.name))
      if (measurements.length === 0) continue
      const section = toSection(measurements)
      console.log(renderSection(section))
      if (write) writeDocument(conditions, section, Math.max(before, await requireQuiet()))
    }
  } catch (error) {
    if (!short || !(error instanceof LoadError)) throw error
    giveUp(error.message)
  }
}

async function measureOnNodes(workload: Workload, folder: string): Promise<Measurement[]> {
  const nodes = (options.nodes.length === 0 ? [ownNode] : options.nodes.map(findNode)).filter(({ version }) => {
    return workload.coding !== 'zstd' || Number.parseInt(version, 10) >= 24
  })
  const asked = options.servers ?? (options.nodes.length === 0 ? workload.servers : onEveryNode)
  const servers = workload.servers.filter((name) => name === 'bare' || asked.includes(name))
  const { connections, rounds, seconds, against } = options
  if (against !== undefined) servers.push(otherCheckout)
  const found: Measurement[] = []
  for (const node of nodes) {
    const own = join(folder, node.version)
    found.push(...(await measure({ workload, servers, node, connections, rounds, seconds, against, folder: own })))
  }
  return found
}

/** @param otherPercent the most of a core that another process took before and after */
function writeDocument(conditions: string, section: Section, otherPercent: number): void {
  const file = join(root, 'docs/decisions/performance.md')
  const order = workloads.map(({ title }) => title)
  const note = `${section.note} Another process took ${otherPercent.toFixed(1)} % of a core at most, before and after.`
  const sections = [{ ...section, note }]
  writeFileSync(file, writeFigures(readFileSync(file, 'utf8'), { conditions, sections, order }))
}

/** Without the date, so that a page that is measured anew differs in its figures alone. */
function describeConditions({ rounds, seconds, short }: Options): string {
  const versions = readPackage(join(peersFolder, 'package.json')).dependencies ?? {}
  const machine = `${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${cpus().length} cores, Linux ${release()}`
  const packages = comparedPackages.map((name) => `${name} ${versions[name]}`)
  const own = `svc ${readPackage(join(root, 'package.json')).version}`
  return `${machine}; ${rounds} rounds of ${seconds} s in turns of ${turnMs} ms; ${own}${short ? '' : `; ${packages.join(', ')}`}.`
}

function readPackage(file: string): PackageFile {
  return JSON.parse(readFileSync(file, 'utf8')) as PackageFile // npm has read it before.
}

/** What is read of a package.json. */
interface PackageFile {
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, string>>
}
