// Compiles lib/ to dist/, a file each, and puts what a start loads into one: dist/cli/bundle.js, which the launcher runs.
// Node 20 takes about half a millisecond for each module that it loads, which made half of the start-up. With --if-needed it succeeds without the compiler where Node runs TypeScript as it is.
// Surprise: dist/built has the time at which the build began, so that a source changed meanwhile counts as newer.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, relative, resolve } from 'node:path'
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

const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--outDir', aside], {
  cwd: root,
  stdio: 'inherit',
})
if (status !== 0) {
  rmSync(aside, { recursive: true, force: true })
  process.exit(status ?? 1)
}
await bundle(join(aside, 'cli', 'main.js'), join(aside, 'cli', 'bundle.js'))
cpSync(join(root, 'lib'), aside, { recursive: true, filter: (path) => extname(path) !== '.ts' })
rmSync(target, { recursive: true, force: true })
renameSync(aside, target)
writeFileSync(join(target, 'built'), `${process.versions.node}\n`)
utimesSync(join(target, 'built'), begun, begun)

/**
 * Joins a module and all that it imports. What it imports at run time stays apart, and so do the module hooks, which Node
 * loads by their own file.
 */
async function bundle(entry, outfile) {
  // esbuild comes with tsx, which runs the tests.
  const { build } = createRequire(createRequire(import.meta.url).resolve('tsx/package.json'))('esbuild')
  const isApart = ({ kind, path }) => kind === 'dynamic-import' || path.endsWith('/module-hooks.js')
  const keepApart = ({ resolveDir, path, kind }) => {
    if (!isApart({ kind, path })) return undefined
    const way = relative(dirname(outfile), resolve(resolveDir, path))
    return { path: way.startsWith('.') ? way : `./${way}`, external: true }
  }
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
    plugins: [{ name: 'apart', setup: ({ onResolve }) => onResolve({ filter: /^\.\.?\// }, keepApart) }],
  })
}
