// The settings of an application: `ctx.settings`, `app.settings`, schemas of modules, and `setup` of svc.json.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, it, type TestContext } from 'node:test'
import { loadConfig } from '../../lib/config/load.ts'
import { createApp, type App } from '../support/app.ts'
import { startApplication, testKey, writeFiles, type Files } from '../support/application.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

process.env['SVC_TEST_PORT'] = '2525'
after(() => delete process.env['SVC_TEST_PORT'])

const showing: Files = {
  'routes/a.json': [{ name: 'a', url: '/', method: 'GET', action: 'a.mjs' }],
  'a.mjs': 'export default ({ settings }) => settings',
}
const mailModule = (fields: string): string => `import { fields } from 'svc'
  export const settings = fields({ mail: fields.object({ ${fields} }) })`

/** Starts the application of `svc.json` and its local file. */
async function start(t: TestContext, files: Files): Promise<{ app: App; url: string; file: string; folder: string }> {
  const { app, file, folder } = make(t, files)
  const { url } = await app.start()
  return { app, url, file, folder }
}

function make(t: TestContext, files: Files): { app: App; file: string; folder: string } {
  const folder = temporaryFolder()
  const { 'svc.json': config = {}, ...others } = files
  const keys = { server: { port: 0 }, 'log.console': false, app_key: testKey, ...(config as object) }
  writeFiles(folder, { ...showing, ...others, 'svc.json': JSON.stringify(keys, undefined, 1) })
  const file = join(folder, 'svc.json')
  const app = createApp({ loaded: loadConfig(file) })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  return { app, file, folder }
}

/** The message with which an application does not start. */
async function refusal(t: TestContext, files: Files): Promise<string> {
  const { app, folder } = make(t, files)
  const error = await app.start().then(() => undefined, (thrown: unknown) => thrown)
  assert.ok(error instanceof Error && error.name === 'MiddlewareError', String(error))
  return error.message.replaceAll(`${folder}/`, '')
}

describe('settings', () => {
  it('are the same frozen object for each request, for setup, and for a program', async (t) => {
    const { app, url } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/', method: 'GET', action: 'a.mjs' }],
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': 'export const seen = {}; export function setup({ settings }) { seen.settings = settings }',
      'a.mjs': `import { seen } from './routes/middleware/m.mjs'
        let before
        export default ({ settings }) => {
          const isSame = seen.settings === settings && (before ?? settings) === settings
          before = settings
          const frozen = [settings, settings.mail, settings.list, settings.list[0]].map((each) => Object.isFrozen(each))
          return { isSame, frozen, inherited: [settings.constructor, settings.mail.toString, 'polluted' in settings], settings }
        }`,
    }, { settings: { mail: { url: 'u' }, list: [{ a: null }], ...(JSON.parse('{"__proto__": {"polluted": 1}}') as object) } })
    for (let count = 0; count < 2; count++) {
      const { isSame, frozen, inherited, settings } = (await request(url)).json() as Record<string, unknown>
      assert.deepEqual([isSame, frozen, inherited], [true, [true, true, true, true], [null, null, false]])
      assert.equal(JSON.stringify(settings), '{"mail":{"url":"u"},"list":[{"a":null}],"__proto__":{"polluted":1}}')
    }
    assert.deepEqual([Object.isFrozen(app.settings), Object.keys(app.settings)], [true, ['mail', 'list', '__proto__']])
    assert.throws(() => Object.assign(app.settings['mail'] as object, { url: 'other' }), TypeError)
  })

  it('are checked by the schemas of several modules: their values and defaults replace those of the file', async (t) => {
    const { app, url } = await start(t, {
      'svc.json': { settings: { mail: { url: ' smtp://relay ', from: null, port: { env: 'SVC_TEST_PORT' }, extra: 1 }, other: [1] } },
      'routes/middleware/config.json': { load: ['a.mjs', 'b.mjs', 'c.mjs'] },
      'routes/middleware/a.mjs': mailModule('url: fields.text(), from: fields.text().optional()'),
      'routes/middleware/b.mjs': mailModule('port: fields.text(), size: fields.integer().default(5)'),
      'routes/middleware/c.mjs': `export function setup({ settings }) { if (settings.mail.size !== 5) throw new Error('early') }`,
    })
    const expected = { mail: { url: 'smtp://relay', port: '2525', extra: 1, size: 5 }, other: [1] }
    assert.deepEqual((await request(url)).json(), expected)
    assert.deepEqual(JSON.parse(JSON.stringify(app.settings)), expected)
    assert.deepEqual(app.warnings(), []) // A module may export settings only.
  })

  const load = { 'routes/middleware/config.json': { load: ['m.mjs'] } }
  const rows: readonly [what: string, files: Files, message: string][] = [
    ['a missing member', { 'routes/middleware/m.mjs': mailModule('url: fields.text()') }, 'Cannot load svc.json: settings.mail: Required'],
    [
      'members of another type',
      {
        'svc.json': { settings: { mail: { url: 5, port: { env: 'SVC_TEST_PORT' }, to: ['geheim'] } } },
        'svc.local.json': '{\n"settings": {\n"mail": { "from": ["geheim"] }}}',
        'routes/middleware/m.mjs': mailModule('url: fields.text(), port: fields.integer(), from: fields.text(), to: fields.choice("a", "b")'),
      },
      'Cannot load svc.json: settings.mail.url: Must be a text (line 9); settings.mail.port: Must be a whole number (env SVC_TEST_PORT); '
        + 'settings.mail.from: Must be a single value (svc.local.json, line 3); settings.mail.to: Must be a single value (line 14)',
    ],
    [
      'a function',
      { 'routes/middleware/m.mjs': 'export const settings = () => {}' },
      'Cannot load middleware m.mjs: its export settings must be a schema, fields({...}): it is of type function: give a middleware of that name another one',
    ],
    [
      'fields without fields()',
      { 'routes/middleware/m.mjs': 'import { fields } from "svc"; export const settings = { url: fields.text() }' },
      'Cannot load middleware m.mjs: its export settings must be a schema, fields({...}): it is of type object',
    ],
  ]
  for (const [what, files, message] of rows) {
    it(`prevent a start: ${what}`, async (t) => {
      const { 'svc.json': config, ...others } = files
      assert.equal(await refusal(t, { ...load, ...others, ...(config === undefined ? {} : { 'svc.json': config }) }), message)
    })
  }

  it('stay as they are when a reload is refused, and change with the schema when one is not', async (t) => {
    const { app, url, folder } = await start(t, {
      ...load,
      'svc.json': { settings: { mail: { url: 'u' } } },
      'routes/middleware/m.mjs': mailModule('url: fields.text(), port: fields.integer().default(25)'),
    })
    const reload = (): Promise<unknown> => Promise.resolve(app.control.apply({ type: 'routes.reload' }))
    writeFiles(folder, { 'routes/middleware/m.mjs': mailModule('url: fields.integer(), port: fields.integer().default(26)') })
    await assert.rejects(reload(), /svc\.json: settings\.mail\.url: Must be a whole number \(line \d+\)/)
    assert.deepEqual((await request(url)).json(), { mail: { url: 'u', port: 25 } })
    writeFiles(folder, { 'routes/middleware/m.mjs': mailModule('url: fields.text(), port: fields.integer().default(27)') })
    await reload()
    assert.deepEqual((await request(url)).json(), { mail: { url: 'u', port: 27 } })
  })
})

describe('setup of svc.json', () => {
  const counting: Files = {
    'routes/a.json': [{ name: 'a', url: '/', method: 'GET', action: 'a.mjs', middleware: 'SVC_MwLimit:own, SVC_MwSession' }],
    'a.mjs': 'export default ({ session }) => void session.set("a", 1)',
  }

  it('is merged over that of config.json, and that of svc.local.json over both, key by key', async (t) => {
    const { url, app } = await start(t, {
      ...counting,
      'routes/middleware/config.json': { setup: { session: { cookie: 'ONE', ttl_s: 60 }, limit: { own: { count: 9, per_s: 7, burst: 9 } } } },
      'svc.json': { setup: { session: { ttl_s: 120 }, limit: { own: { count: 8, burst: 8 } } } },
      'svc.local.json': { setup: { limit: { own: { burst: 6 } } } },
    })
    const { headers } = await request(url)
    assert.match(String(headers['set-cookie']), /^ONE=.*Max-Age=120/)
    assert.equal(headers['ratelimit-policy'], '"own";q=6;w=7')
    assert.deepEqual(app.warnings(), [])
  })

  it('is named in its errors and warnings, with the place', async (t) => {
    const config = { 'routes/middleware/config.json': { setup: { session: { ttl_s: 'x', max: -1 }, csrf: { lapse: 1 } } } }
    assert.equal(
      await refusal(t, { ...config, 'svc.json': { setup: { session: { ttl_s: 'y', ttl: 1 }, csrf: 5 } }, 'svc.local.json': { setup: { auth: { redirect: 'z' } } } }),
      'Cannot load svc.json: setup.session.ttl_s must be 0 to 31536000: it is "y" (line 9); '
        + 'setup.csrf must be an object with redirect, header, field, lapse (line 12); '
        + 'setup.auth.redirect must be a path that begins with one slash, such as /login, or an http or https URL: it is "z" (svc.local.json, line 1); '
        + 'Cannot load routes/middleware/config.json: setup.session.max must be 1 to 10000000: it is -1',
    )
    const { app, folder } = await start(t, {
      'routes/middleware/config.json': { setup: { crsf: {} } },
      'svc.json': { setup: { sesion: {}, crsf: {}, session: { ttl_ss: 1 } } },
    })
    assert.deepEqual(app.warnings().map((text) => text.replaceAll(`${folder}/`, '')).sort(), [
      'svc.json: nothing reads setup.crsf: did you mean setup.csrf? (line 9)',
      'svc.json: nothing reads setup.sesion: did you mean setup.session? (line 8)',
      'svc.json: unknown key setup.session.ttl_ss: did you mean ttl_s? (line 11)',
    ])
  })

  it('may be given to createApp, as settings may', async (t) => {
    const { url } = await startApplication(t, counting, { setup: { session: { cookie: 'TWO' }, limit: { own: {} } } })
    assert.match(String((await request(url)).headers['set-cookie']), /^TWO=/)
    await assert.rejects(
      startApplication(t, counting, { setup: { session: { ttl_s: -1 } } }),
      /^MiddlewareError: Cannot load the configuration: setup\.session\.ttl_s must be .*: it is -1 \(createApp\)$/,
    )
  })
})
