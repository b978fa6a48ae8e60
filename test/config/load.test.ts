import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { ConfigError, findConfigFile, loadConfig, parseConfig } from '../../lib/config/load.ts'
import type { Config } from '../../lib/config/table.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const defaults = parseConfig({}, '.').config

function problemsOf(value: unknown): readonly string[] {
  return refused(() => parseConfig(value, '.')).problems
}

function refused(load: () => unknown): ConfigError {
  try {
    load()
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error
  }
  return assert.fail('it was not refused')
}

const accepted: readonly [value: unknown, key: keyof typeof defaults, result: unknown][] = [
  [{ server: { port: 0 } }, 'server.port', 0],
  [{ server: { port: 65535 } }, 'server.port', 65535],
  [{ 'server.port': 81 }, 'server.port', 81],
  [{ 'server.tls': { cert: '' } }, 'server.tls.cert', ''],
  [{ server: { 'tls.key': 'tls/key.pem' } }, 'server.tls.key', 'tls/key.pem'],
  [{ server: { port: undefined } }, 'server.port', 8080],
  [{ server: {} }, 'server.port', 8080],
  [{ server: { processes: 1 } }, 'server.processes', 1],
  [{ server: { processes: 4 } }, 'server.processes', 4],
  [{ server: { processes: 'auto' } }, 'server.processes', 'auto'],
  [{ server: { host: '::1' } }, 'server.host', '::1'],
  [{ server: { host: 'web-1.example.org' } }, 'server.host', 'web-1.example.org'],
  [{ app: { env: 'dev' } }, 'app.env', 'dev'],
  [{ app_key: 'k' }, 'app_key', 'k'],
  [{ app_key_previous: ['a', 'b'] }, 'app_key_previous', ['a', 'b']],
  [{ admin: { password: 'd41d8cd98f00b204e9800998ecf8427e' } }, 'admin.password', 'd41d8cd98f00b204e9800998ecf8427e'],
  [{ admin: { hardened: true } }, 'admin.hardened', true],
  [{ paths: { public: 'public' } }, 'paths.public', 'public'],
  [{ server: { trusted_proxies: ['10.0.0.0/8', '::1'] } }, 'server.trusted_proxies', ['10.0.0.0/8', '::1']],
  [{ server: { trusted_origins: ['https://a.example'] } }, 'server.trusted_origins', ['https://a.example']],
  [{ server: { allowed_hosts: ['*.example.org'] } }, 'server.allowed_hosts', ['*.example.org']],
  [{ trace: { app: false } }, 'trace.app', false],
  [{ 'trace.app': true, trace: { error: false } }, 'trace.error', false],
]

const wrong: readonly [value: unknown, ...problems: string[]][] = [
  [{ log: { max_size_mb: -3 } }, 'log.max_size_mb must be 1 to 100000: it is -3'],
  [{ log: { max_size_mb: 100_001 } }, 'log.max_size_mb must be 1 to 100000: it is 100001'],
  [{ log: { max_size_mb: 1.5 } }, 'log.max_size_mb must be a whole number, 1 to 100000: it is 1.5'],
  [{ server: { port: NaN } }, 'server.port must be a whole number, 0 to 65535: it is NaN'],
  [{ server: { port: '8080' } }, 'server.port must be 0 to 65535: it is "8080"'],
  [{ server: { port: '99999' } }, 'server.port must be 0 to 65535: it is "99999"'],
  [{ log: { level: '1' } }, 'log.level must be debug, info, warn, error or fatal: it is "1"'],
  [{ server: { port: 'http' } }, 'server.port must be 0 to 65535: it is "http"'],
  [{ server: { port: null } }, 'server.port must be 0 to 65535: it is null'],
  [{ server: { port: [80] } }, 'server.port must be 0 to 65535: it is a list'],
  [{ server: { port: { a: 1 } } }, 'server.port must be 0 to 65535: it is an object'],
  [{ server: { port: () => 1 } }, 'server.port must be 0 to 65535: it is a function'],
  [{ cache_ram: 'True' }, 'cache_ram must be true or false: it is "True"'],
  [{ cache_ram: 1 }, 'cache_ram must be true or false: it is 1'],
  [{ log: { level: 'loud' } }, 'log.level must be debug, info, warn, error or fatal: it is "loud"'],
  [{ app: { env: true } }, 'app.env must be prod or dev: it is true'],
  [{ app_key: 5 }, 'app_key must be a string: it is a number'],
  [{ admin: { user: 5 } }, 'admin.user must be a string: it is 5'],
  [{ log: { file: 'a/b' } }, 'log.file must be a file name without a path, of at most 200 bytes: it is "a/b"'],
  [{ log: { file: '..' } }, 'log.file must be a file name without a path, of at most 200 bytes: it is ".."'],
  [
    { log: { file: 'svc_20260101000000_000001.log' } },
    'log.file must not be a name that rotation uses, since old ones are deleted: '
      + 'it is "svc_20260101000000_000001.log"',
  ],
  [{ paths: { log: '' } }, 'paths.log must be a path, not empty and without control characters: it is ""'],
  [
    { paths: { root: 'a\0b' } },
    'paths.root must be a path, not empty and without control characters: it is "a\\u0000b"',
  ],
  [
    { server: { host: '[::1]' } },
    'server.host must be a host name or an address, without port and brackets, such as 127.0.0.1 or ::1: it is "[::1]"',
  ],
  [
    { server: { host: '1.2.3' } },
    'server.host must be a host name or an address, without port and brackets, such as 127.0.0.1 or ::1: it is "1.2.3"',
  ],
  [
    { server: { trusted_proxies: ['::1', '10.0.0.0/33'] } },
    'server.trusted_proxies has a wrong entry 2: it must have a prefix length of 0 to 32, and is "10.0.0.0/33"',
  ],
  [
    { server: { trusted_proxies: '10.0.0.1' } },
    'server.trusted_proxies must be a list of strings: it is "10.0.0.1"',
  ],
  [{ server: { trusted_proxies: {} } }, 'server.trusted_proxies must be a list of strings: it is an object'],
  [
    { access_log: { skip: ['/right', 'svc-ready'] } },
    'access_log.skip has a wrong entry 2: it must be the start of a path, such as /svc-ready, and is "svc-ready"',
  ],
  [
    { access_log: { skip: ['/a?b'] } },
    'access_log.skip has a wrong entry 1: it must be the start of a path, such as /svc-ready, and is "/a?b"',
  ],
  [{ server: { allowed_hosts: [5] } }, 'server.allowed_hosts has a wrong entry 1: it must be a string, and is 5'],
  [
    { app_key_previous: ['right', ''] },
    'app_key_previous has a wrong entry 2: it must not be empty, and is a text that is not shown here',
  ],
  [{ app_key_previous: 'x' }, 'app_key_previous must be a list of strings: it is a text that is not shown here'],
  [
    { admin: { password: 'hunter22' } },
    'admin.password must be empty or a hash, the MD5 of the password as 32 lower-case hex digits: '
      + 'it is a text that is not shown here',
  ],
  [
    { 'server.tls.key': 'k\n' },
    'server.tls.key must be a path, not empty and without control characters: it is "k\\n"',
  ],
  [{ server: { processes: 0 } }, 'server.processes must be 1 to 1024 or auto: it is 0'],
  [{ server: { processes: '1' } }, 'server.processes must be 1 to 1024 or auto: it is "1"'],
  [
    { server: { tls: { cert: 1 } } },
    'server.tls.cert must be a string: it is 1',
  ],
  [
    { shared: { url: 'redis://u:sec/ret@h' } },
    'shared.url must be redis://[user:password@]host[:port][/database], the same with rediss:// for TLS, or'
      + ' redis+unix:///path/of/socket[?db=database], with percent-encoding for characters such as @ : / ? # in user and'
      + ' password: it is a text that is not shown here',
  ],
  [{ trace: { app: 1 } }, 'trace.app must be true or false: it is 1'],
  [
    { log: { file: 'a.log' }, 'access_log.file': 'a.log' },
    'access_log.file must differ from log.file: both are "a.log"',
  ],
  [{ access_log: { file: 'audit.log' } }, 'access_log.file must not begin with "audit.log", where changes are recorded: it is "audit.log"'],
  [{ log: { file: 'audit.log-1' } }, 'log.file must not begin with "audit.log", where changes are recorded: it is "audit.log-1"'],
  [{ log: 3 }, 'log must be an object with file, level, console, max_size_mb, max_files, format: it is a number'],
  [{ 'server.tls': null }, 'server.tls must be an object with cert, key: it is null'],
  [{ shared: [] }, 'shared must be an object with url, name: it is a list'],
  [[], 'the configuration must be an object, {...}: it is a list'],
  [null, 'the configuration must be an object, {...}: it is null'],
  ['x', 'the configuration must be an object, {...}: it is a string'],
  [
    { log: { level: 'info' }, 'log.level': 'info' },
    'log.level is set twice, as "log": "level" and as "log.level"',
  ],
  [
    { server: { port: -1, body_limit_kb: 0 }, cache_disk: 0 },
    'server.port must be 0 to 65535: it is -1',
    'server.body_limit_kb must be 1 to 1048576: it is 0',
    'cache_disk must be true or false: it is 0',
  ],
]

const unknown: readonly [value: unknown, warning: string][] = [
  [{ log: { levle: 'info' } }, 'unknown key log.levle: did you mean log.level?'],
  [{ 'log.levle': 'info' }, 'unknown key log.levle: did you mean log.level?'],
  [{ logg: { level: 'info' } }, 'unknown key logg: did you mean log?'],
  [{ LOG: {} }, 'unknown key LOG: did you mean log?'],
  [{ port: 80 }, 'unknown key port: did you mean server.port?'],
  [{ app: { key: 'x' } }, 'unknown key app.key: did you mean app_key?'],
  [{ trace: { everything: true } }, 'unknown key trace.everything'],
  [{ 'my own thing': 1 }, 'unknown key "my own thing"'],
  [{ 'a\u001b[31m': 1 }, 'unknown key "a\\u001b[31m"'],
  [JSON.parse('{"__proto__": {"server.port": 1}}'), 'unknown key __proto__'],
  [{ constructor: 1 }, 'unknown key constructor'],
  [{ ['x'.repeat(200)]: 1 }, `unknown key ${'x'.repeat(100)}...`],
]

/** Keys of earlier versions. */
const former: readonly [value: unknown, warning: string][] = [
  [
    { server: { pipeline_limit: 64 } },
    'server.pipeline_limit is a key of an earlier version: remove it, since the requests of a connection are served one at a time',
  ],
]

test('takes values, nested, dotted and mixed', () => {
  for (const [value, key, result] of accepted) {
    const { config, warnings } = parseConfig(value, '.')
    assert.deepEqual(config, { ...defaults, [key]: result })
    assert.deepEqual(warnings, [])
  }
})

test('reports every invalid key, its value and the allowed ones', () => {
  for (const [value, ...problems] of wrong) assert.deepEqual(problemsOf(value), problems)
})

test('warns of an unknown key and names the nearest known one, or what to do about one of an earlier version', () => {
  for (const [value, warning] of [...unknown, ...former]) {
    const { config, warnings } = parseConfig(value, '.')
    assert.deepEqual(warnings, [`the configuration: ${warning}`])
    assert.deepEqual(config, defaults)
  }
})

test('an error includes the warnings about unknown keys', () => {
  const error = refused(() => parseConfig({ prot: 1, server: { prot: 2, port: -1 } }, '.'))
  assert.equal(error.message, 'Cannot load the configuration: server.port must be 0 to 65535: it is -1')
  assert.deepEqual(error.warnings, [
    'the configuration: unknown key prot',
    'the configuration: unknown key server.prot: did you mean server.port?',
  ])
})

test('the configuration is frozen and does not share its lists', () => {
  const proxies = ['10.0.0.1']
  const { config } = parseConfig({ server: { trusted_proxies: proxies } }, '.')
  proxies.push('not an address')
  assert.deepEqual(config['server.trusted_proxies'], ['10.0.0.1'])
  for (const part of [config, config['server.trusted_proxies'], config['server.allowed_hosts']]) {
    assert.ok(Object.isFrozen(part))
  }
})

test('overrides replace values of the file, are checked, and do not hide an invalid file', () => {
  const file = join(temporaryFolder(), 'svc.json')
  const load = (text: string, overrides: Partial<Config>) => {
    writeFileSync(file, text)
    return loadConfig(file, overrides)
  }
  const { config, overridden } = load('{"server": {"port": 1}}', { 'server.port': 2, 'app.env': 'dev' })
  assert.deepEqual([config['server.port'], config['app.env'], overridden], [2, 'dev', []])
  assert.deepEqual(refused(() => load('{}', { 'server.port': -1 })).problems, ['server.port must be 0 to 65535: it is -1'])
  assert.deepEqual(refused(() => load('{"server": {"port": "1"}}', { 'server.port': 2 })).problems, [
    'server.port must be 0 to 65535: it is "1" (line 1)',
  ])
  assert.deepEqual(refused(() => load('{"log.file": "access.log"}', { 'access_log.file': 'access.log' })).problems, [
    'access_log.file must differ from log.file: both are "access.log"',
  ])
})

test('reads a file, and returns its absolute path and folder', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  const text = '\ufeff{"server": {"port": 1},\r\n "mine": {}}'
  writeFileSync(file, text)
  const loaded = loadConfig(join(folder, '.', 'svc.json'))
  assert.equal(loaded.file, file)
  assert.equal(loaded.folder, folder)
  assert.equal(loaded.config['server.port'], 1)
  assert.equal(loaded.documents[0]?.text, text.slice(1))
  assert.deepEqual(loaded.warnings, [`${file}: unknown key mine (line 2)`])
})

test('a missing file gives the defaults and a warning, and is not created', () => {
  const file = join(temporaryFolder(), 'svc.json')
  const loaded = loadConfig(file, { 'server.port': 5 })
  assert.deepEqual(loaded.config, { ...defaults, 'server.port': 5 })
  assert.equal(loaded.file, undefined)
  assert.equal(loaded.folder, resolve(file, '..'))
  assert.deepEqual(loaded.warnings, [`${file} does not exist: the defaults are used`])
  assert.throws(() => readFileSync(file), { code: 'ENOENT' })
})

test('relative paths are relative to the folder of the link, not of what it points to', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'real'))
  writeFileSync(join(folder, 'real', 'conf.json'), '{}')
  symlinkSync(join(folder, 'real', 'conf.json'), join(folder, 'svc.json'))
  assert.equal(loadConfig(join(folder, 'svc.json')).folder, folder)
})

test('reports the line of every problem, and all problems in one message', () => {
  const file = join(temporaryFolder(), 'svc.json')
  const log = '  "log": {\n    "level": "loud",\n    "levle": 1\n  },\n'
  const text = `{\n${log}  "server.port": "80",\n  "log.level": "info"\n}\n`
  writeFileSync(file, text)
  const error = refused(() => loadConfig(file))
  assert.equal(
    error.message,
    [
      `Cannot load ${file}: 3 problems`,
      '  log.level must be debug, info, warn, error or fatal: it is "loud" (line 3)',
      '  server.port must be 0 to 65535: it is "80" (line 6)',
      '  log.level is set twice, as "log": "level" and as "log.level" (line 7)',
    ].join('\n'),
  )
  assert.deepEqual(error.warnings, [`${file}: unknown key log.levle: did you mean log.level? (line 4)`])
  assert.equal(readFileSync(file, 'utf8'), text)
})

test('a conflict between two keys has its line, and is reported with other problems', () => {
  const file = join(temporaryFolder(), 'svc.json')
  writeFileSync(file, '{"access_log": {"file": "svc.log"},\n"server": {"port": -1}}')
  assert.deepEqual(refused(() => loadConfig(file)).problems, [
    'access_log.file must differ from log.file: both are "svc.log" (line 1)',
    'server.port must be 0 to 65535: it is -1 (line 2)',
  ])
})

const notJson: readonly [text: string, problem: string][] = [
  ['{\n  "log": {"level": "info",}\n}', 'line 2, column 26: no comma is allowed before the closing }'],
  ['{"log": {},\r\n\t"log": {}}\r\n', 'line 2, column 2: the name "log" appears twice in this object'],
  ['{"a": 1} x', 'line 1, column 10: expected nothing after the value, but found "x"'],
  ['{"app_key": "abc}', 'line 1, column 13: a string that begins here has no closing quote on its line'],
  ['{"admin": {"password": hunter}}', 'line 1, column 24: expected a value, but found "h"'],
  ['{"app_key_previous": [\n  "old"\n  "hunter"\n]}', 'line 3, column 3: expected a comma or ], but found "\\""'],
  ['{"app_key":\n  "hunter" x}', 'line 2, column 12: expected a comma or }, but found "x"'],
]

test('reports where a file is not JSON, without quoting it, since it may contain a secret', () => {
  const file = join(temporaryFolder(), 'svc.json')
  for (const [text, problem] of notJson) {
    writeFileSync(file, text)
    assert.deepEqual(refused(() => loadConfig(file)).problems, [`it is not valid JSON at ${problem}`])
  }
  for (const text of ['', ' \n\n']) {
    writeFileSync(file, text)
    assert.deepEqual(refused(() => loadConfig(file)).problems, ['it is empty: write {} for the defaults'])
  }
})

test('refuses an unreadable file or invalid UTF-8, with the reason', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  mkdirSync(join(folder, 'directory'))
  execFileSync('mkfifo', [join(folder, 'pipe')])
  writeFileSync(file, Buffer.from([0x7b, 0xff, 0x7d]))
  assert.deepEqual(refused(() => loadConfig(file)).problems, ['it is not UTF-8'])
  assert.deepEqual(refused(() => loadConfig(join(folder, 'directory'))).problems, ['it is not a regular file'])
  assert.deepEqual(refused(() => loadConfig(join(folder, 'pipe'))).problems, ['it is not a regular file'])
  assert.match(refused(() => loadConfig(join(file, 'svc.json'))).message, /it cannot be read: ENOTDIR/)
})

test('reports a file that the user may not read', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  writeFileSync(file, '{}')
  chmodSync(folder, 0o755)
  chmodSync(file, 0)
  const message = asNobody(() => refused(() => loadConfig(file)).message)
  assert.match(message, /it cannot be read: EACCES.*; let the user that the server runs as read it$/)
})

/** Root may read everything, so root acts as another user for a moment. */
function asNobody<T>(act: () => T): T {
  const root = process.geteuid?.() === 0
  if (root) process.seteuid?.(65534)
  try {
    return act()
  } finally {
    if (root) process.seteuid?.(0)
  }
}

test('finds the file: --config, $SVC_CONFIG, the working directory, the package', () => {
  const folder = temporaryFolder()
  const [cwd, empty, packageFolder] = [join(folder, 'cwd'), join(folder, 'empty'), join(folder, 'package')] as const
  for (const name of [cwd, empty]) mkdirSync(name)
  writeFileSync(join(cwd, 'svc.json'), '{}')
  const set = { SVC_CONFIG: 'from-env.json' }
  const rows: [options: Parameters<typeof findConfigFile>[0], file: string, namedBy?: string | undefined, isDemo?: boolean][] = [
    [{ config: 'a.json', env: set, cwd, packageFolder }, join(cwd, 'a.json'), '--config'],
    [{ config: '/etc/a.json', env: set, cwd, packageFolder }, '/etc/a.json', '--config'],
    [{ env: set, cwd, packageFolder }, join(cwd, 'from-env.json'), '$SVC_CONFIG'],
    [{ env: { SVC_CONFIG: '/etc/b.json' }, cwd, packageFolder }, '/etc/b.json', '$SVC_CONFIG'],
    [{ env: { SVC_CONFIG: '' }, cwd, packageFolder }, join(cwd, 'svc.json')],
    [{ config: undefined, env: {}, cwd, packageFolder }, join(cwd, 'svc.json')],
    [{ env: {}, cwd: empty, packageFolder }, join(packageFolder, 'svc.json'), undefined, true],
  ]
  for (const [options, file, namedBy, isDemo = false] of rows) assert.deepEqual(findConfigFile(options), { file, namedBy, isDemo })
})

test('warns of a secret in a file that a passed one overrides, with its line, unless both are equal', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  const credential = 'the credential /run/credentials/app_key'
  const over = { app_key: 'passed', app_key_previous: ['passed before'], 'server.port': 81 }
  const from = { app_key: credential, app_key_previous: 'X', 'shared.url': 'the environment variable Y' }
  const warningsOf = (main: unknown, local?: unknown): readonly string[] => {
    writeFileSync(file, JSON.stringify(main, null, 1), { mode: 0o600 })
    if (local !== undefined) writeFileSync(join(folder, 'svc.local.json'), JSON.stringify(local), { mode: 0o600 })
    return loadConfig(file, over, from).warnings
  }
  const lost = (what: string, source: string): string =>
    `${what} is not used, since ${source} overrides it: change it there, and remove it here`
  assert.deepEqual(warningsOf({ app_key: '', app_key_previous: [], server: { port: 80 }, shared: { url: 'redis://a' } }), [])
  assert.deepEqual(warningsOf({ app_key: 'passed', app_key_previous: ['passed before'] }), [])
  assert.deepEqual(warningsOf({ app_key: 'of the file', app_key_previous: ['a'], shared: { url: 'redis://u:p@a' } }), [
    lost('app_key (svc.json, line 2)', credential),
    lost('app_key_previous (svc.json, line 3)', 'X'),
    lost('the password in shared.url (svc.json, line 7)', 'the environment variable Y'),
  ])
  assert.deepEqual(warningsOf({}, { app_key: 'local' }), [lost('app_key (svc.local.json, line 1)', credential)])
})
