/** `svc permissions` on the Node that runs the tests: the tests run the printed command. */
import assert from 'node:assert/strict'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { makeRecoveryCodes } from '../../lib/access/recovery-codes.ts'
import { makeTotpSecret } from '../../lib/access/totp.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { saveConfig } from '../../lib/config/save.ts'
import { testKey, writeFiles, type Files } from '../support/application.ts'
import { makeCertificate } from '../support/certificate.ts'
import { launch, optionsOfTarget, root, runLauncher, type Launched } from '../support/launch.ts'
import { ask, isReady } from '../support/node-panel.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { fakeNotify } from '../systemd/fake-notify.ts'
import { until } from '../support/until.ts'
import { Visitor } from '../support/visitor.ts'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const hasModel = major >= 24
const canDrop = (major === 24 && minor >= 20) || (major === 26 && minor >= 3) || major > 26
const password = 'a password of the tests'

const files: Files = {
  'routes/app.json': [
    { name: 'word', url: '/word', action: 'word.mjs' },
    { name: 'count', url: '/count', action: 'actions.mjs@count', middleware: 'SVC_MwSession' },
    { name: 'upload', url: '/upload', method: 'POST', action: 'actions.mjs@upload' },
    { name: 'attempts', url: '/attempts', action: 'actions.mjs@attempts' },
    { name: 'page', url: '/page', action: 'page.html' },
  ],
  'jobs/app.json': [{ name: 'tidy', action: 'word.mjs', every: '1h' }],
  'routes/middleware/config.json': { setup: { session: { store: 'file', path: 'data/sessions' } } },
  'page.html': '<p>{{ 1 + 1 }}</p>',
  'word.mjs': "import { word } from './said.mjs'\nexport default () => word",
  'said.mjs': "export const word = 'first'",
  'actions.mjs': `
    import { readFileSync, writeFileSync } from 'node:fs'
    import { execFileSync } from 'node:child_process'
    import { Worker } from 'node:worker_threads'
    export const count = ({ session }) => {
      session.set('count', Number(session.get('count') ?? 0) + 1)
      return String(session.get('count'))
    }
    export const upload = async ({ readForm }) => {
      const [file] = (await readForm()).files
      return { size: readFileSync(file.path).length }
    }
    const codeOf = (work) => {
      try {
        work()
        return 'done'
      } catch ({ code }) {
        return code
      }
    }
    export const attempts = ({ query }) => ({
      write: query.get('write').split(',').map((file) => codeOf(() => writeFileSync(file, 'x'))),
      read: query.get('read').split(',').map((file) => codeOf(() => readFileSync(file))),
      child: codeOf(() => execFileSync('true')),
      worker: codeOf(() => new Worker('', { eval: true })),
    })`,
}

/** Creates an application in a folder of that name. */
function application(name: string, config: Readonly<Record<string, unknown>> = {}): string {
  const folder = join(temporaryFolder(), name)
  writeFiles(folder, { 'svc.json': { app_key: testKey, 'server.port': 0, ...config }, ...files })
  return folder
}

/** Splits a command line as systemd does, by systemd.syntax(7); `credentials` replaces %d. */
function wordsOf(line: string, credentials: string): string[] {
  return [...line.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"]+/g)].map(([word]) => {
    const bare = word.startsWith('"') ? word.slice(1, -1) : word
    const plain = bare.replaceAll(/\\(?:x([0-9a-f]{2})|(.))/g, (_all, hex: string | undefined, sign: string | undefined) =>
      hex === undefined ? String(sign) : String.fromCharCode(Number.parseInt(hex, 16)))
    return plain.replaceAll(/%(.)|\$\$/g, (found, sign: string | undefined) => {
      if (sign === 'd') return credentials
      return found === '$$' ? '$' : String(sign)
    })
  })
}

async function printed(t: TestContext, cwd: string, args: readonly string[] = []): Promise<string> {
  const { status, stdout, stderr } = await runLauncher(t, ['permissions', ...args], { cwd })
  assert.deepEqual([status, stderr], [0, ''])
  return stdout
}

interface StartOptions {
  readonly args?: readonly string[]
  readonly credentials?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Starts the printed command for an application. */
async function startPrinted(
  t: TestContext,
  cwd: string,
  { args = [], credentials = join(cwd, 'no-credentials'), env = {} }: StartOptions = {},
): Promise<Launched & { readonly url: string; readonly flags: readonly string[] }> {
  const [service, empty, start = ''] = (await printed(t, cwd, args)).split('\n')
  assert.deepEqual([service, empty], ['[Service]', 'ExecStart='])
  const [node, ...words] = wordsOf(start.slice('ExecStart='.length), credentials)
  assert.equal(node, process.execPath)
  const at = words.indexOf(`${root}bin/svc.js`)
  const flags = words.slice(0, at)
  // In another folder: the working directory must not matter.
  const launched = launch(t, words.slice(at + 1), {
    cwd: temporaryFolder(),
    nodeOptions: [...optionsOfTarget(), ...flags],
    env: { ...env, ...(existsSync(credentials) && { CREDENTIALS_DIRECTORY: credentials }) },
  })
  return { ...launched, url: await launched.listening(), flags }
}

/** Sets the panel up and signs in. */
async function signedIn(url: string): Promise<Visitor> {
  const visitor = new Visitor(url)
  const setup = await visitor.submit('/svc-setup', '/svc-setup', { user: 'ann', password, password2: password })
  assert.deepEqual([setup.status, setup.headers.location], [302, '/svc-login'], setup.text)
  const login = await visitor.submit('/svc-login', '/svc-login', { user: 'ann', password })
  assert.equal(login.status, 302, login.text)
  return visitor
}

interface Status {
  readonly permission: { readonly active: boolean; readonly dropped: readonly string[] }
  readonly warnings: readonly string[]
}

async function statusOf(visitor: Visitor): Promise<Status> {
  return (await visitor.get('/svc-status?format=json')).json() as Status
}

/** Sends a file as a form does, and returns how long it was on disk. */
async function sizeOfUpload(url: string, bytes: number): Promise<unknown> {
  const body = new FormData()
  body.set('file', new File([new Uint8Array(bytes)], 'a.bin'))
  const encoded = new Response(body)
  const headers = { 'content-type': encoded.headers.get('content-type') ?? '' }
  return (await request(`${url}/upload`, { headers, body: new Uint8Array(await encoded.arrayBuffer()) })).json()
}

async function attempts(url: string, write: readonly string[], read: readonly string[] = ['/etc/hostname']): Promise<unknown> {
  const query = new URLSearchParams({ write: write.join(','), read: read.join(',') })
  return (await request(`${url}/attempts?${String(query)}`)).json()
}

const denied = 'ERR_ACCESS_DENIED'

test('wrong usage is status 2', async (t) => {
  const cwd = application('app')
  const rows: [args: string[], reason: RegExp][] = [
    [['start', '--write', 'data'], /^start does not take --write\n/],
    [['permissions', '--write'], /^Option '--write <value>' argument missing\n/],
    [['permissions', 'more'], /^permissions takes no more arguments, but got "more"\n/],
  ]
  for (const path of hasModel ? ['svc.json', 'svc.json/more'] : []) {
    rows.push([['permissions', '--write', path], /^--write must name a folder: "svc\.json.*" is not one\n/])
  }
  for (const [args, reason] of rows) {
    const { status, stdout, stderr } = await runLauncher(t, args, { cwd })
    assert.deepEqual([status, stdout], [2, ''], args.join(' '))
    assert.match(stderr, reason)
  }
})

if (!hasModel) {
  test('refuses a Node without the model, with status 1', async (t) => {
    const { status, stdout, stderr } = await runLauncher(t, ['permissions'], { cwd: application('app') })
    assert.deepEqual([status, stdout], [1, ''])
    assert.match(stderr, /^Node [\d.]+ has no permission model that svc can run under: use Node 24 or later\n$/)
  })
} else testModel()

function testModel(): void {
  test('exits with 78 for a wrong configuration, and with 1 for a name that Node would treat as a pattern', async (t) => {
    const wrong = await runLauncher(t, ['permissions'], { cwd: application('app', { 'server.port': -1 }) })
    assert.deepEqual([wrong.status, wrong.stdout], [78, ''])
    for (const name of ['a*b', 'a*']) {
      const starred = await runLauncher(t, ['permissions'], { cwd: application(name) })
      assert.deepEqual([starred.status, starred.stdout], [1, ''])
      assert.match(starred.stderr, /^Node takes the \* in "--allow-fs-read=.*\/a\*b?\/\*" for any text: rename that folder\n$/)
    }
  })

  test('prints exactly the flags for this Node and this configuration', async (t) => {
    const cwd = application('app', { 'paths.log': '/var/log/app', 'paths.temp': '/var/tmp/app', 'server.tls.key': 'tls/key.pem' })
    const lines = (await printed(t, cwd, ['--write', 'more', '--port', '81', '--write', '/srv/more'])).split('\n')
    assert.deepEqual(lines.slice(3), canDrop ? ['WatchdogSec=0', ''] : ['Type=exec', 'NotifyAccess=none', 'WatchdogSec=0', ''])
    const words = wordsOf(String(lines[2]?.slice('ExecStart='.length)), '/run/credentials/svc.service')
    const code = process.env['SVC_TEST_TARGET'] === 'dist' ? 'dist' : 'lib'
    assert.deepEqual(words, [
      process.execPath,
      '--permission',
      ...[`${root}bin/*`, `${root}${code}/*`, `${cwd}/*`, '/var/log/app/*', '/var/tmp/app/*', '/srv/more/*'].map(readFlag),
      ...[`${root}package.json`, '/proc/self/limits', '/proc/self/fd', '/proc/self/fd/*'].map(readFlag),
      ...['/var/log/app/*', `${cwd}/.cached/*`, '/var/tmp/app/*', `${cwd}/.data/*`, `${cwd}/data/sessions/*`, `${cwd}/more/*`].map(writeFlag),
      ...['/srv/more/*', `${cwd}/svc.json`, `${cwd}/.svc.json.*`].map(writeFlag),
      ...(canDrop ? ['--allow-child-process', '--allow-worker'] : []),
      ...(process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []),
      readFlag('/run/credentials/svc.service/*'),
      ...[`${root}bin/svc.js`, 'start', '--config', `${cwd}/svc.json`, '--port', '81'],
    ])
  })

  test('setup, sign-in, sessions, uploads, views, reload, readiness and logs work under them, and no other path is accessible', async (t) => {
    const cwd = application('an "app" of 100% $HOME; here')
    const outside = temporaryFolder()
    chmodSync(join(cwd, 'svc.json'), 0o640)
    const server = await startPrinted(t, cwd)
    const { url } = server
    assert.equal(server.flags.includes('--allow-child-process'), canDrop)
    assert.equal(await isReady(server), true)

    const visitor = await signedIn(url)
    const saved = JSON.parse(readFileSync(join(cwd, 'svc.json'), 'utf8')) as Record<string, unknown>
    assert.match(JSON.stringify(saved), /"user":"ann"/)
    assert.equal(statSync(join(cwd, 'svc.json')).mode & 0o777, 0o640)
    assert.deepEqual(readdirSync(cwd).filter((name) => name.endsWith('.tmp')), [])
    const { permission, warnings } = await statusOf(visitor)
    assert.deepEqual([permission, warnings], [{ active: true, dropped: canDrop ? ['child', 'worker'] : [] }, []])

    assert.deepEqual(await sizeOfUpload(url, 300_000), { size: 300_000 })
    await until(() => readdirSync(join(cwd, '.cached/temp')).length === 0)
    assert.equal((await visitor.get('/count')).text, '1')
    assert.equal((await visitor.get('/count')).text, '2')
    assert.equal(readdirSync(join(cwd, 'data/sessions')).length > 0, true)
    assert.equal(existsSync(join(cwd, '.data/svc.db')), true)
    const profile = await visitor.get('/svc-profile?seconds=1')
    assert.deepEqual([profile.status, /permission model denies profiles: .* --allow-inspector/.test(profile.text)], [501, true])
    assert.match((await visitor.get('/svc-profile')).text, /permission model denies profiles/)
    assert.match((await request(`${url}/page`)).text, /<p>2<\/p>/)

    assert.equal((await request(`${url}/word`)).text, 'first')
    writeFileSync(join(cwd, 'said.mjs'), "export const word = 'second'")
    server.child.kill('SIGHUP')
    await until(async () => (await request(`${url}/word`)).text === 'second')
    writeFileSync(join(cwd, 'said.mjs'), 'export const word = (')
    server.child.kill('SIGHUP')
    await until(() => /ERROR.*SyntaxError/.test(server.stdout()))
    assert.equal((await request(`${url}/word`)).text, 'second')

    const places = [join(outside, 'a'), join(cwd, 'a'), join(cwd, 'word.mjs'), join(cwd, 'routes/app.json'), `${root}lib/app.ts`]
    assert.deepEqual(await attempts(url, places), {
      write: places.map(() => denied),
      read: [denied],
      child: denied,
      worker: denied,
    })
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.match(readFileSync(join(cwd, '.logs/svc.log'), 'utf8'), /stopped/)
    assert.match(readFileSync(join(cwd, '.logs/access.log'), 'utf8'), /\/upload/)
  })

  if (canDrop) testDrops()

  test('a folder of --write is writable; a persisted route needs the folder of the routes', async (t) => {
    const cwd = application('app', { 'app.env': 'dev', 'dev.watch': false })
    const more = join(temporaryFolder(), 'more')
    const kept = { name: 'kept', url: '/kept', action: 'word.mjs', persist: true }
    const add = (url: string) => request(`${url}/svc-routes/add`, { body: JSON.stringify(kept), headers: { accept: 'application/json' } })
    mkdirSync(more)
    const first = await startPrinted(t, cwd)
    const refused = await add(first.url)
    assert.equal(refused.status, 500, refused.text)
    assert.match(refused.text, /`svc permissions --write` with its folder/)
    first.child.kill('SIGTERM')
    await first.ended
    const second = await startPrinted(t, cwd, { args: ['--write', more, '--write', 'routes'] })
    assert.equal((await add(second.url)).status, 200)
    assert.deepEqual(await attempts(second.url, [join(more, 'a'), join(cwd, 'routes/b')], [join(more, 'a')]), {
      write: ['done', 'done'],
      read: ['done'],
      child: denied,
      worker: denied,
    })
  })

  test('links, a certificate and a credential can be read, and the local file can be saved', async (t) => {
    const folder = temporaryFolder()
    const { cert, key } = makeCertificate(folder, 'archive')
    const [app, live, credentials] = [join(folder, 'app'), join(folder, 'live.key'), join(folder, 'credentials')]
    symlinkSync(key, live)
    const config = { 'server.tls.cert': cert, 'server.tls.key': live, 'config.local': true, app_key: '' }
    symlinkSync(application('app', config), app)
    writeFiles(credentials, { app_key: testKey })
    const server = await startPrinted(t, temporaryFolder(), { args: ['--config', join(app, 'svc.json')], credentials })
    assert.match(server.url, /^https:/)
    assert.match(server.stdout(), /app_key comes from the credential/)
    server.child.kill('SIGHUP')
    await until(() => /ertificate/.test(server.stdout()))
    assert.equal(/ERROR/.test(server.stdout()), false, server.stdout())
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    const local = join(app, 'svc.local.json')
    const lines = wordsOf(await printed(t, app), '')
    assert.deepEqual(lines.filter((word) => /json/.test(word) && word.startsWith('--allow-fs-write')).length, 2)
    assert.equal(lines.some((word) => word.startsWith('--allow-fs-write') && word.endsWith(basename(local))), true)
  })

  test('a link beside the versions of the server stays in the command: an upgrade and a rollback use the other version', async (t) => {
    const versions = temporaryFolder()
    const [link, cwd] = [join(versions, 'current'), application('app')]
    for (const name of ['0.1.0', '0.2.0']) {
      const code = process.env['SVC_TEST_TARGET'] === 'dist' ? ['dist', 'lib'] : ['lib']
      for (const part of ['bin', 'package.json', ...code]) {
        cpSync(join(root, part), join(versions, name, part), { recursive: true, preserveTimestamps: true })
      }
      writeFileSync(join(versions, name, 'bin/version'), name)
    }
    writeFileSync(join(cwd, 'word.mjs'), "import { readFileSync } from 'node:fs'\nexport default () => readFileSync(process.argv[1].replace('svc.js', 'version'), 'utf8')")
    const use = (name: string): void => {
      rmSync(link, { force: true })
      symlinkSync(name, link)
    }
    use('0.1.0')
    const launcher = join(link, 'bin/svc.js')
    const { status, stdout } = await runLauncher(t, ['permissions'], { cwd, launcher })
    assert.equal(status, 0)
    const [, ...words] = wordsOf((stdout.split('\n')[2] ?? '').slice('ExecStart='.length), join(cwd, 'none'))
    const at = words.indexOf(launcher)
    assert.ok(at > 0, stdout)
    assert.deepEqual(words.filter((word) => word.includes(versions)), [readFlag(`${versions}/*`), launcher])
    for (const name of ['0.1.0', '0.2.0', '0.1.0']) {
      use(name)
      const nodeOptions = [...optionsOfTarget(), ...words.slice(0, at)]
      const server = launch(t, words.slice(at + 1), { cwd: temporaryFolder(), launcher, nodeOptions })
      assert.equal((await request(`${await server.listening()}/word`)).text, name)
      server.child.kill('SIGTERM')
      assert.equal(await server.ended, 0)
    }
  })

  test('a link elsewhere grants no other folder beside the server', async (t) => {
    const link = join(temporaryFolder(), 'link')
    symlinkSync(root, link)
    const launcher = join(link, 'bin/svc.js')
    const { stdout } = await runLauncher(t, ['permissions'], { cwd: application('app'), launcher })
    const read = wordsOf(stdout.split('\n')[2] ?? '', '').filter((word) => word.includes(root.slice(0, -1)) && word.includes('fs-read'))
    const code = process.env['SVC_TEST_TARGET'] === 'dist' ? 'dist' : 'lib'
    assert.deepEqual(read, [`${root}bin/*`, `${root}${code}/*`, `${root}package.json`].map(readFlag))
    assert.ok(stdout.includes(` ${launcher} start`))
  })

  test('several processes work under them', async (t) => {
    const cwd = application('app', { 'server.processes': 2 })
    const lines = (await printed(t, cwd)).split('\n')
    assert.deepEqual(lines.slice(3), [''])
    const server = await startPrinted(t, cwd)
    assert.equal(server.flags.includes('--allow-child-process'), true)
    const visitor = await signedIn(server.url)
    assert.deepEqual((await statusOf(visitor)).permission, { active: true, dropped: canDrop ? ['child', 'worker'] : [] })
    assert.equal(await isReady(server), true)
    assert.deepEqual(await sizeOfUpload(server.url, 300_000), { size: 300_000 })
    const before = new Set(await Promise.all(Array.from({ length: 8 }, async () => (await ask(server.url, '/word')).text)))
    assert.deepEqual([...before], ['first'])
    writeFileSync(join(cwd, 'said.mjs'), "export const word = 'second'")
    server.child.kill('SIGHUP')
    await until(async () => {
      const words = await Promise.all(Array.from({ length: 8 }, async () => (await ask(server.url, '/word')).text))
      return words.every((word) => word === 'second')
    })
    const { write } = (await attempts(server.url, [join(temporaryFolder(), 'a')])) as { write: readonly string[] }
    assert.deepEqual(write, [denied])
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.match(readFileSync(join(cwd, '.logs/access.log'), 'utf8'), /\/upload/)
  })
}

function testDrops(): void {
  const notified = (path: string) => ({ PATH: path, NOTIFY_SOCKET: '/run/nowhere/notify' })
  const childOf = async (url: string): Promise<unknown> => ((await attempts(url, ['/nowhere/a'])) as { child: string }).child

  test('a single process notifies the service manager once, and then starts no programs', async (t) => {
    const { path, calls } = fakeNotify()
    const server = await startPrinted(t, application('app'), { env: notified(path) })
    await until(() => calls().length === 1)
    assert.deepEqual(calls()[0]?.slice(1), ['READY=1', `STATUS=listening on ${server.url}`])
    assert.equal(await childOf(server.url), denied)
    server.child.kill('SIGHUP')
    await until(() => /reloaded/.test(server.stdout()))
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.equal(calls().length, 1)
    assert.doesNotMatch(server.stdout(), /not notified/)
  })

  test('a process that feeds a watchdog, and one with permission.keep, may start programs', async (t) => {
    const { path, calls } = fakeNotify()
    const watched = await startPrinted(t, application('app'), { env: { ...notified(path), WATCHDOG_USEC: '200000' } })
    await until(() => calls().filter(([, text]) => text === 'WATCHDOG=1').length > 1)
    assert.equal(await childOf(watched.url), 'done')
    const keeping = await startPrinted(t, application('app', { 'permission.keep': ['child'] }))
    assert.equal(await childOf(keeping.url), 'done')
    assert.deepEqual((await statusOf(await signedIn(keeping.url))).permission.dropped, ['worker'])
  })

  test('gives up the credentials, and the configuration file when there is nothing to save', async (t) => {
    const credentials = temporaryFolder()
    writeFiles(credentials, { app_key: testKey })
    const cwd = application('app', { app_key: '' })
    const files = [join(cwd, 'svc.json'), join(cwd, '.svc.json.x')]
    const first = await startPrinted(t, cwd, { credentials })
    await signedIn(first.url)
    assert.deepEqual(await attempts(first.url, files.slice(1), [join(credentials, 'app_key')]), {
      write: ['done'],
      read: [denied],
      child: denied,
      worker: denied,
    })
    first.child.kill('SIGTERM')
    await first.ended
    const second = await startPrinted(t, cwd, { credentials })
    const visitor = new Visitor(second.url)
    await visitor.submit('/svc-login', '/svc-login', { user: 'ann', password })
    assert.deepEqual((await statusOf(visitor)).permission.dropped, ['child', 'fs.read', 'fs.write', 'worker'])
    const { write } = (await attempts(second.url, files)) as { write: readonly string[] }
    assert.deepEqual(write, [denied, denied])
    second.child.kill('SIGTERM')
    await second.ended
    const { codes, hashes } = makeRecoveryCodes()
    saveConfig(join(cwd, 'svc.json'), { 'admin.totp': makeTotpSecret(), 'admin.recovery_codes': hashes })
    const third = await startPrinted(t, cwd, { credentials })
    const recovering = new Visitor(third.url)
    await recovering.submit('/svc-login', '/svc-login', { user: 'ann', password, code: codes[0] ?? '' })
    assert.deepEqual((await statusOf(recovering)).permission.dropped, ['child', 'fs.read', 'worker'])
    assert.deepEqual(loadConfig(join(cwd, 'svc.json')).config['admin.recovery_codes'], hashes.slice(1))
    assert.ok(existsSync(join(cwd, '.cached', 'totp-used')))
  })
}

function readFlag(path: string): string {
  return `--allow-fs-read=${path}`
}

function writeFlag(path: string): string {
  return `--allow-fs-write=${path}`
}
