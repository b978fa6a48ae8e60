// Compiles lib/ to dist/, a file each, and puts what a start loads into a few, dist/bundle/, which the launcher runs: Node 20
// takes about half a millisecond for each module that it loads, which was half of the start-up. What several of them need is
// in files that they share, so that a class is one and the same for all of them, and for an application that imports svc.
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

const entries = ['cli/main.js', 'cli/primary.js', 'cli/worker.js', 'index.js']
// Node loads the module hooks by their own file; these words of the command line run alone, when they are given.
const apart = ['routing/module-hooks.js', 'cli/check.js', 'cli/init.js', 'cli/passwd.js', 'cli/routes.js']
const built =
  run(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--outDir', aside], root) &&
  bundle(aside, 'bundle', entries, apart)
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
 * Joins modules and all that they import into a file each, and files that these share. esbuild comes with tsx, which runs
 * the tests.
 * @param apart modules that stay files of their own
 */
function bundle(folder, outdir, entries, apart) {
  const names = ['--entry-names=[name]', '--chunk-names=shared-[hash]']
  const options = ['--bundle', '--splitting', '--platform=node', '--format=esm', '--target=node20', '--log-level=warning', ...names]
  const external = apart.map((path) => `--external:./${path}`)
  return run(join(root, 'node_modules', '.bin', 'esbuild'), [...entries, `--outdir=${outdir}`, ...options, ...external], folder)
}

function run(file, args, cwd) {
  const { status, error } = spawnSync(file, args, { cwd, stdio: 'inherit' })
  if (error !== undefined) console.error(`Cannot run ${file}: ${error.message}`)
  return status === 0
}
