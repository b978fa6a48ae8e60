// Compiles lib/ to dist/, a file each, and puts what a start loads into one, dist/cli/bundle.js, which the launcher runs:
// Node 20 takes about half a millisecond for each module that it loads, which was half of the start-up.
// With --if-needed it succeeds without the compiler where Node runs TypeScript as it is.
// Surprise: dist/built has the time at which the build began, so that a source changed meanwhile counts as newer.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const target = join(root, 'dist')
const aside = join(root, `dist.${process.pid}`)
const begun = new Date()

if (!existsSync(compiler)) {
  if (process.argv.includes('--if-needed') && process.features.typescript) {
    console.log(`No build: Node ${process.versions.node} runs lib/*.ts as it is`)
    process.exit(0)
  }
  console.error('Cannot build dist/: typescript is not installed: run `npm ci` (without --omit=dev), then `npm run build`')
  process.exit(1)
}

// Node loads the module hooks by their own file; the words of the command line are loaded when they are given.
const apart = ['routing/module-hooks.js', 'cli/check.js', 'cli/init.js', 'cli/passwd.js', 'cli/routes.js', 'cli/primary.js', 'cli/worker.js']
const built =
  run(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--outDir', aside], root) &&
  bundle(aside, 'cli/main.js', 'cli/bundle.js', apart)
if (!built) {
  rmSync(aside, { recursive: true, force: true })
  process.exit(1)
}
cpSync(join(root, 'lib'), aside, { recursive: true, filter: (path) => extname(path) !== '.ts' })
rmSync(target, { recursive: true, force: true })
renameSync(aside, target)
writeFileSync(join(target, 'built'), `${process.versions.node}\n`)
utimesSync(join(target, 'built'), begun, begun)

/**
 * Joins a module and all that it imports into one file. esbuild comes with tsx, which runs the tests.
 * @param apart modules that stay files of their own
 */
function bundle(folder, entry, outfile, apart) {
  const options = ['--bundle', '--platform=node', '--format=esm', '--target=node20', '--log-level=warning']
  const external = apart.map((path) => `--external:./${path}`)
  return run(join(root, 'node_modules', '.bin', 'esbuild'), [entry, `--outfile=${outfile}`, ...options, ...external], folder)
}

function run(file, args, cwd) {
  const { status, error } = spawnSync(file, args, { cwd, stdio: 'inherit' })
  if (error !== undefined) console.error(`Cannot run ${file}: ${error.message}`)
  return status === 0
}
