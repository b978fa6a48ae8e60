// Runs the tests: `node test/run.js [--all] [--slow] [--alone] [--dist] [--least] [--coverage] [--timeout=MS] [name ...]`.
// A name is a part of a test file's path; `!name` leaves those with that part out. Without one, all tests run but the slow
// ones (`*.slow.test.ts`) and those that need programs besides Node.
//   --slow       the slow ones alone
//   --all        every test, those too that need programs of Debian: Chromium, promtool, wrk, nginx, logrotate, systemd's
//                tools, slowhttptest, GoAccess, Python, iproute2, Redis, HAProxy, Caddy, PostgreSQL, PHP, shellcheck
//   --alone      one process after the other, for tests that take all of a machine
//   --dist       the same tests on the compiled `dist/`
//   --least      the tests of the least server, in a copy without the rooms that an installation may leave out
//   --coverage   the slow tests too, and those that need Redis, under c8: lines at least 99 %, branches at least 97 %
//   --timeout=MS the longest that one file may take, and so one test; five times that of those that run apart
//   --exec FILE  runs one TypeScript program (a benchmark, a generator) the way the tests are run
// The files of a room run in one process (`support/room.js`): to start one costs more than to run most files. A slow file
// has a process of its own.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { copyLeast, testsOfLeast } from './support/least.js'

/** Folders of tests that a machine with Node alone cannot run. */
const needMore = ['test/browser/', 'test/external/']
/** How many processes share the files of a big room. */
const parts = { access: 2, core: 3, docs: 2, hostile: 2, http: 2, panel: 2 }

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const args = process.argv.slice(2)
const all = take('--all')
const slow = take('--slow')
const alone = take('--alone')
const dist = take('--dist')
const least = take('--least')
const coverage = take('--coverage')
const timeoutMs = Number(takeValue('--timeout') ?? 120_000)
const program = takeValue('--exec')

const loader = process.features.typescript ? [] : ['--import', 'tsx']
const target = dist ? ['--import', './test/support/dist-target.js'] : []
const env = { ...process.env, SVC_TEST_TARGET: dist ? 'dist' : 'lib' }

if (program !== undefined) {
  process.exit(run(process.execPath, [...loader, ...target, program, ...args]))
}
const unknown = args.find((name) => name.startsWith('-'))
const files = testFiles().filter(isChosen)
if (unknown !== undefined || files.length === 0) {
  console.error(unknown === undefined ? `No test file matches ${args.join(' ') || 'test/**/*.test.ts'}` : `Unknown option ${unknown}`)
  process.exit(1)
}
process.exit(least ? runLeast() : runTests())

function runLeast() {
  const chosen = testsOfLeast(root, files)
  if (chosen.length === 0) {
    console.error(`No test of ${args.join(' ')} runs without the rooms that may be left out`)
    return 1
  }
  const folder = copyLeast(root)
  try {
    return run(process.execPath, [join(folder, 'test/run.js'), ...chosen])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function isChosen(file) {
  const isSlow = file.endsWith('.slow.test.ts')
  if (slow && !isSlow) return false
  if (args.some((name) => name.startsWith('!') && file.includes(name.slice(1)))) return false
  const names = args.filter((name) => !name.startsWith('!'))
  if (names.length > 0) return names.some((name) => file.includes(name))
  if (coverage && file.startsWith('test/external/redis')) return true
  return all || (!needMore.some((folder) => file.startsWith(folder)) && (isSlow ? slow || coverage : true))
}

function runTests() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'))
  try {
    const entries = groupsOf(files).map(([name, group]) => entryOf(folder, name, group))
    // This reporter names what failed once more at the end, with its place, whatever the Node and wherever it prints to.
    const settings = ['--test', `--test-concurrency=${alone ? 1 : 4}`, '--test-reporter=spec']
    const command = [...loader, ...target, ...settings, ...entries]
    const limits = ['--check-coverage', '--lines=99', '--branches=97', '--functions=0', '--statements=0']
    // A hidden folder: `svc check` compiles every HTML file of the others as a view of the demo.
    const report = ['--include=lib/**/*.ts', '--reports-dir=.coverage', '--reporter=text', '--reporter=html', ...limits]
    const status = coverage
      ? run(process.execPath, ['node_modules/c8/bin/c8.js', ...report, process.execPath, ...command])
      : run(process.execPath, command)
    for (const note of readdirSync(join(folder, 'running'))) {
      console.error(`Did not end: ${readFileSync(join(folder, 'running', note), 'utf8')}`)
    }
    return status
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The files that share a process, by the name of their group. */
function groupsOf(list) {
  const groups = new Map()
  const count = new Map()
  for (const file of list) {
    const room = file.split('/').at(-2)
    const at = count.get(room) ?? 0
    const name = isApart(file) ? file : room in parts ? `${room} ${1 + (at % parts[room])}` : room
    if (name !== file) count.set(room, at + 1)
    groups.set(name, [...(groups.get(name) ?? []), file])
  }
  return [...groups]
}

/** Whether a file has a process of its own. */
function isApart(file) {
  return alone || file.endsWith('.slow.test.ts') || needMore.some((folder) => file.startsWith(folder))
}

/** Writes the program that runs a group; returns its path. */
function entryOf(folder, name, group) {
  const base = name.replaceAll(/[^\w.-]/g, '-')
  const notes = join(folder, 'running')
  mkdirSync(notes, { recursive: true })
  const room = pathToFileURL(join(root, 'test/support/room.js')).href
  const fileTimeoutMs = isApart(group[0]) ? 5 * timeoutMs : timeoutMs
  const options = { noteFile: join(notes, base), timeoutMs: fileTimeoutMs, roomTimeoutMs: 5 * timeoutMs + 60_000 }
  const path = join(folder, `${base}.mjs`)
  writeFileSync(path, `import { runRoom } from ${JSON.stringify(room)}\nrunRoom(${JSON.stringify(group)}, ${JSON.stringify(options)})\n`)
  return path
}

function run(file, list) {
  const { status, signal } = spawnSync(file, list, { cwd: root, env, stdio: 'inherit' })
  if (signal) console.error(`Ended by ${signal}`)
  return status ?? 1
}

function testFiles() {
  return readdirSync(join(root, 'test'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts') && !entry.parentPath.includes('node_modules'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()
}

function take(word) {
  const at = args.indexOf(word)
  if (at >= 0) args.splice(at, 1)
  return at >= 0
}

/** The value of `--name VALUE` or `--name=VALUE`. */
function takeValue(word) {
  const at = args.findIndex((arg) => arg === word || arg.startsWith(`${word}=`))
  if (at < 0) return undefined
  const isJoined = args[at] !== word
  const taken = args.splice(at, isJoined ? 1 : 2)
  return isJoined ? taken[0].slice(word.length + 1) : taken[1]
}
