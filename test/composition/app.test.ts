import assert from 'node:assert/strict'
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { chooseAppKey, publishedInsecureAppKey } from '../../lib/config/app-key.ts'
import { createApp } from '../support/app.ts'
import { ConfigError, loadConfig, parseConfig } from '../../lib/config/load.ts'
import { ReloadError } from '../../lib/control/commands.ts'
import { startApplication, testKey, writeFiles } from '../support/application.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const quiet = { 'server.port': 0, 'log.console': false, app_key: testKey }

describe('createApp', () => {
  it('refuses a configuration that cannot be used', () => {
    const folder = temporaryFolder()
    assert.throws(() => createApp({ folder, config: { server: { port: -1 } } }), ConfigError)
    writeFiles(folder, { file: '' })
    assert.throws(
      () => createApp({ folder, config: { ...quiet, 'paths.public': 'file' } }),
      (error) => error instanceof ConfigError && error.message.includes('paths.public: '),
    )
  })

  it('takes an appKey instead of that of the configuration, loaded or passed as a value', (t) => {
    const folder = temporaryFolder()
    const config = { app_key: 'other', 'log.console': false }
    for (const options of [{ config }, { loaded: parseConfig(config, folder) }]) {
      const app = createApp({ folder, appKey: 'mine', ...options })
      t.after(() => app.closeLogs())
      assert.equal(app.config.app_key, 'mine')
    }
  })

  it('removes the uploads of a killed process from paths.temp at the start, and reports what it cannot remove', async (t) => {
    const left = `.cached/temp/svc-upload-${process.pid}-${hostname()}-abcdef`
    const { folder, lines } = await startApplication(t, { [`${left}/0`]: 'x' })
    assert.equal(existsSync(join(folder, left)), false)
    assert.match(lines().join('\n'), /\[INFO \] \[server\] removed the leftover uploads of 1 aborted requests from \/.*\.cached\/temp$/m)
    const wrong = await startApplication(t, { temp: 'a file' }, { 'paths.temp': 'temp' })
    assert.match(wrong.lines().join('\n'), /\[WARN \] \[server\] Cannot remove the leftover uploads in \/.*\/temp: ENOTDIR/m)
  })

  it('needs nothing but a folder with routes', (t) => {
    const app = createApp({ folder: temporaryFolder() })
    t.after(() => app.closeLogs())
    assert.equal(app.config['server.port'], 8080)
    assert.match(app.warnings().join(), /app_key is empty/)
    const here = createApp({ config: { 'paths.log': temporaryFolder() } })
    t.after(() => here.closeLogs())
    assert.equal(here.config['app.env'], 'prod')
  })
})

describe('the application secret', () => {
  const rows: readonly [env: 'dev' | 'prod', key: string, chosen: string | undefined, warning: RegExp | undefined][] = [
    ['dev', '', publishedInsecureAppKey, undefined],
    ['dev', 'own', 'own', undefined],
    ['dev', publishedInsecureAppKey, publishedInsecureAppKey, undefined],
    ['prod', 'x'.repeat(31), 'x'.repeat(31), /app_key has fewer than 32 characters/],
    ['prod', 'x'.repeat(32), 'x'.repeat(32), undefined],
    ['prod', publishedInsecureAppKey, publishedInsecureAppKey, /published default: anyone can sign tokens/],
    ['prod', '', undefined, /a random one is used, so signed tokens end with this process/],
  ]
  for (const [env, key, chosen, warning] of rows) {
    it(`is chosen in ${env} for ${JSON.stringify(key)}`, () => {
      const { config } = parseConfig({ 'app.env': env, app_key: key }, '.')
      const { key: found, warnings: said } = chooseAppKey(config)
      if (chosen !== undefined) assert.equal(found, chosen)
      else assert.ok(found.length >= 43 && found !== chooseAppKey(config).key)
      assert.equal(said.length, warning === undefined ? 0 : 1)
      if (warning !== undefined) assert.match(said[0] ?? '', warning)
    })
  }

  it('is not the published one in app_key_previous of prod either: the log and the warnings report it', async (t) => {
    const previous = { app_key_previous: ['may', publishedInsecureAppKey] }
    const warning = /^app_key_previous holds the published default: anyone can sign tokens/
    const { app, lines } = await startApplication(t, {}, previous)
    assert.equal(app.warnings().length, 1)
    assert.match(app.warnings()[0] ?? '', warning)
    assert.ok(lines().some((line) => line.includes(`[WARN ] [config] ${app.warnings()[0]}`)))
    for (const key of ['', publishedInsecureAppKey]) {
      const { warnings } = chooseAppKey(parseConfig({ app_key: key, ...previous }, '.').config)
      assert.equal(warnings.length, 2)
      assert.match(warnings[1] ?? '', warning)
    }
    assert.deepEqual(chooseAppKey(parseConfig({ 'app.env': 'dev', ...previous }, '.').config).warnings, [])
  })
})

describe('the start', () => {
  it('logs the version, the warnings and the address', async (t) => {
    const { app, lines, url, port } = await startApplication(t, {}, { app_key: '', 'server.prot': 1 })
    const said = lines().map((line) => line.slice(26))
    assert.match(said[0] ?? '', /^\[INFO \] \[server\] svc\/\d+\.\d+\.\d+ on Node \d+\.\d+\.\d+, prod, process \d+, code [0-9a-f]{64}, configuration without a file$/)
    assert.match(said[1] ?? '', /^\[WARN \] \[config\] .*server\.prot/)
    assert.match(said[2] ?? '', /^\[WARN \] \[config\] app_key is empty/)
    assert.match(said[3] ?? '', /^\[WARN \] \[server\] the admin panel is not set up/)
    assert.equal(said[4], `[INFO ] [server] listening on http://127.0.0.1:${port}`)
    assert.equal(url, `http://127.0.0.1:${port}`)
    assert.equal(app.warnings().length, 2)
  })

  it('puts an IPv6 address in brackets', async (t) => {
    const { url, port } = await startApplication(t, {}, { 'server.host': '::1' })
    assert.equal(url, `http://[::1]:${port}`)
    assert.equal((await request(url)).status, 404)
  })

  it('fails for an invalid route file, and does not listen', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, { 'routes/a.json': '{}' })
    const app = createApp({ folder, config: quiet })
    t.after(() => app.closeLogs())
    await assert.rejects(app.start(), ReloadError)
    await app.stop()
  })

  it('happens once', async (t) => {
    const { app, url } = await startApplication(t, {})
    await assert.rejects(app.start(), { message: 'Cannot start: the server has been started before' })
    assert.equal((await request(url)).status, 404)
  })

  it('reads a configuration file', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, {
      'svc.json': { ...quiet, 'paths.public': 'public' },
      'routes/.keep': '',
      'public/a.txt': 'a file',
    })
    const app = createApp({ loaded: loadConfig(join(folder, 'svc.json')) })
    t.after(async () => {
      await app.stop()
      app.closeLogs()
    })
    const { url } = await app.start()
    assert.equal((await request(`${url}/a.txt`)).text, 'a file')
  })
})

describe('two apps in one process', () => {
  it('are isolated: routes, modules, middleware, logs, stop', async (t) => {
    const files = (name: string) => ({
      'routes/a.json': [
        { name: 'a', url: '/a', action: 'a.mjs', middleware: 'm' },
        { name, url: `/${name}`, action: 'a.mjs' },
      ],
      'a.mjs': `let count = 0
        export default (ctx) => { ctx.log('${name} here'); return '${name} ' + (count += 1) + ctx.state.m }`,
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': `export default (ctx, next) => { ctx.state.m = ' ${name}'; return next() }`,
    })
    const one = await startApplication(t, files('one'))
    const two = await startApplication(t, files('two'))
    assert.equal((await request(`${one.url}/a`)).text, 'one 1 one')
    assert.equal((await request(`${two.url}/a`)).text, 'two 1 two')
    assert.equal((await request(`${one.url}/two`)).status, 404)
    one.write({ 'a.mjs': "export default () => 'one anew'" })
    await one.app.control.apply({ type: 'routes.reload' })
    assert.equal((await request(`${one.url}/a`)).text, 'one anew')
    assert.equal((await request(`${two.url}/a`)).text, 'two 2 two')
    await one.app.stop()
    assert.equal((await request(`${two.url}/a`)).text, 'two 3 two')
    assert.equal(two.lines().filter((line) => line.includes('one')).length, 0)
    assert.equal(two.lines('access.log').length, 3)
  })

  it('may share a folder and its modules', async (t) => {
    const first = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/a', action: 'a.mjs' }],
      'a.mjs': "export default () => 'old'",
    })
    const second = createApp({ folder: first.folder, config: { ...quiet, 'paths.log': '.logs2' } })
    t.after(async () => {
      await second.stop()
      second.closeLogs()
    })
    const { url } = await second.start()
    first.write({ 'a.mjs': "export default () => 'new'" })
    await first.app.control.apply({ type: 'routes.reload' })
    assert.deepEqual([(await request(`${first.url}/a`)).text, (await request(`${url}/a`)).text], ['new', 'old'])
    await second.control.apply({ type: 'routes.reload' })
    assert.equal((await request(`${url}/a`)).text, 'new')
  })
})

describe('the logs of an app', () => {
  it('are reopened by the command logs.reopen', async (t) => {
    const { app, folder, url, lines } = await startApplication(t, {})
    await request(`${url}/first`)
    for (const name of ['svc.log', 'access.log']) {
      app.flushLogs()
      renameSync(join(folder, '.logs', name), join(folder, '.logs', `${name}.1`))
    }
    await app.control.apply({ type: 'logs.reopen' })
    await request(`${url}/second`)
    assert.equal(lines('access.log').length, 1)
    assert.match(lines('access.log')[0] ?? '', /second/)
    assert.equal(lines('access.log.1').length, 1)
    assert.ok(lines().some((line) => line.includes('/second')))
  })

  it('are complete after the stop and closeLogs', async (t) => {
    const { app, folder, url } = await startApplication(t, {})
    await Promise.all(Array.from({ length: 20 }, (_, at) => request(`${url}/${at}`)))
    await app.stop()
    app.closeLogs()
    app.closeLogs()
    const text = readFileSync(join(folder, '.logs/access.log'), 'utf8')
    assert.equal(text.split('\n').length, 21)
    assert.match(readFileSync(join(folder, '.logs/svc.log'), 'utf8'), /stopped\n$/)
  })

  it('may be without an access log', async (t) => {
    const { app, url, folder } = await startApplication(t, {}, { 'access_log.enabled': false })
    await request(url)
    await app.control.apply({ type: 'logs.reopen' })
    app.flushLogs()
    assert.throws(() => readFileSync(join(folder, '.logs/access.log')), { code: 'ENOENT' })
  })

  it('may leave requests out of the access log, which count all the same', async (t) => {
    const { app, url, lines } = await startApplication(t, {}, { 'app.env': 'dev', 'access_log.skip': ['/svc-ready', '/quiet/'] })
    for (const path of ['/svc-ready', '/svc-ready?a=1', '/quiet/x', '/%73vc-ready', '/x']) await request(url + path)
    const status = (await request(`${url}/svc-status`)).json() as { requests: { total: number } }
    await app.stop()
    const paths = lines('access.log').map((line) => /"GET (\S+) /.exec(line)?.[1])
    assert.deepEqual([status.requests.total, paths], [5, ['/%73vc-ready', '/x', '/svc-status']])
  })

  it('that are removed are created again, and receive later lines', async (t) => {
    const { folder, url, lines } = await startApplication(t, {})
    await request(url)
    lines()
    for (const file of ['svc.log', 'access.log']) rmSync(join(folder, '.logs', file))
    await until(() => existsSync(join(folder, '.logs', 'access.log')) && existsSync(join(folder, '.logs', 'svc.log')))
    assert.equal((await request(`${url}/after`)).status, 404)
    assert.match(lines('access.log').join(), /^[^,]*"GET \/after HTTP\/1\.1" 404$/)
    const told = lines().filter((line) => line.includes('was removed or moved away: began a new one'))
    assert.deepEqual(told.map((line) => /\/(\w+\.log) was/.exec(line)?.[1]).sort(), ['access.log', 'svc.log'])
  })

  it('cause warnings while they cannot be written', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, { logs: 'a file in place of the folder', 'routes/.keep': '' })
    const app = createApp({ folder, config: { ...quiet, 'paths.log': 'logs' } })
    t.after(() => app.closeLogs())
    const { url } = await app.start()
    assert.equal((await request(url)).status, 404)
    app.flushLogs()
    assert.equal(app.warnings().length, 3) // One for each log.
    await app.stop()
  })

  it('report when the pool is saturated', async (t) => {
    const { url, lines } = await startApplication(
      t,
      { 'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs' }], 'a.mjs': 'export default async () => "x"' },
      { 'pool_http.workers': 1 },
    )
    await request(url)
    const said = lines().map((line) => line.slice(26)).filter((line) => line.includes('[pool_detector]'))
    assert.deepEqual(said, ['[WARN ] [pool_detector] pool_http: alert on', '[INFO ] [pool_detector] pool_http: alert off'])
  })

  it('contain the failure of a middleware that was not awaited', async (t) => {
    const { url, lines } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs', middleware: 'm' }],
      'a.mjs': "export default async () => { await new Promise(setImmediate); throw new Error('ouch') }",
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': 'export default (ctx, next) => { next() }',
    })
    assert.equal((await request(url)).status, 500)
    const said = lines().join('\n')
    assert.match(said, /WARN .*GET \/ \(a\): middleware m returned before next\(\) was done: write `await next\(\)` in it/)
    assert.match(said, /ERROR.*GET \/ \(a\): ouch \[\S{36}\]\n {4}Error: ouch/)
  })

  it('contain a problem with a compiled view on disk', async (t) => {
    const { url, lines } = await startApplication(
      t,
      {
        'routes/a.json': [{ name: 'a', url: '/', action: 'a.html' }],
        'a.html': 'text',
        '.cached': 'a file in place of the folder',
      },
    )
    assert.equal((await request(url)).text, 'text')
    assert.ok(lines().some((line) => line.includes('[WARN ] [response] ')))
  })
})
