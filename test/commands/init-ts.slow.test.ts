// `init --ts` as a newcomer uses it: the launcher creates the application, checks it, serves it, and reloads it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { launch, optionsOfSources, root, runLauncher } from '../support/launch.ts'
import { printedWithoutNode } from '../support/node-warnings.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const runsTypeScript = Boolean(Reflect.get(process.features, 'typescript')) && process.env['SVC_TEST_TARGET'] !== 'dist'

describe('init --ts', () => {
  it('creates an application that type-checks, passes its check and runs; elsewhere names the required Node', async (t) => {
    const cwd = temporaryFolder()
    const made = await runLauncher(t, ['init', 'app', '--ts'], { cwd })
    const folder = join(cwd, 'app')
    if (!runsTypeScript) {
      assert.deepEqual([made.status, made.stdout, existsSync(folder)], [1, '', false])
      assert.match(made.stderr, /^Cannot create an application in TypeScript: Node [\d.]+ .*; use Node 22\.18 or later, 24 or 26\n$/)
      return
    }
    assert.deepEqual([made.status, made.stderr], [0, ''])
    assert.match(made.stdout, /\n {2}routes\/home\.ts\n[^]*\n {2}package\.json\n {2}AGENTS\.md\n {2}tsconfig\.json\n/)
    assert.match(made.stdout, /\nIn that folder, npm run dev starts it on http:\/\/127\.0\.0\.1:8080, and npm test tests it\.\n/)
    const checked = await runLauncher(t, ['check'], { cwd: folder })
    assert.deepEqual({ ...checked, stdout: printedWithoutNode(checked.stdout) }, {
      status: 0,
      stdout: `${join(folder, 'svc.json')}: all is well, 2 routes\n`,
      stderr: '',
    })
    const server = launch(t, ['--port', '0', '--env', 'dev'], { cwd: folder })
    const url = await server.listening()
    assert.match((await request(url)).text, /<h1>It works<\/h1>[^]*<dt>routes\/home\.ts<\/dt>/)
    assert.deepEqual((await request(`${url}/hello/ann`)).json(), { hello: 'ann' })

    // Without a package: the compiler is that of the project.
    assert.ok(!existsSync(join(folder, 'node_modules')))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const compile = (): string => spawnSync('npm', ['run', '--silent', 'check'], { cwd: folder, encoding: 'utf8' }).stdout
    assert.equal(compile(), '')

    const refusing = (status: number): string => `import { HttpError, type Action } from 'svc'
const home: Action = () => { throw new HttpError(${status}, 'no', 'Not here') }
export default home
export const hello: Action<'/hello/:name'> = ({ params }) => params.name
`
    for (const status of [404, 418]) {
      writeFiles(folder, { 'routes/home.ts': refusing(status) })
      assert.deepEqual((await request(`${url}/svc-routes/reload`)).status, 200)
      assert.equal((await request(url)).status, status)
    }
    assert.equal(compile(), '')
    writeFiles(folder, { 'routes/home.ts': refusing(404).replace('params.name', 'params.nam') })
    assert.match(compile(), /^routes\/home\.ts\(4,.*: error TS2551: Property 'nam' does not exist/)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
  })
})

/** What an application does that keeps files. */
const keeps = `
import { writeFileSync } from 'node:fs'
writeFileSync(\`\${process.env.STATE_DIRECTORY ?? '.'}/kept.txt\`, '')
`

describe('npm test of a new application', () => {
  it('leaves the files of the application alone, passes, fails with a fault, and fails without tests', async (t) => {
    for (const option of runsTypeScript ? [[], ['--ts']] : [[]]) {
      const cwd = temporaryFolder()
      await runLauncher(t, ['init', 'app', ...option], { cwd })
      const folder = join(cwd, 'app')
      const files = readdirSync(folder).sort()
      appendFileSync(join(folder, option.length === 0 ? 'routes/home.mjs' : 'routes/home.ts'), keeps)
      const runTests = () => spawnSync('npm', ['test', '--silent'], { cwd: folder, encoding: 'utf8', env: environment() })
      const passed = runTests()
      assert.equal(passed.status, 0, passed.stdout + passed.stderr)
      assert.match(passed.stdout, /pass 2\n/)
      assert.deepEqual(readdirSync(folder).sort(), files) // No logs, no cache, no kept file.
      writeFiles(folder, { 'routes/home.html': '<h1>{{ title }}</h1>' })
      assert.notEqual(runTests().status, 0)
      rmSync(join(folder, 'test'), { recursive: true })
      assert.notEqual(runTests().status, 0)
    }
  })
})

/** With this Node, and without what a test runner sets for its children. */
function environment(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, PATH = '', ...others } = process.env
  return { ...others, PATH: `${dirname(process.execPath)}:${PATH}` }
}

describe('import svc', () => {
  it('installs its hook when a module needs it, and not before', () => {
    const folder = temporaryFolder()
    writeFiles(folder, { 'a.mjs': 'export default 1', 'b.mjs': "import 'svc'\nexport default 2" })
    const modules = new URL('../../lib/modules/modules.ts', import.meta.url).href
    const program = `
      const { Modules } = await import(${JSON.stringify(modules)})
      const modules = new Modules(${JSON.stringify(folder)})
      const there = () => import('svc').then(({ createApp }) => typeof createApp, ({ code }) => code)
      for (const file of ['a.mjs', 'b.mjs']) console.log((await modules.load(${JSON.stringify(`${folder}/`)} + file)).default, await there())
      process.exit()`
    const target = process.env['SVC_TEST_TARGET'] === 'dist' ? ['--import', join(root, 'test/support/dist-target.js')] : []
    const args = [...optionsOfSources(), ...target, '--input-type=module', '--eval', program]
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    assert.equal(stdout, '1 ERR_MODULE_NOT_FOUND\n2 function\n', stderr)
  })

  it('is the running server, from whatever file it was started, also in several processes', async (t) => {
    const folder = temporaryFolder()
    const other = "exports.HttpError = class extends Error {}\nexports.createApp = () => 'another'\n"
    writeFiles(folder, {
      'svc.json': { app: { env: 'dev' }, log: { console: true }, server: { processes: 2 }, app_key: 'a key of the tests, thirty-two long' },
      'node_modules/svc/index.js': other,
      'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs' }, { name: 'b', url: '/b', action: 'b.cjs' }],
      'a.mjs': "import { HttpError } from 'svc'\nexport default () => { throw new HttpError(418, 'tea', 'Tea') }\n",
      'b.cjs': "module.exports = async () => { const { HttpError } = await import('svc'); throw new HttpError(409, 'tea', 'Tea') }\n",
    })
    const server = launch(t, ['--port', '0'], { cwd: folder })
    const url = await server.listening()
    await until(async () => (await request(`${url}/svc-ready`)).status === 200)
    for (let at = 0; at < 8; at++) {
      assert.equal((await request(url)).status, 418)
      assert.equal((await request(`${url}/b`)).status, 409)
    }
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
  })
})
