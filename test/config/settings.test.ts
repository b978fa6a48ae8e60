// `settings` and `setup` of svc.json: objects of any content, merged, with references to texts that are elsewhere.
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, describe, it } from 'node:test'
import { ConfigError, loadConfig, parseConfig, warningsOfCommittedSecrets } from '../../lib/config/load.ts'
import { saveConfig } from '../../lib/config/save.ts'
import { refuseInconsistent } from '../../lib/config/together.ts'
import { writeFiles, type Files } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const variables = { SVC_TEST_URL: 'smtp://relay', SVC_TEST_EMPTY: '', SVC_TEST_LINES: 'a\nb\r\n', SVC_TEST_LONG: 'x'.repeat(65_537) }
const credentials = temporaryFolder()
const before = process.env['CREDENTIALS_DIRECTORY']
Object.assign(process.env, variables)
after(() => {
  for (const name of Object.keys(variables)) delete process.env[name]
  if (before === undefined) delete process.env['CREDENTIALS_DIRECTORY']
  else process.env['CREDENTIALS_DIRECTORY'] = before
})

/** Loads the `svc.json` of a folder with these files. */
function load(files: Files) {
  const folder = temporaryFolder()
  writeFiles(folder, files)
  return loadConfig(join(folder, 'svc.json'))
}

/** JSON without the prototypes. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

/** The problems that prevent the start with these settings. */
function problemsOf(settings: unknown, files: Files = {}, config: object = {}): readonly string[] {
  try {
    refuseInconsistent(load({ ...files, 'svc.json': { ...config, settings } }))
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.problems
  }
}

describe('settings', () => {
  it('of svc.local.json are merged over those of svc.json at every depth; a list and a reference are replaced', () => {
    const loaded = load({
      'svc.json': { settings: { 'a.b': 1, mail: { url: { file: 'none' }, from: 'a', to: ['x', 'y'] }, size: { max: 1 }, kept: null } },
      'svc.local.json': { settings: { 'a.b': 2, mail: { url: { env: 'SVC_TEST_URL' }, to: ['z'] }, size: 5 } },
    })
    assert.deepEqual(plain(loaded.settings), {
      value: { 'a.b': 2, mail: { url: 'smtp://relay', from: 'a', to: ['z'] }, size: 5, kept: null },
      problems: [],
    })
    assert.deepEqual(loaded.overridden, ['settings."a.b"', 'settings.mail.url', 'settings.mail.to', 'settings.size'])
    assert.deepEqual(loaded.warnings, [])
    const { sources } = loaded
    assert.deepEqual(
      [sources['settings.mail.url'], sources['settings.mail.from'], sources['settings.mail.to.0'], sources['settings.size']],
      ['env SVC_TEST_URL', 'svc.json, line 1', 'svc.local.json, line 1', 'svc.local.json, line 1'],
    )
  })

  it('are empty by default, and stay as they are when the file is written', () => {
    assert.deepEqual(plain([load({}).config.settings, load({}).config.setup]), [{}, {}])
    const text = '{\n  "settings": {"a.b":  [1, {"env": "X"}], "__proto__": {"admin": true}},\n  "setup": {"session":{}}\n}\n'
    const folder = temporaryFolder()
    writeFiles(folder, { 'svc.json': text })
    saveConfig(join(folder, 'svc.json'), { 'admin.user': 'ann' })
    const saved = readFileSync(join(folder, 'svc.json'), 'utf8')
    assert.ok(saved.startsWith(text.slice(0, -3)), saved)
    assert.match(saved, /"user": "ann"/)
  })

  it('have no prototype: no name means anything', () => {
    const { value } = load({ 'svc.json': '{"settings": {"__proto__": {"admin": true}, "constructor": 1, "in": {"__proto__": 2}}}' }).settings
    assert.deepEqual(Object.keys(value), ['__proto__', 'constructor', 'in'])
    assert.equal(Reflect.get({}, 'admin'), undefined)
    const { config } = load({ 'svc.json': { settings: { a: 1 } }, 'svc.local.json': '{"settings": {"__proto__": {"a": {"b": 2}}}}' })
    assert.deepEqual([Object.getPrototypeOf(config.settings), Object.keys(config.settings)], [null, ['a', '__proto__']])
    assert.deepEqual([Object.isFrozen(config.settings), Reflect.get({}, 'b')], [true, undefined])
  })

  const wrongTypes: readonly [value: unknown, problem: RegExp][] = [
    [[1], /^settings must be an object: it is a list \(line 1\)$/],
    [null, /^settings must be an object: it is null \(line 1\)$/],
    ['hunter2', /^settings must be an object: it is a string \(line 1\)$/],
    [5, /^settings must be an object: it is a number \(line 1\)$/],
  ]
  for (const [settings, problem] of wrongTypes) {
    it(`must not be ${JSON.stringify(settings)}`, () => {
      assert.throws(() => load({ 'svc.json': { settings } }), (error) => error instanceof ConfigError && problem.test(error.problems.join()))
    })
  }

  it('of a program must be JSON, and not too deep; a Date is converted', () => {
    const date = new Date(0)
    assert.deepEqual(plain(parseConfig({ settings: { date, none: undefined } }, '/').settings.value), { date: date.toISOString() })
    const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    const rows: [settings: unknown, problem: RegExp][] = [
      [JSON.parse(nested(101)), /^settings must not be nested deeper than 100 levels$/],
      [JSON.parse(nested(10_000)), /^settings must (?:not be nested so deeply|be JSON: Maximum call stack size exceeded)/],
      [{ list: [() => 1] }, /^settings must be JSON: list\.0 is of type function/],
      [{ all: new Map() }, /^settings must be JSON: all is of class Map/],
      [circle, /^settings must be JSON: Converting circular/],
    ]
    for (const [settings, problem] of rows) {
      for (const key of ['settings', 'setup']) {
        assert.throws(() => parseConfig({ [key]: settings }, '/'), (error) => {
          return error instanceof ConfigError && problem.test((error.problems[0] ?? '').replace(/^setup/, 'settings'))
        })
      }
    }
    assert.throws(() => load({ 'svc.json': `{"settings": ${nested(10_000)}}` }), /nested deeper than 100/)
  })
})

describe('a reference', () => {
  it('is replaced by its text without the last line end, in lists too; {"env", "x"} and an object of objects are none', () => {
    process.env['CREDENTIALS_DIRECTORY'] = credentials
    writeFileSync(join(credentials, 'mail-password'), '\ufeffgeheim\n')
    const loaded = load({
      'svc.json': {
        paths: { public: 'public' },
        settings: {
          env: 'prod',
          list: [{ env: 'SVC_TEST_EMPTY' }, { credential: 'mail-password' }, { file: 'secrets/a' }, { env: 'SVC_TEST_LINES' }],
          plain: [{ env: 'A', x: 1 }, { file: { max: 5 } }, { credential: [] }, {}],
        },
      },
      'secrets/a': 'one\ntwo\n\n',
      'public/.keep': '',
    })
    refuseInconsistent(loaded)
    assert.deepEqual(plain(loaded.settings.value), {
      env: 'prod',
      list: ['', 'geheim', 'one\ntwo\n', 'a\nb'],
      plain: [{ env: 'A', x: 1 }, { file: { max: 5 } }, { credential: [] }, {}],
    })
    const only = load({ 'svc.json': { settings: { env: 'SVC_TEST_URL' } } })
    assert.deepEqual([plain(only.settings.value), only.sources['settings.env']], [{ env: 'SVC_TEST_URL' }, 'svc.json, line 1'])
  })

  const rows: readonly [what: string, settings: object, problem: RegExp][] = [
    ['a missing variable', { a: { b: { env: 'SVC_TEST_NONE' } } }, /^settings\.a\.b needs the environment variable SVC_TEST_NONE: it is not set \(line 1\)$/],
    ['a name that every object has', { a: { env: 'constructor' } }, /environment variable constructor: it is not set/],
    ['a name that is no text', { a: { env: 5 } }, /^settings\.a needs the environment variable 5: its name must be a text \(line 1\)$/],
    ['null', { a: [{ credential: null }] }, /^settings\.a\.0 needs the credential null: its name must be a text \(line 1\)$/],
    ['a long variable', { a: { env: 'SVC_TEST_LONG' } }, /SVC_TEST_LONG: it is longer than 64 KiB/],
    ['a missing credential', { a: { credential: 'none' } }, /^settings\.a needs the credential none: it does not exist \(line 1\)$/],
    ['a credential with a folder', { a: { credential: '../x' } }, /the credential \.\.\/x: its name must be a file name without a path/],
    ['a credential above', { a: { credential: '..' } }, /the credential \.\.: its name must be a file name without a path/],
    ['a missing file', { a: { file: 'none' } }, /^settings\.a needs the file none: it does not exist \(line 1\)$/],
    ['a folder', { a: { file: 'folder' } }, /the file folder: it is not a regular file/],
    ['a long file', { a: { file: 'long' } }, /the file long: it is longer than 64 KiB/],
    ['a file that is not UTF-8', { a: { file: 'latin' } }, /the file latin: it is not UTF-8/],
    ['a path without a name', { a: { file: '' } }, /the file : its name must be a path, not empty/],
    ['a public file', { a: { file: 'public/x' } }, /the file public\/x: it must not be in paths\.public/],
    ['a link to a public file', { a: { file: 'link' } }, /the file link: it must not be in paths\.public/],
  ]
  for (const [what, settings, problem] of rows) {
    it(`to ${what} is a problem`, () => {
      process.env['CREDENTIALS_DIRECTORY'] = credentials
      const folder = temporaryFolder()
      mkdirSync(join(folder, 'folder'))
      const latin = Buffer.from([0xe9])
      writeFiles(folder, { 'svc.json': { paths: { public: 'public' }, settings }, 'public/x': 'x', long: 'x'.repeat(65_537), latin })
      symlinkSync('public/x', join(folder, 'link'))
      assert.throws(() => refuseInconsistent(loadConfig(join(folder, 'svc.json'))), (error) => {
        assert.ok(error instanceof ConfigError)
        assert.match(error.problems.join(), problem)
        return true
      })
    })
  }

  it('to a credential is a problem where no service manager passes any', () => {
    delete process.env['CREDENTIALS_DIRECTORY']
    assert.match(problemsOf({ a: { credential: 'x' } }).join(), /the credential x: \$CREDENTIALS_DIRECTORY is not set/)
  })

  it('is reported with all others in one message, with its line', () => {
    const text = '{\n"settings": {\n"a": {"env": "SVC_TEST_NONE"},\n"b": [0,\n{"file": "none"}]},\n"shared": {"url": "redis://x"}}'
    const folder = temporaryFolder()
    writeFiles(folder, { 'svc.json': text, 'svc.local.json': '{\n"settings": {"a": {"env":\n"SVC_TEST_NO"}}}' })
    assert.throws(() => refuseInconsistent(loadConfig(join(folder, 'svc.json'))), (error) => {
      assert.ok(error instanceof ConfigError)
      assert.deepEqual(error.problems.map((problem) => problem.replace(/ must .*(?= \()| must .*/, '')), [
        'settings.b.1 needs the file none: it does not exist (line 5)',
        'settings.a needs the environment variable SVC_TEST_NO: it is not set (svc.local.json, line 2)',
        'app_key',
      ])
      return true
    })
  })
})

describe('secrets in settings and setup', () => {
  const settings = {
    mail: { password: 'hunter2', url: 'smtp://ann:hunter2@relay', from: 'ann', pin: '', token: { env: 'SVC_TEST_URL' } },
    stripe: { apiKey: 'sk_live' },
    tokens: ['hunter2'],
  }
  const setup = { jwt: { key: 'hunter2' }, auth: { user_key: 'user' } }
  const names = ['settings.mail.password', 'settings.mail.url', 'settings.stripe.apiKey', 'settings.tokens.0', 'setup.jwt.key']

  it('are reported in svc.json if there is a local file, or config.local', () => {
    for (const more of [{ 'svc.local.json': { settings: { mail: { password: 'x' } } } }, { 'svc.json': { settings, setup, config: { local: true } } }]) {
      const found = warningsOfCommittedSecrets(load({ 'svc.json': { settings, setup }, ...more }))
      assert.deepEqual(found.map((text) => text.replace(/ .*/, '')), names)
      assert.match(found[0] ?? '', /^\S+ \(svc\.json, line 1\) looks like .*: move it to svc\.local\.json or replace it by a reference, \{"env": "NAME"\}$/)
      assert.match(found.at(-1) ?? '', /: move it to svc\.local\.json$/)
      assert.ok(!found.join().includes('hunter2'))
    }
    assert.deepEqual(warningsOfCommittedSecrets(load({ 'svc.json': { settings, setup } })), [])
  })

  it('are reported in a file that everybody can read', () => {
    const folder = temporaryFolder()
    const file = join(folder, 'svc.json')
    writeFiles(folder, { 'svc.json': { settings, setup, app_key: 'x' } })
    assert.deepEqual(loadConfig(file).warnings, [])
    chmodSync(file, 0o644)
    const [warning = '', ...others] = loadConfig(file).warnings
    assert.deepEqual([dirname(file), others], [folder, []])
    for (const name of ['app_key', ...names]) assert.ok(warning.includes(name), name)
    assert.ok(!warning.includes('hunter2'))
  })
})
