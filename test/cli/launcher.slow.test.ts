import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { version } from '../../lib/base/version.ts'
import { writeFiles } from '../support/application.ts'
import { launch, root } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const runsTypeScript = Boolean((process.features as { typescript?: string | false }).typescript)
/** Makes a Node with TypeScript support behave like one without. */
const withoutTypeScript = runsTypeScript ? ['--no-experimental-strip-types'] : []
const node = process.versions.node

/** Runs a program in a folder with Node. */
function run(folder: string, args: string[], nodeOptions: string[] = [], env: Record<string, string> = {}): object {
  const { NODE_OPTIONS: _, ...inherited } = process.env
  const options = { cwd: folder, encoding: 'utf8', env: { ...inherited, ...env } } as const
  const { status, stdout, stderr } = spawnSync(process.execPath, [...nodeOptions, ...args], options)
  return { status, stdout, stderr }
}

const printsVersion = { status: 0, stdout: `svc ${version}\n`, stderr: '' }
const refuses = (reason: string): object => ({ status: 1, stdout: '', stderr: `Cannot start svc: ${reason}\n` })

/** Copies the tracked files needed to build and run. */
function copyCheckout(folder: string, names = ['bin', 'lib', 'routes', 'svc.json', 'package.json', 'tsconfig.json', 'tsconfig.build.json']): string {
  for (const name of names) cpSync(join(root, name), join(folder, name), { recursive: true, preserveTimestamps: true })
  return folder
}

describe('the launcher', () => {
  const cleanups: (() => void)[] = []
  let built: string

  before(() => {
    built = copyCheckout(temporaryFolder())
    symlinkSync(join(root, 'node_modules'), join(built, 'node_modules'))
    const { status, stdout } = run(built, ['bin/build.js']) as { status: number; stdout: string }
    assert.equal(status, 0, stdout)
  })
  after(() => cleanups.forEach((clean) => clean()))

  const copyBuilt = (folder: string): string => {
    cpSync(join(built, 'dist'), join(folder, 'dist'), { recursive: true, preserveTimestamps: true })
    return copyCheckout(folder)
  }

  it('runs lib directly if Node runs TypeScript, without a build or a warning', () => {
    const folder = copyCheckout(temporaryFolder())
    const tsx = import.meta.resolve('tsx')
    const options = runsTypeScript ? [] : ['--import', tsx]
    assert.deepEqual(run(folder, ['bin/svc.js', '--version'], options), printsVersion)
    assert.deepEqual(run(folder, ['bin/svc.js', '--version'], [], { NODE_OPTIONS: `--import ${tsx}` }), printsVersion)
  })

  it('names the required version on a Node that is too old, before any other problem, and runs nothing', () => {
    const folder = copyCheckout(temporaryFolder())
    for (const old of ['18.20.8', '20.18.1', '12.22.12']) {
      const versions = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${old}' } })`
      const options = ['--import', `data:text/javascript,${encodeURIComponent(versions)}`]
      const reason = `Node ${old} is too old: use Node 20.19 or later (docs/install.md says how)`
      assert.deepEqual(run(folder, ['bin/svc.js', 'start'], options), refuses(reason))
    }
  })

  it('serves the pages of the panel when the folder of the server is moved while it runs', async (t) => {
    const [folder, cwd] = [join(temporaryFolder(), 'server'), temporaryFolder()]
    copyBuilt(folder)
    writeFiles(cwd, { 'svc.json': { 'server.port': 0, app_key: 'a key of the tests, of 32 characters' }, 'routes/a.json': [] })
    const server = launch(t, ['--env', 'dev'], { cwd, launcher: join(folder, 'bin/svc.js') })
    const url = await server.listening()
    assert.equal((await request(`${url}/svc-routes/list`)).status, 200)
    renameSync(folder, `${folder}.old`)
    for (const name of ['routes/list', 'routes/listall', 'routes/diff', 'index', 'monitor', 'errors', 'config', 'changes', 'live.js']) {
      assert.equal((await request(`${url}/svc-${name}`)).status, 200, name)
    }
    assert.doesNotMatch(server.stdout(), /ERROR/)
  })

  it('runs dist otherwise', () => {
    const folder = copyBuilt(temporaryFolder())
    assert.deepEqual(run(folder, ['bin/svc.js', '--version'], withoutTypeScript), printsVersion)
    rmSync(join(folder, 'lib'), { recursive: true })
    assert.deepEqual(run(folder, ['bin/svc.js', '--version'], withoutTypeScript), printsVersion)
  })

  it('refuses a dist that is missing, incomplete, or older than lib', () => {
    const missing = copyCheckout(temporaryFolder())
    const reason = `dist/ is missing, and Node ${node} does not run TypeScript: run \`npm run build\``
    assert.deepEqual(run(missing, ['bin/svc.js'], withoutTypeScript), refuses(reason))
    const half = copyBuilt(temporaryFolder())
    rmSync(join(half, 'dist/built'))
    assert.deepEqual(run(half, ['bin/svc.js'], withoutTypeScript), refuses(reason))

    const stale = copyBuilt(temporaryFolder())
    const soon = new Date(Date.now() + 1000)
    utimesSync(join(stale, 'lib/http/json.ts'), soon, soon)
    const older = `dist/ is older than lib/, and Node ${node} does not run TypeScript: run \`npm run build\``
    assert.deepEqual(run(stale, ['bin/svc.js'], withoutTypeScript), refuses(older))
  })

  it('works after the build that it requests', () => {
    const folder = copyCheckout(temporaryFolder())
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    assert.equal((run(folder, ['bin/build.js']) as { status: number }).status, 0)
    assert.deepEqual(run(folder, ['bin/svc.js', '--version'], withoutTypeScript), printsVersion)
  })

  describe('the build', () => {
    it('without the compiler fails with a remedy', () => {
      const folder = copyBuilt(temporaryFolder())
      const { status, stderr } = run(folder, ['bin/build.js']) as { status: number; stderr: string }
      assert.equal(status, 1)
      assert.match(stderr, /^Cannot build dist\/: typescript is not installed: run `npm ci`/)
      assert.ok(statSync(join(folder, 'dist/built')).isFile())
    })

    it('when installed without the compiler is needed only if Node does not run TypeScript', () => {
      const folder = copyCheckout(temporaryFolder())
      const prepare = (options: string[]): object => run(folder, ['bin/build.js', '--if-needed'], options)
      assert.equal((prepare(withoutTypeScript) as { status: number }).status, 1)
      assert.equal((prepare([]) as { status: number }).status, runsTypeScript ? 0 : 1)
    })

    it('keeps the old dist when lib does not compile', () => {
      const folder = copyBuilt(temporaryFolder())
      symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
      const before = statSync(join(folder, 'dist/built')).mtimeMs
      writeFileSync(join(folder, 'lib/wrong.ts'), 'export const one: string = 1\n')
      const { status, stdout } = run(folder, ['bin/build.js']) as { status: number; stdout: string }
      assert.notEqual(status, 0)
      assert.match(stdout, /lib\/wrong\.ts.*TS2322/)
      assert.equal(statSync(join(folder, 'dist/built')).mtimeMs, before)
      assert.deepEqual(readdirSync(folder).filter((name) => name.startsWith('dist.')), [])
    })
  })

  it('installed from its package runs dist, creates an application, serves it, and can be imported', async (t) => {
    const folder = temporaryFolder()
    const npm = (args: string[], cwd: string): string =>
      execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    npm(['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], built)
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
    npm(['install', '--offline', '--no-audit', '--no-fund', `./svc-${version}.tgz`], folder)
    const installed = join(folder, 'node_modules/svc')
    assert.equal(npm(['exec', '--offline', '--', 'svc', '--version'], folder), `svc ${version}\n`)

    const launcher = join(installed, 'bin/svc.js')
    assert.equal((run(folder, [launcher, 'init', 'app']) as { status: number }).status, 0)
    writeFiles(join(folder, 'app'), {
      'routes/errors.json': [{ name: 'teapot', url: '/teapot', action: 'errors.mjs' }],
      'errors.mjs': "import { HttpError } from 'svc'\nexport default () => { throw new HttpError(418, 'teapot', 'No coffee here') }",
    })
    const server = launch(t, ['--port', '0'], { cwd: join(folder, 'app'), launcher, nodeOptions: [] })
    const url = await server.listening()
    assert.match((await request(url)).text, /It works/)
    assert.equal((await request(`${url}/teapot`)).status, 418)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.equal(server.stderr(), '')

    const script = "import { createApp } from 'svc'; console.log(typeof createApp, import.meta.resolve('svc'))"
    const entry = pathToFileURL(join(installed, 'dist/index.js')).href
    assert.deepEqual(run(folder, ['--input-type=module', '-e', script]), { status: 0, stdout: `function ${entry}\n`, stderr: '' })

    const later = new Date(Date.now() + 1000)
    utimesSync(join(installed, 'lib/app.ts'), later, later)
    assert.deepEqual(run(folder, [launcher, '--version']), printsVersion)
    rmSync(join(installed, 'lib'), { recursive: true })
    assert.deepEqual(run(folder, [launcher, '--version']), printsVersion)
    renameSync(join(installed, 'dist'), join(installed, 'gone'))
    assert.deepEqual(run(folder, [launcher]), refuses('dist/ is missing: install the package again'))
  })
})
