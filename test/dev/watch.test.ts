import assert from 'node:assert/strict'
import fs, { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { startApplication, testKey, writeFiles, type Files, type TestApplication } from '../support/application.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { createApp } from '../support/app.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { openStream, page, startDev, type PageStream } from './dev-support.ts'

const route = (name: string, action: string, more = {}): unknown => ({ name, url: `/${name}`, method: 'GET', scope: '', action, ...more })
const text = (value: string): string => `export default () => '${value}'\n`
const files: Files = {
  'routes/r.json': [route('a', 'a.mjs'), route('v', 'v.html')],
  'a.mjs': "import { word } from './lib/word.mjs'\nexport default () => word\n",
  'lib/word.mjs': "export const word = 'one'\n",
  'v.html': page('one'),
}

async function answer(server: { readonly url: string }, path: string): Promise<string> {
  const { status, text: body } = await request(server.url + path)
  return status === 200 ? body : String(status)
}

function shows(server: { readonly url: string }, path: string, body: string): Promise<void> {
  return until(async () => (await answer(server, path)) === body)
}

const reloads = (server: TestApplication): number => server.lines().filter((line) => line.includes('] routes reloaded: ')).length

/** Saves a view, and waits for its message: earlier saves have been reported by then, too. */
async function toldOfView(server: TestApplication, stream: PageStream): Promise<void> {
  const count = stream.news.length
  server.write({ 'v.html': page(`told ${count}`) })
  await stream.told(count + 1)
}

async function start(t: TestContext, more: Files = {}, config = {}): Promise<{ server: TestApplication; stream: PageStream }> {
  const server = await startDev(t, { ...files, ...more }, config)
  return { server, stream: await openStream(t, server.url) }
}

describe('a saved file', () => {
  test('is applied: a route file, an action, its imports, its view', async (t) => {
    const { server, stream } = await start(t)
    server.write({ 'lib/word.mjs': "export const word = 'two'\n" })
    await shows(server, '/a', 'two')
    await stream.told(1)
    server.write({ 'a.mjs': text('three') })
    await shows(server, '/a', 'three')
    await stream.told(2)
    server.write({ 'routes/s.json': [route('b', 'a.mjs')] })
    await shows(server, '/b', 'three')
    await stream.told(3)
    rmSync(join(server.folder, 'routes/s.json'))
    await shows(server, '/b', '404')
    await stream.told(4)
    server.write({ 'v.html': page('two') })
    await stream.told(5)
    assert.deepEqual(stream.news, [[], [], [], [], []])
    assert.equal(reloads(server), 4)
  })

  test('may be written to another name and renamed', async (t) => {
    const { server, stream } = await start(t)
    for (const [name, content] of [['a.mjs', text('two')], ['v.html', page('two')], ['routes/r.json', JSON.stringify([route('c', 'a.mjs')])]] as const) {
      const count = stream.news.length
      const path = join(server.folder, name)
      writeFileSync(`${path}.tmp~`, content)
      renameSync(path, `${path}.bak`)
      renameSync(`${path}.tmp~`, path)
      await stream.told(count + 1)
    }
    await shows(server, '/c', 'two')
  })

  test('together with many others causes one reload, or few', async (t) => {
    const many = Array.from({ length: 100 }, (_, at) => at)
    const modules = (value: string): Files => Object.fromEntries(many.map((at) => [`m${at}.mjs`, text(value)]))
    const { server } = await start(t, { ...modules('one'), 'routes/m.json': many.map((at) => route(`m${at}`, `m${at}.mjs`)) })
    server.write(modules('two'))
    await shows(server, '/m99', 'two')
    for (const at of many) assert.equal(await answer(server, `/m${at}`), 'two')
    assert.ok(reloads(server) <= 3, `${reloads(server)} reloads`)
  })

  test('with a mistake is refused and reported, and the next save fixes it', async (t) => {
    const { server, stream } = await start(t)
    const mistakes: Files = { 'routes/r.json': '[\n  { "name": ', 'a.mjs': 'export default () => {', 'lib/word.mjs': 'export const other = 1\n' }
    for (const [name, content] of Object.entries(mistakes)) {
      const count = stream.news.length
      server.write({ [name]: content })
      await stream.told(count + 1)
      assert.match(String(stream.news.at(-1)), new RegExp(name.replace('routes/', '')))
      assert.equal(await answer(server, '/a'), 'one')
      const said = server.lines().filter((line) => line.includes('[ERROR] [server] Cannot reload the routes, so the old ones stay: '))
      assert.match(said.at(-1) ?? '', new RegExp(name.replace('routes/', '')))
      server.write({ 'v.html': page('while it is refused') })
      await stream.told(count + 2)
      assert.deepEqual(stream.news.at(-1), [])
      assert.match(String((await openedNow(t, server)).news), new RegExp(name.replace('routes/', '')))
      server.write({ [name]: files[name] })
      await stream.told(count + 3)
      assert.deepEqual(stream.news.at(-1), [])
    }
    assert.equal(await answer(server, '/a'), 'one')
  })

  test('may be a missing module, or one that a refused one imports', async (t) => {
    const { server, stream } = await start(t, { 'routes/s.json': [route('b', 'later/b.mjs')] })
    assert.equal(await answer(server, '/b'), '500')
    server.write({ 'later/b.mjs': text('b') })
    await stream.told(1)
    assert.equal(await answer(server, '/b'), 'b')
    server.write({ 'a.mjs': "import { c } from './c.mjs'\nexport default () => c\n" })
    await stream.told(2)
    assert.match(String(stream.news.at(-1)), /a\.mjs:1/)
    server.write({ 'c.mjs': "export const c = 'c'\n" })
    await stream.told(3)
    assert.equal(await answer(server, '/a'), 'c')
  })

  test('may be middleware, its settings, an error view, a static file', async (t) => {
    const config = { 'paths.public': 'open' }
    const { server, stream } = await start(t, { 'open/a.css': '', 'routes/middleware/config.json': { load: ['m.mjs'] }, 'routes/middleware/m.mjs': 'export const m = (ctx, next) => next()\n' }, config)
    const saved: Files = {
      'routes/middleware/m.mjs': 'export const m = (ctx, next) => { ctx.setHeader("X-M", "1"); return next() }\n',
      'routes/middleware/config.json': { load: ['m.mjs'], setup: { csrf: { lapse: 10 } } },
      'routes/errors/404.html': page('own'),
      'open/a.css': 'p { color: red }',
      'open/pictures/b.svg': '<svg/>',
    }
    for (const [name, content] of Object.entries(saved)) {
      const count = stream.news.length
      server.write({ [name]: content })
      await stream.told(count + 1)
      assert.deepEqual(stream.news.at(-1), [], name)
    }
    assert.equal(reloads(server), 2)
  })

  test('elsewhere is ignored', async (t) => {
    const config = { 'paths.cache': 'cache', 'paths.temp': 'temporary', 'paths.log': 'logs' }
    const settings = { setup: { session: { store: 'file', path: 'kept' } } }
    const { server, stream } = await start(t, { 'data.json': {}, 'other.mjs': '', 'routes/middleware/config.json': settings }, config)
    const outside = ['cache/a.html', 'temporary/a.html', 'logs/a.html', 'node_modules/a/a.html', '.git/a.html', 'lib/.x/a.html']
    server.write(Object.fromEntries(outside.map((name) => [name, 'x'])))
    server.write({ 'data.json': { more: 1 }, 'other.mjs': 'export {}', 'notes.txt': '', 'v.html~': '', 'style.css': '', 'open/upload.png': '', 'lib/word.mjs.swp': '' })
    await toldOfView(server, stream)
    server.write(Object.fromEntries(outside.map((name) => [name, 'y'])))
    server.write({ 'data.json': { more: 2 }, 'other.mjs': '', 'lib/data.json': {} })
    await toldOfView(server, stream)
    assert.equal(stream.news.length, 2)
    assert.equal(readReloads(join(server.folder, 'logs'), server), 0)
  })

  test('keeps routes added and deleted at run time', async (t) => {
    const { server, stream } = await start(t)
    const post = (path: string, body: unknown): Promise<unknown> => request(`${server.url}/svc-routes/${path}`, { body: JSON.stringify(body) })
    await post('add', route('volatile', 'a.mjs'))
    await post('add', { ...(route('lasting', 'a.mjs') as object), persist: true })
    await stream.told(1) // Of admin.json.
    await post('delete', { name: 'v' })
    server.write({ 'a.mjs': text('two') })
    await stream.told(2)
    for (const path of ['/a', '/volatile', '/lasting']) assert.equal(await answer(server, path), 'two', path)
    assert.equal(await answer(server, '/v'), '404')
    await post('delete', { name: 'lasting' })
    assert.equal(await answer(server, '/lasting'), '404')
    await stream.told(3)
    server.write({ 'routes/s.json': [route('lasting', 'a.mjs')] })
    await shows(server, '/lasting', 'two')
    await post('delete', { name: 'volatile' })
    assert.equal(await answer(server, '/volatile'), '404')
    await request(`${server.url}/svc-routes/reload`, { body: '' })
    assert.equal(await answer(server, '/v'), page('one'))
  })
})

describe('a folder', () => {
  test('may be created later, with its files', async (t) => {
    const folder = temporaryFolder()
    const app = startIn(t, folder, { 'paths.routes': 'deep/routes', 'paths.middleware': 'deep/middleware' })
    const { url } = await app
    writeFiles(folder, { 'deep/routes/r.json': [route('a', 'deep/er/a.mjs')], 'deep/er/a.mjs': text('one') })
    await shows({ url }, '/a', 'one')
    writeFiles(folder, { 'deep/er/a.mjs': text('two') })
    await shows({ url }, '/a', 'two')
  })

  test('may be removed and created again', async (t) => {
    const { server, stream } = await start(t)
    const routes = join(server.folder, 'routes')
    renameSync(routes, `${routes}.old`)
    await stream.told(1)
    assert.match(String(stream.news), /the folder of route files does not exist/)
    assert.equal(await answer(server, '/a'), 'one')
    renameSync(`${routes}.old`, routes)
    await stream.told(2)
    rmSync(join(server.folder, 'lib'), { recursive: true })
    await until(() => String(stream.news.at(-1)).includes('word.mjs'))
    server.write({ 'lib/word.mjs': "export const word = 'two'\n" })
    await shows(server, '/a', 'two')
    server.write({ 'routes/r.json': [route('b', 'a.mjs')] })
    await shows(server, '/b', 'two')
  })

  test('may be replaced as a whole, even the root', async (t) => {
    const parent = temporaryFolder()
    const folder = join(parent, 'app')
    writeFiles(folder, files)
    const { url } = await startIn(t, folder)
    const next = join(parent, 'next')
    writeFiles(next, { ...files, 'lib/word.mjs': "export const word = 'two'\n" })
    renameSync(folder, join(parent, 'old'))
    renameSync(next, folder)
    await shows({ url }, '/a', 'two')
    writeFiles(folder, { 'lib/word.mjs': "export const word = 'three'\n" })
    await shows({ url }, '/a', 'three')
  })

  test('may be reached by a link', async (t) => {
    const parent = temporaryFolder()
    writeFiles(join(parent, 'real'), files)
    symlinkSync('real', join(parent, 'link'))
    const { url } = await startIn(t, join(parent, 'link'))
    writeFiles(join(parent, 'real'), { 'lib/word.mjs': "export const word = 'two'\n" })
    await shows({ url }, '/a', 'two')
  })

  test('may be recreated at once, repeatedly', async (t) => {
    const { server } = await start(t)
    for (const name of ['lib', 'routes', 'lib']) {
      for (let round = 0; round < 5; round++) {
        rmSync(join(server.folder, name), { recursive: true })
        server.write(name === 'lib' ? { 'lib/word.mjs': `export const word = '${name} ${round}'\n` } : { 'routes/r.json': [route('a', 'a.mjs', { scope: `s${round}` })] })
        if (name === 'lib') await shows(server, '/a', `${name} ${round}`)
        else await until(async () => (await request(`${server.url}/svc-routes/list?format=json`)).text.includes(`"s${round}"`))
      }
    }
  })

  test('that is created and removed a hundred times does not end the watch of others', async (t) => {
    const { server } = await start(t)
    for (let round = 0; round < 100; round++) {
      mkdirSync(join(server.folder, 'lib', 'x', 'y'), { recursive: true })
      rmSync(join(server.folder, 'lib', 'x'), { recursive: true })
    }
    server.write({ 'lib/word.mjs': "export const word = 'two'\n", 'lib/x/y/z.mjs': '' })
    await shows(server, '/a', 'two')
  })
})

describe('a system without further folder watches', () => {
  test('is reported once, and the server serves', async (t) => {
    const refuse = t.mock.method(fs, 'watch', () => {
      throw Object.assign(new Error('ENOSPC: System limit for number of file watchers reached'), { code: 'ENOSPC' })
    })
    syncBuiltinESMExports()
    try {
      const { server } = await start(t)
      const said = server.lines().filter((line) => line.includes('[WARN ] [server] Cannot watch every folder: '))
      assert.equal(said.length, 1)
      assert.match(said[0] ?? '', /ENOSPC: System limit for number of file watchers reached; after an undetected change, reload/)
      assert.equal(await answer(server, '/a'), 'one')
    } finally {
      refuse.mock.restore()
      syncBuiltinESMExports()
    }
  })
})

describe('the configuration', () => {
  test('is reported with what needs a restart', async (t) => {
    const folder = temporaryFolder()
    const config = { app_key: testKey, 'app.env': 'dev', server: { port: 0 }, 'log.console': false }
    writeFiles(folder, { ...files, 'svc.json': config })
    const { lines } = await startIn(t, folder)
    const said = (line: string): Promise<void> => until(() => lines().some((each) => each.endsWith(line)))
    writeFiles(folder, { 'svc.json': { ...config, server: { port: 0, body_limit_kb: 9 }, 'log.level': 'debug' } })
    await said('[INFO ] [server] svc.json was saved: restart the server for server.body_limit_kb, log.level')
    writeFiles(folder, { 'svc.json': config })
    await said('svc.json was saved: nothing in it needs a restart')
    writeFiles(folder, { 'svc.local.json': { 'paths.public': 'open' } })
    await said('svc.local.json was saved: restart the server for paths.public')
    writeFiles(folder, { 'svc.local.json': { settings: { mail: { host: 'a' } }, setup: { csrf: {} } } })
    await said('svc.local.json was saved: restart the server for settings, setup')
    writeFiles(folder, { 'svc.local.json': '{' })
    await until(() => lines().some((line) => line.includes('svc.local.json was saved: a restart would fail: Cannot load ')))
    assert.deepEqual(lines().filter((line) => line.includes('reloaded')), [])
  })

  test('is reported too when it was saved while the server started', async (t) => {
    const folder = temporaryFolder()
    const config = { app_key: testKey, 'app.env': 'dev', server: { port: 0 }, 'log.console': false }
    const changed = { ...config, 'paths.public': 'open' }
    writeFiles(folder, { ...files, 'open/a.css': 'a {}', 'svc.json': config })
    const { lines } = await startIn(t, folder, {}, () => writeFiles(folder, { 'svc.json': changed }))
    const reported = (): string[] => lines().filter((line) => line.endsWith(': restart the server for paths.public'))
    assert.match(reported().join(), /svc\.json was saved during the start: /)
    writeFiles(folder, { 'svc.json': { ...changed, 'dev.watch': true } })
    await until(() => reported().length === 2)
  })

  test('is not reported when nothing was saved', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, { ...files, 'svc.json': { app_key: testKey, 'app.env': 'dev', server: { port: 0 }, 'log.console': false } })
    const { lines } = await startIn(t, folder)
    assert.deepEqual(lines().filter((line) => line.includes('was saved')), [])
  })
})

describe('createApp', () => {
  test('watches only if enabled', async (t) => {
    const asked = await startDev(t, files)
    const others = [await startApplication(t, files, { 'app.env': 'dev' }), await startDev(t, files, { 'dev.watch': false }), await startApplication(t, files, {}, { watch: true })]
    for (const server of [...others, asked]) server.write({ 'a.mjs': text('two') })
    await shows(asked, '/a', 'two')
    for (const server of others) assert.equal(await answer(server, '/a'), 'one')
  })
})

/** Creates an app in a folder, with or without a `svc.json`. */
/** @param afterRead runs when the configuration has been read */
async function startIn(t: TestContext, folder: string, config: Readonly<Record<string, unknown>> = {}, afterRead = () => {}) {
  const given = { 'app.env': 'dev', 'server.port': 0, 'log.console': false, app_key: testKey, ...config }
  const file = join(folder, 'svc.json')
  const loaded = loadConfig(file)
  afterRead()
  const options = loaded.file === undefined ? { config: given, folder } : { loaded, configFile: file }
  const app = createApp({ ...options, watch: true })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  const { url } = await app.start()
  const lines = (): string[] => {
    app.flushLogs()
    return readFileSync(join(folder, '.logs/svc.log'), 'utf8').split('\n').slice(0, -1)
  }
  return { url, lines }
}

async function openedNow(t: TestContext, server: TestApplication): Promise<PageStream> {
  const stream = await openStream(t, server.url)
  await stream.told(1)
  return stream
}

function readReloads(folder: string, server: TestApplication): number {
  server.app.flushLogs()
  return readFileSync(join(folder, 'svc.log'), 'utf8').split('routes reloaded').length - 1
}
