// Runs the tests: `node test/run.js [--alone] [--dist] [--coverage] [name ...]`, where a name is a part of a test file's path.
// It lists the files itself, since Node 20 finds no TypeScript test by itself and ends with success when it finds none.
//   --all        those too that need programs besides Node, of Debian: Chromium, promtool, wrk, nginx, logrotate, systemd's
//                tools, slowhttptest, GoAccess, Python, iproute2, Redis, HAProxy
//   --alone      one file after the other, for those that take all of a machine
//   --dist       the same tests on the compiled `dist/`
//   --coverage   under c8, lines and branches at least 90 %
//   --exec FILE  runs one TypeScript program (a benchmark, a generator) the way the tests are run
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folders of tests that a machine with Node alone cannot run. */
const needMore = ['test/browser/', 'test/external/']
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const args = process.argv.slice(2)
const all = take('--all')
const alone = take('--alone')
const dist = take('--dist')
const coverage = take('--coverage')
const program = takeValue('--exec')

const loader = process.features.typescript ? [] : ['--import', 'tsx']
const target = dist ? ['--import', './test/support/dist-target.js'] : []
const env = { ...process.env, SVC_TEST_TARGET: dist ? 'dist' : 'lib' }

if (program !== undefined) {
  run(process.execPath, [...loader, ...target, program, ...args])
} else {
  const files = testFiles('test').filter((file) =>
    args.length === 0 ? all || !needMore.some((folder) => file.startsWith(folder)) : args.some((name) => file.includes(name)),
  )
  if (files.length === 0) {
    console.error(`No test file matches ${args.join(' ') || 'test/**/*.test.ts'}`)
    process.exit(1)
  }
  // This reporter names what failed once more at the end, whatever the Node and wherever it prints to.
  const settings = ['--test', `--test-concurrency=${alone ? 1 : 4}`, '--test-timeout=600000', '--test-reporter=spec']
  const command = [...loader, ...target, ...settings, ...files]
  if (!coverage) run(process.execPath, command)
  const limits = ['--check-coverage', '--lines=90', '--branches=90', '--functions=0', '--statements=0']
  const report = ['--include=lib/**/*.ts', '--reporter=text', '--reporter=html', ...limits]
  run(process.execPath, ['node_modules/c8/bin/c8.js', ...report, process.execPath, ...command])
}

function run(file, list) {
  const { status, signal } = spawnSync(file, list, { cwd: root, env, stdio: 'inherit' })
  if (signal) console.error(`Ended by ${signal}`)
  process.exit(status ?? 1)
}

function testFiles(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts') && !entry.parentPath.includes('node_modules'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()
}

function take(word) {
  const at = args.indexOf(word)
  if (at >= 0) args.splice(at, 1)
  return at >= 0
}

function takeValue(word) {
  const at = args.indexOf(word)
  return at < 0 ? undefined : args.splice(at, 2)[1]
}
