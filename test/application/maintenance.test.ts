import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { Maintenance } from '../../lib/application/maintenance.ts'
import type { CoreContext } from '../../lib/http/context.ts'
import { startPanel, type PanelServer } from '../panel/panel-server.ts'
import { openHandshake } from './maintenance-support.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const page = '<!doctype html><title>Back soon</title><style>p { color: red }</style><p>{{ 1 + 1 }} @if</p>'
const files = {
  'routes/a.json': [
    { name: 'home', url: '/', action: 'home.mjs' },
    { name: 'poll', url: '/poll', action: 'home.mjs@poll' },
    { name: 'style', url: '/style.css', method: 'POST', action: 'home.mjs' },
  ],
  'home.mjs': "export default () => 'home'\nexport const poll = ({ longPoll, channel }) => longPoll(channel('news'))",
  'public/logo.svg': '<svg/>',
  'public/style.css': 'p {}',
  'public/app.html': 'the fallback',
}
const config = { 'paths.public': 'public', 'static.fallback': 'app.html' }
const wantsPage = { accept: 'text/html' }

async function start(t: TestContext): Promise<PanelServer & { turn(isOn: boolean): Promise<void> }> {
  const server = await startPanel(t, config, files)
  const turn = async (isOn: boolean): Promise<void> => {
    if (isOn) server.write({ 'maintenance.html': page })
    else rmSync(join(server.folder, 'maintenance.html'), { recursive: true })
    await until(async () => ((await server.ask('/')).status === 503) === isOn)
  }
  return Object.assign(server, { turn })
}

describe('maintenance', () => {
  it('shows visitors the file as it is, and ends when it is removed', async (t) => {
    const server = await start(t)
    assert.equal((await server.ask('/')).text, 'home')
    await server.turn(true)
    const { status, headers, text } = await server.ask('/', { headers: wantsPage })
    assert.deepEqual([status, text], [503, page])
    assert.deepEqual([headers['retry-after'], headers['cache-control'], headers['content-type']], ['60', 'no-store', 'text/html; charset=utf-8'])
    assert.match(String(headers['content-security-policy']), /style-src 'self' 'unsafe-inline'; script-src 'none'/)
    const asJson = await server.ask('/unknown', { headers: { accept: 'application/json' } })
    assert.deepEqual([asJson.status, asJson.json(), asJson.headers['retry-after']], [503, { error: 'maintenance' }, '60'])
    for (const method of ['POST', 'OPTIONS', 'HEAD', 'DELETE']) {
      assert.equal((await server.ask('/', { method })).status, 503, method)
    }
    await server.turn(false)
    assert.deepEqual(server.lines().filter((line) => line.includes('maintenance')), ['INFO server maintenance begins', 'INFO server maintenance ends'])
  })

  it('serves static files that no route names, without the fallback', async (t) => {
    const server = await start(t)
    assert.equal((await server.ask('/page', { headers: wantsPage })).text, 'the fallback')
    await server.turn(true)
    assert.equal((await server.ask('/logo.svg')).text, '<svg/>')
    assert.equal((await server.ask('/page', { headers: wantsPage })).text, page)
    assert.equal((await server.ask('/style.css')).status, 503)
  })

  it('leaves the panel as it is, and shows a signed-in administrator the application', async (t) => {
    const server = await start(t)
    await server.turn(true)
    assert.equal((await server.askSignedIn('/')).text, 'home')
    assert.equal((await server.ask('/', { headers: { cookie: 'svc_admin=1.2' } })).status, 503)
    assert.deepEqual((await server.ask('/svc-ready')).json(), { status: 'ready' })
    assert.equal((await server.ask('/%73vc-ping')).status, 200)
    const { warnings } = (await server.askSignedIn('/svc-status?format=json')).json() as { warnings: string[] }
    assert.deepEqual(warnings.filter((line) => line.startsWith('maintenance')), [`maintenance: visitors get 503; to end it, remove ${join(server.folder, 'maintenance.html')}`])
    assert.equal((await server.ask('/svc-unknown')).status, 404)
  })

  it('ends waiting polls without an event, and refuses handshakes', async (t) => {
    const server = await start(t)
    const waiting = request(`${server.url}/poll`)
    await until(async () => {
      const { pool_rest: { longpoll } } = (await server.askSignedIn('/svc-status?format=json')).json() as { pool_rest: { longpoll: number } }
      return longpoll === 1
    })
    await server.turn(true)
    const { status, json } = await waiting
    assert.deepEqual([status, (json() as { events: unknown }).events], [200, []])
    assert.match(await openHandshake(server.port), /^HTTP\/1\.1 503 /)
  })

  it('shows a built-in page and a warning in place of a folder, of too much, or of what it cannot read', async (t) => {
    const server = await start(t)
    const file = join(server.folder, 'maintenance.html')
    const rows: [() => void, RegExp][] = [
      [() => mkdirSync(file), /maintenance\.html is no file, so visitors get a built-in page/],
      [() => writeFileSync(file, 'x'.repeat(2 ** 20 + 1)), /has more than 1048576 bytes, so visitors get a built-in page/],
    ]
    if (process.getuid?.() !== 0) {
      rows.push([() => {
        writeFileSync(file, 'x')
        chmodSync(file, 0)
      }, /cannot be read, so visitors get a built-in page/])
    }
    for (const [make, problem] of rows) {
      make()
      await until(async () => (await server.ask('/')).status === 503)
      assert.match((await server.ask('/', { headers: wantsPage })).text, /<h1>503 Service Unavailable<\/h1>/)
      assert.ok(server.app.warnings().some((line) => problem.test(line)), server.app.warnings().join('\n'))
      await server.turn(false)
    }
    assert.deepEqual(server.app.warnings().filter((line) => line.includes('maintenance')), [])
  })

  it('shows a built-in page, without a warning, while the file is empty', async (t) => {
    const server = await start(t)
    server.write({ 'maintenance.html': '' })
    await until(async () => (await server.ask('/')).status === 503)
    assert.match((await server.ask('/', { headers: wantsPage })).text, /<h1>503 Service Unavailable<\/h1>/)
    assert.deepEqual(server.app.warnings().filter((line) => line.includes('paths.maintenance')), [])
    server.write({ 'maintenance.html': page })
    await until(async () => (await server.ask('/', { headers: wantsPage })).text === page)
  })

  it('shows a changed file', async (t) => {
    const server = await start(t)
    await server.turn(true)
    server.write({ 'maintenance.html': 'until noon' })
    await until(async () => (await server.ask('/', { headers: wantsPage })).text === 'until noon')
  })

  it('notices a change of the same size within a step of the clock', async () => {
    const file = join(temporaryFolder(), 'maintenance.html')
    const maintenance = new Maintenance({ file, isAdmin: () => false, onChange: () => {} })
    writeFileSync(file, 'one')
    await maintenance.look()
    const { atime, mtime } = statSync(file)
    writeFileSync(file, 'two')
    utimesSync(file, atime, mtime)
    await maintenance.look()
    assert.equal(maintenance.page({ id: '' } as CoreContext).html, 'two')
  })

  it('stays as it is while the file cannot be examined', async () => {
    const file = join(temporaryFolder(), 'x'.repeat(300))
    const changes: boolean[] = []
    const maintenance = new Maintenance({ file, isAdmin: () => false, onChange: (isOn) => changes.push(isOn) })
    await maintenance.look()
    assert.deepEqual([maintenance.keepsOut({ path: '/' } as CoreContext), changes], [false, []])
    assert.match(maintenance.warnings().join(), /cannot be examined, so maintenance stays as it is: ENAMETOOLONG/)
  })
})
