// Compiles lib/ to dist/, a file each. With --if-needed it succeeds without the compiler where Node runs TypeScript as it is.
// Surprise: dist/built has the time at which the build began, so that a source changed meanwhile counts as newer.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const target = join(root, 'dist')
const aside = join(root, `dist.${process.pid}`)
const begun = new Date()
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

if (!existsSync(compiler)) {
  if (process.argv.includes('--if-needed') && process.features.typescript) {
    console.log(`No build: Node ${process.versions.node} runs lib/*.ts as it is`)
    process.exit(0)
  }
  console.error('Cannot build dist/: typescript is not installed: run `npm ci` (without --omit=dev), then `npm run build`')
  process.exit(1)
}

const options = [compiler, '-p', 'tsconfig.build.json', '--outDir', aside]
const { status, error } = spawnSync(process.execPath, options, { cwd: root, stdio: 'inherit' })
if (error !== undefined) console.error(`Cannot run ${compiler}: ${error.message}`)
if (status !== 0) {
  rmSync(aside, { recursive: true, force: true })
  process.exit(1)
}
cpSync(join(root, 'lib'), aside, { recursive: true, filter: (path) => extname(path) !== '.ts' })
rmSync(target, { recursive: true, force: true })
renameSync(aside, target)
writeFileSync(join(target, 'built'), `${version}\n`)
utimesSync(join(target, 'built'), begun, begun)
