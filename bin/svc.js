#!/usr/bin/env node
// Starts svc: from lib/*.ts where Node runs TypeScript as it is, so that what is read is what runs; else from dist/.
import { readdirSync, statSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const underTsx = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((arg) => /\btsx\b/.test(arg))
const runsTypeScript = Boolean(process.features.typescript) || underTsx
const fromSource = runsTypeScript && !root.split(sep).includes('node_modules')

if (!fromSource) refuseStaleBuild()
// Node checks an entry against the source text before it uses it; a folder that cannot be written turns this off.
nodeModule.enableCompileCache?.(join(root, '.cached', 'compile'))
const { main } = await import(fromSource ? '../lib/cli/main.ts' : '../dist/cli/main.js')
await main(process.argv.slice(2))

function refuseStaleBuild() {
  const built = timeOf(join(root, 'dist', 'built'))
  if (built >= newestSource(join(root, 'lib'))) return
  const what = built === 0 ? 'dist/ is missing' : 'dist/ is older than lib/'
  console.error(`Cannot start svc: ${what}, and Node ${process.versions.node} does not run TypeScript: run \`npm run build\``)
  process.exit(1)
}

function newestSource(folder) {
  let newest = 0
  for (const entry of list(folder)) {
    const path = join(folder, entry.name)
    const time = entry.isDirectory() ? newestSource(path) : timeOf(path)
    if (time > newest) newest = time
  }
  return newest
}

function list(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // A package without its sources has nothing that dist/ could be older than.
  }
}

function timeOf(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
