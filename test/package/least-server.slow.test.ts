/** The least server: an installation without its unused rooms. `node test/run.js --least` runs its tests. */
import assert from 'node:assert/strict'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { cookieOf, credentials, nowSeconds } from '../panel/panel-server.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { makeCertificate } from '../support/certificate.ts'
import { launch, optionsOfTarget, root, runLauncher, runsTypeScript } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { optionalRooms } from '../../lib/proof/tiers.ts'

const target = process.env['SVC_TEST_TARGET'] === 'dist' ? 'dist' : 'lib'
const launcher = installLeast()
/** What a program imports: Node 20 runs only `dist/`. */
const imported = runsTypeScript ? target : 'dist'

/** Creates the installation; returns its launcher. */
function installLeast(without: readonly string[] = optionalRooms): string {
  const folder = temporaryFolder()
  for (const name of ['bin', 'lib', 'dist', 'package.json']) cpSync(join(root, name), join(folder, name), { recursive: true })
  for (const room of without) for (const side of ['lib', 'dist']) rmSync(join(folder, side, room), { recursive: true })
  return join(folder, 'bin/svc.js')
}

const tls = { 'server.tls.cert': 'cert.pem', 'server.tls.key': 'key.pem' }
const setup = { 'routes/middleware/config.json': { setup: { jwt: { key: 'x'.repeat(32) } } } }

describe('the least server', () => {
  it('serves, and a module imports svc', async (t) => {
    const cwd = applicationFolder({
      'home.mjs': "import { HttpError, fields } from 'svc'\nexport default () => ({ is: [typeof HttpError, typeof fields] })",
    })
    const server = launch(t, [], { cwd, launcher, nodeOptions: optionsOfTarget() })
    const url = await server.listening()
    assert.deepEqual((await request(url)).json(), { is: ['function', 'function'] })
    assert.equal((await request(`${url}/svc-login`)).status, 200)
    assert.equal((await request(`${url}/svc-live.js`)).status, 404)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.doesNotMatch(server.stdout(), /\[(?:ERROR|FATAL)\]|missing/)
  })

  const asked: readonly (readonly [by: string, config: object, room: string, args?: string[], env?: Record<string, string>])[] = [
    ['shared.url', { 'shared.url': 'redis://127.0.0.1' }, 'nodes'],
    ['app.env "dev"', { 'app.env': 'dev' }, 'dev'],
    ['server.processes', { 'server.processes': 2 }, 'cluster'],
    ['server.hang_trace_s', { 'server.hang_trace_s': 5 }, 'diagnose'],
    ['server.tls.cert', tls, 'tls'],
    ['setup.jwt', {}, 'jwt'],
    ['the variable SVC_APP_KEY', {}, 'systemd', [], { SVC_APP_KEY: 'x'.repeat(32) }],
    ['svc check', {}, 'commands', ['check']],
    ['svc routes', {}, 'commands', ['routes']],
    ['svc init', {}, 'commands', ['init', 'new']],
    ['svc passwd', {}, 'commands', ['passwd']],
    ['svc permissions', {}, 'commands', ['permissions']],
    ['svc docs', {}, 'manual', ['docs']],
  ]
  for (const [by, config, room, args = [], env = {}] of asked) {
    it(`exits with 78 and names the folder that ${by} needs`, async (t) => {
      const cwd = applicationFolder(room === 'jwt' ? setup : {}, { ...config })
      const { status, stdout, stderr } = await runLauncher(t, args, { cwd, launcher, env, nodeOptions: optionsOfTarget() })
      assert.equal(status, 78)
      const lines = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('missing'))
      assert.equal(lines.length, 1, `${stdout}${stderr}`)
      assert.ok(lines[0]?.endsWith(`${by} needs the folder ${target}/${room}, which is missing from this installation`), lines[0])
      assert.doesNotMatch(`${stdout}${stderr}`, /^\s+at /m)
    })
  }

  it('serves under a service manager without the watch of the event loop', async (t) => {
    const options = { launcher: installLeast(['diagnose']), nodeOptions: optionsOfTarget(), env: { INVOCATION_ID: 'a' } }
    const server = launch(t, [], { cwd: applicationFolder(), ...options })
    assert.equal((await request(await server.listening())).text, 'home')
  })

  it('names the folder that another room needs', async (t) => {
    const cwd = applicationFolder({}, { 'shared.url': 'redis://127.0.0.1' })
    const { status, stderr } = await runLauncher(t, [], { cwd, launcher: installLeast(['redis']), nodeOptions: optionsOfTarget() })
    assert.equal(status, 78)
    assert.equal(stderr, `shared.url needs the folder ${target}/redis, which is missing from this installation\n`)
    const check = await runLauncher(t, ['check'], { cwd, launcher: installLeast(['describe']), nodeOptions: optionsOfTarget() })
    assert.equal(check.status, 78)
    assert.match(check.stderr, new RegExp(`^svc check needs the folder ${target}/describe, which is missing`, 'm'))
  })

  it('shows no description of its routes and no profiles, and names the folders that they need', async (t) => {
    const routes = { 'routes/api.json': [{ name: 'api', url: '/api', action: 'svc:openapi' }] }
    const server = launch(t, [], { cwd: applicationFolder(routes, credentials), launcher, nodeOptions: optionsOfTarget() })
    const url = await server.listening()
    const headers = { accept: 'application/json', cookie: cookieOf(nowSeconds()) }
    const { status, text } = await request(`${url}/svc-openapi`, { headers })
    const sentence = `svc:openapi needs the folder ${target}/describe, which is missing from this installation`
    assert.deepEqual([status, text], [404, JSON.stringify({ error: 'not_found', detail: sentence })])
    assert.equal((await request(`${url}/api`)).status, 500)
    const profile = await request(`${url}/svc-profile`, { headers })
    assert.deepEqual([profile.status, profile.text.includes(`needs the folder ${target}/diagnose`)], [404, true])
    server.child.kill('SIGTERM')
    await server.ended
    assert.ok(server.stdout().includes(sentence), server.stdout())
  })

  it('warns of a module with WebSockets, serves the rest of it, and logs why live pages fail', async (t) => {
    const cwd = applicationFolder({
      'routes/more.json': [{ name: 'chat', url: '/chat', action: 'chat.mjs' }, { name: 'who', url: '/who', action: 'who.mjs' }],
      'chat.mjs': "export const websocket = { open() {} }\nexport default () => 'page'",
      'who.mjs': "export default (ctx) => { ctx.presence(ctx.channel('room'), { id: 1 }); return ctx.sse(ctx.channel('room')) }",
    })
    const server = launch(t, [], { cwd, launcher, nodeOptions: optionsOfTarget() })
    const url = await server.listening()
    assert.equal((await request(`${url}/chat`)).text, 'page')
    assert.equal((await request(`${url}/who`)).status, 500)
    server.child.kill('SIGTERM')
    await server.ended
    const sentence = (by: string, room: string): string => `${by} needs the folder ${target}/${room}, which is missing from this installation`
    assert.ok(server.stdout().includes(sentence('the export websocket', 'websocket')), server.stdout())
    assert.ok(server.stdout().includes(sentence('ctx.presence', 'live')), server.stdout())
  })

  it('is built by createApp too, which names a missing folder, and has every room in a whole installation', async (t) => {
    const folder = temporaryFolder()
    const { cert, key } = makeCertificate(folder, 'svc')
    const entry = (launcher: string): string => JSON.stringify(join(launcher, `../../${imported}/index.${imported === 'dist' ? 'js' : 'ts'}`))
    const config = { 'server.port': 0, 'log.console': false, 'app.env': 'dev', 'server.tls.cert': cert, 'server.tls.key': key }
    const program = (launcher: string, more: object): string => `import { createApp } from ${entry(launcher)}
      try {
        const app = createApp({ folder: ${JSON.stringify(folder)}, config: ${JSON.stringify(more)} })
        const { url } = await app.start()
        const { status } = await app.request('/svc-live.js')
        await app.stop()
        app.closeLogs()
        console.log(url.slice(0, 8), status)
      } catch (error) {
        console.log(error.message)
      }`
    const rows: readonly (readonly [launcher: string, config: object, printed: string])[] = [
      [launcher, { 'server.port': 0, 'log.console': false }, 'http://1 404'],
      [launcher, config, `app.env "dev" needs the folder ${imported}/dev, which is missing from this installation`],
      [join(root, 'bin/svc.js'), config, 'https:// 200'],
    ]
    for (const [at, more, printed] of rows) {
      writeFileSync(join(folder, 'program.mjs'), program(at, more))
      const run = launch(t, [], { cwd: folder, launcher: join(folder, 'program.mjs'), nodeOptions: [] })
      assert.equal(await run.ended, 0, run.stderr())
      assert.equal(run.stdout(), `${printed}\n`)
    }
  })
})
