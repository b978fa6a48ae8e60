/**
 * `npm run bench -- packages [FOLDER]`: what a team installs with other frameworks for what this server brings, as the table
 * of docs/why.md: packages, lines of JavaScript, megabytes. The packages are in `packages.json`; a level has those of the
 * levels before it, too. npm installs what was published by the day given there. FOLDER keeps the installations.
 *
 * Surprise: the lines are those of each file that V8 has seen once all packages are imported, whether or not its functions
 * ever run. Of this server they are all of the least server, and all of it.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { scriptsIn } from '../sizes/loaded.ts'
import { filesBelow, serverCells, sizeCell } from '../support/why-page.ts'

interface Level {
  /** Versions by name. */
  readonly packages: Readonly<Record<string, string>>
  /** What an application imports beside the packages' own names. */
  readonly imports?: readonly string[]
}

const levels = ['alone', 'pages', 'whole'] as const
type Framework = { readonly name: string } & Readonly<Record<(typeof levels)[number], Level>>

/** npm's list of what it has installed, as far as it is read here. */
interface Installed {
  readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>
}

// The file is beside this one; another form of it fails below.
const { day, frameworks } = JSON.parse(readFileSync(new URL('packages.json', import.meta.url), 'utf8')) as {
  readonly day: string
  readonly frameworks: readonly Framework[]
}
const [, , kept] = process.argv
const folder = kept === undefined ? mkdtempSync(join(tmpdir(), 'svc-packages-')) : resolve(kept)
const native = new Set<string>()
try {
  console.log(`Node ${process.version}, packages as of ${day}: packages, lines, MB\n`)
  print('', 'alone', 'pages and forms', 'all of it')
  console.log('| --- | --- | --- | --- |')
  for (const framework of frameworks) print(framework.name, ...levels.map((_, at) => measure(framework, at)))
  print('svc', '', ...serverCells())
  console.log(`\nWith native code or scripts that run at the installation: ${[...native].sort().join(', ')}`)
} finally {
  if (kept === undefined) rmSync(folder, { recursive: true, force: true })
}

function measure(framework: Framework, at: number): string {
  const chosen = levels.slice(0, at + 1).map((name) => framework[name])
  const packages: Record<string, string> = Object.assign({}, ...chosen.map((level) => level.packages))
  const place = join(folder, `${framework.name}-${levels[at]}`)
  install(place, packages)
  const modules = join(place, 'node_modules')
  const list = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')) as Installed
  const installed = Object.keys(list.packages).filter((path) => existsSync(join(place, path)))
  for (const path of installed) {
    if (list.packages[path]?.hasInstallScript === true || hasNative(join(place, path))) native.add(path.slice('node_modules/'.length))
  }
  const loaded = loadedBy(place, [...Object.keys(packages), ...chosen.flatMap(({ imports = [] }) => imports)])
  return sizeCell(installed.length, loaded, filesBelow(modules))
}

/** Installs exact versions, and of what they depend on those that there were on the day. Runs no scripts of packages. */
function install(place: string, packages: Readonly<Record<string, string>>): void {
  const text = JSON.stringify({ private: true, type: 'module', dependencies: packages })
  const manifest = join(place, 'package.json')
  if (existsSync(join(place, 'node_modules')) && readFileSync(manifest, 'utf8') === text) return
  rmSync(place, { recursive: true, force: true })
  mkdirSync(place, { recursive: true })
  writeFileSync(manifest, text)
  const options = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', `--before=${day}`]
  const { status } = spawnSync('npm', ['install', ...options], { cwd: place, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`Cannot install the packages in ${place}: npm install failed`)
}

/** The files of packages that a process has loaded once it has imported these names. */
function loadedBy(place: string, names: readonly string[]): string[] {
  const coverage = mkdtempSync(join(folder, 'coverage-'))
  writeFileSync(join(place, 'load.js'), `${names.map((name) => `await import('${name}')\n`).join('')}process.exit()\n`)
  const env = { ...process.env, NODE_V8_COVERAGE: coverage }
  const { status, stderr } = spawnSync(process.execPath, ['load.js'], { cwd: place, env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`Cannot import the packages in ${place}: ${stderr}`)
  const loaded = scriptsIn(coverage).filter((path) => path.startsWith(join(place, 'node_modules')))
  rmSync(coverage, { recursive: true })
  return loaded
}

/** Whether a package has compiled code or sources to compile; packages within it are looked at by themselves. */
function hasNative(place: string): boolean {
  const own = filesBelow(place).map((file) => file.slice(place.length)).filter((file) => !file.startsWith('/node_modules/'))
  return own.some((file) => file.endsWith('.node') || file.endsWith('binding.gyp'))
}

function print(...cells: readonly string[]): void {
  console.log(`| ${cells.join(' | ')} |`)
}
