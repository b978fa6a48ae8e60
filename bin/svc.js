#!/usr/bin/env node
// Starts svc: from lib/*.ts where Node runs TypeScript as it is, so that what is read is what runs; else from dist/.
// Surprise: under node_modules Node runs no TypeScript, and the times of files are those of their installation.
import { readdirSync, statSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

// What these ask for, the start does by itself: they must not end it. The server takes them over once it is there.
for (const signal of ['SIGHUP', 'SIGUSR2']) process.on(signal, () => {})

refuseOldNode()
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const installed = root.split(sep).includes('node_modules')
const underTsx = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((arg) => /\btsx\b/.test(arg))
const fromSource = !installed && (Boolean(process.features.typescript) || underTsx)

if (!fromSource) refuseBadBuild()
const args = process.argv.slice(2)
// A checksum ties an entry to its source, and anyone who can write the folder can make one: a proof runs the sources.
if (!args.includes('digest') && !args.includes('verify')) {
  nodeModule.enableCompileCache?.(join(root, '.cached', 'compile')) // Off where the folder cannot be written.
}
const { main } = await import(fromSource ? '../lib/cli/main.ts' : '../dist/cli/main.js')
await main(args)

function refuseOldNode() {
  const { node } = process.versions
  const [major, minor] = node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return
  console.error(`Cannot start svc: Node ${node} is too old: use Node 20.19 or later (docs/install.md says how)`)
  process.exit(1)
}

function refuseBadBuild() {
  const built = timeOf(join(root, 'dist', 'built'))
  if (built > 0 && (installed || built >= newestSource(join(root, 'lib')))) return
  const what = built > 0 ? 'dist/ is older than lib/' : 'dist/ is missing'
  const why = installed ? '' : `, and Node ${process.versions.node} does not run TypeScript`
  const advice = installed ? 'install the package again' : 'run `npm run build`'
  console.error(`Cannot start svc: ${what}${why}: ${advice}`)
  process.exit(1)
}

function newestSource(folder) {
  let newest = 0
  for (const entry of list(folder)) {
    const path = join(folder, entry.name)
    newest = Math.max(newest, entry.isDirectory() ? newestSource(path) : timeOf(path))
  }
  return newest
}

function list(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // Without its sources there is nothing that dist/ could be older than.
  }
}

function timeOf(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
