import assert from 'node:assert/strict'
import { openSync, readFileSync, closeSync, existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { helpText } from '../../lib/cli/options.ts'
import { version } from '../../lib/base/version.ts'
import { launch, runLauncher } from '../support/launch.ts'
import { complaintsIn } from '../support/log-lines.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { printedWithoutNode } from '../support/node-warnings.ts'

describe('the commands that start no server', () => {
  it('prints help and version on standard output, with status 0', async (t) => {
    const cwd = temporaryFolder()
    assert.deepEqual(await runLauncher(t, ['--help'], { cwd }), { status: 0, stdout: helpText, stderr: '' })
    assert.deepEqual(await runLauncher(t, ['-v'], { cwd }), { status: 0, stdout: `svc ${version}\n`, stderr: '' })
  })

  it('prints wrong usage on standard error, with the help, with status 2', async (t) => {
    const cwd = temporaryFolder()
    const { status, stdout, stderr } = await runLauncher(t, ['strat'], { cwd })
    assert.deepEqual([status, stdout], [2, ''])
    assert.equal(stderr, `unknown word "strat": did you mean start?\n\n${helpText}`)
  })

  it('creates an application that passes its check and runs in prod and in dev', async (t) => {
    const cwd = temporaryFolder()
    const made = await runLauncher(t, ['init', 'app'], { cwd })
    assert.deepEqual([made.status, made.stderr], [0, ''])
    assert.match(made.stdout, /^Created in .*app:\n {2}svc\.json\n/)

    const again = await runLauncher(t, ['init', 'app'], { cwd })
    assert.deepEqual([again.status, again.stdout], [1, ''])
    assert.match(again.stderr, /^Cannot create an application in .*app: it is not empty/)

    const folder = join(cwd, 'app')
    const before = readFileSync(join(folder, 'svc.json'), 'utf8')
    const checked = await runLauncher(t, ['check'], { cwd: folder })
    assert.deepEqual({ ...checked, stdout: printedWithoutNode(checked.stdout) }, {
      status: 0,
      stdout: `${join(folder, 'svc.json')}: all is well, 2 routes\n`,
      stderr: '',
    })
    for (const env of ['prod', 'dev']) {
      const server = launch(t, ['--port', '0', '--env', env], { cwd: folder })
      const url = await server.listening()
      const page = await request(url)
      assert.equal(page.status, 200)
      assert.match(page.text, /<h1>It works<\/h1>[^]*<a href="\/hello\/world">/)
      assert.deepEqual((await request(`${url}/hello/ann%20b`)).json(), { hello: 'ann b' })
      server.child.kill('SIGTERM')
      assert.equal(await server.ended, 0)
      assert.equal(server.stderr(), '')
      const complaints = complaintsIn(server.stdout().split('\n'))
      // A new server has no admin yet, and logs it in prod.
      assert.deepEqual(complaints.filter((line) => env === 'dev' || !line.includes('the admin panel is not set up')), [])
    }
    assert.equal(readFileSync(join(folder, 'svc.json'), 'utf8'), before)
  })
})

describe('the choice of the configuration', () => {
  const answer = (text: string): string => `export default () => '${text}'`

  it('takes --config before $SVC_CONFIG before svc.json of the working directory', async (t) => {
    const [named, fromEnv, here] = ['named', 'env', 'here'].map((name) =>
      applicationFolder({ 'home.mjs': answer(name), 'other.json': { 'server.port': 0 } }),
    ) as [string, string, string]
    const env = { SVC_CONFIG: join(fromEnv, 'other.json') }
    const config = ['--config', join(named, 'svc.json')]
    for (const [args, options, expected] of [
      [config, { cwd: here, env }, 'named'],
      [[], { cwd: here, env }, 'env'],
      [[], { cwd: here, env: { SVC_CONFIG: '' } }, 'here'],
    ] as const) {
      const server = launch(t, args, options)
      assert.equal((await request(await server.listening())).text, expected)
    }
  })

  it('takes the one shipped with the server if there is none in the working directory', async (t) => {
    const cwd = temporaryFolder()
    const { status, stdout } = await runLauncher(t, ['routes'], { cwd })
    assert.equal(status, 0)
    assert.match(stdout, /^board\.home +GET +\/ /m)
  })

  it('exits with 78 if the named file does not exist, for every command', async (t) => {
    const cwd = applicationFolder()
    const file = join(cwd, 'none.json')
    for (const word of ['start', 'check', 'routes', 'passwd']) {
      const byOption = await runLauncher(t, [word, '--config=none.json'], { cwd })
      assert.equal(byOption.status, 78, word)
      assert.ok(byOption.stderr.endsWith(`Cannot load ${file}: there is no such file, which --config names\n`), byOption.stderr)
      const byVariable = await runLauncher(t, [word], { cwd, env: { SVC_CONFIG: 'none.json' } })
      assert.deepEqual([byVariable.status, byVariable.stderr.includes('which $SVC_CONFIG names')], [78, true], word)
    }
    assert.ok(!existsSync(file))
  })

  it('names its configuration in the first line, and logs that it runs the demo if there is no other', async (t) => {
    const cwd = applicationFolder()
    for (const [folder, isDemo] of [[cwd, false], [temporaryFolder(), true]] as const) {
      const server = launch(t, ['start', '--port=0', '--env=dev'], { cwd: folder })
      await server.listening()
      const [first = ''] = server.stdout().split('\n')
      assert.match(first, isDemo ? /, configuration \/.*svc\.json$/ : new RegExp(`, configuration ${cwd}/svc\\.json$`))
      assert.equal(server.stdout().includes('[INFO ] [server] no svc.json here: running the demo application\n'), isDemo)
      server.child.kill('SIGTERM')
      assert.equal(await server.ended, 0)
    }
  })

  it('lets host, port and environment of the command line override the file', async (t) => {
    const files = { 'home.mjs': 'export default () => { throw new Error("the reason") }' }
    const cwd = applicationFolder(files, { 'server.host': '192.0.2.1', 'server.port': 1 }) // a documentation address
    const server = launch(t, ['--host', '127.0.0.1', '--env', 'dev', 'start', '--port', '0'], { cwd })
    const url = await server.listening()
    assert.match(url, /^http:\/\/127\.0\.0\.1:[1-9][0-9]+$/)
    assert.match((await request(url)).text, /the reason/)
  })

  it('reports every invalid value, `check` also the files named by others, with status 78, and keeps the file unchanged', async (t) => {
    const text = '{"log": {"level": "loud", "max_size_mb": -3}, "serve": {"port": 1}, \n"paths.public": "gone", "server.tls.cert": "a"}'
    const cwd = applicationFolder({ 'svc.json': text })
    for (const word of ['start', 'check', 'routes']) {
      const { status, stdout, stderr } = await runLauncher(t, [word], { cwd })
      assert.equal(status, 78, word)
      const [warning, ...problems] = printedWithoutNode(`${stdout}${stderr}`).split('\n')
      assert.match(warning ?? '', /^warning: .*svc\.json: .*serve/, word)
      const expected = [
        /^(?:problem: )?Cannot load .*svc\.json: 2 problems$/,
        /^ {2}log\.level must be .*: it is "loud" \(line 1\)$/,
        /^ {2}log\.max_size_mb must be 1 to 100000: it is -3 \(line 1\)$/,
      ]
      if (word === 'check') {
        const both = 'server\\.tls\\.cert is "a" and server\\.tls\\.key is empty: set both, or none of them'
        expected.push(new RegExp(`^problem: Cannot load .*: ${both} \\(line 2\\)$`), /^problem: .*: paths\.public: .*gone.* \(line 2\)$/)
      }
      for (const [at, pattern] of expected.entries()) assert.match(problems[at] ?? '', pattern)
      assert.deepEqual(problems.slice(expected.length), [''])
    }
    assert.equal(readFileSync(join(cwd, 'svc.json'), 'utf8'), text)
    assert.ok(!existsSync(join(cwd, '.logs')))
  })

  it('refuses invalid route and middleware files with status 78 and the reason in the log', async (t) => {
    const rows: [files: Record<string, unknown>, reasons: RegExp[]][] = [
      [{ 'routes/b.json': '{', 'routes/c.json': {} }, [/b\.json: it is not valid JSON/, /c\.json: /]],
      [{ 'routes/middleware/config.json': { load: 'a.js' } }, [/middleware\/config\.json: load must be a list/]],
      [{ 'routes/middleware/config.json': { load: ['a.js'] } }, [/Cannot load .*a\.js: .*no such file/]],
      [
        { 'routes/middleware/config.json': { load: ['a.js', 'b.mjs'], setup: { session: { ttl_s: -1 } } }, 'routes/middleware/b.mjs': '(' },
        [/Cannot load .*a\.js: .*no such file, which config\.json names; Cannot load .*b\.mjs/, /config\.json: setup\.session\.ttl_s must be/],
      ],
      [
        { 'routes/middleware/config.json': { load: ['a.mjs'] }, 'routes/middleware/a.mjs': 'export const setup = () => { throw new Error("no disk") }' },
        [/Cannot set up middleware a\.mjs: no disk/],
      ],
    ]
    for (const [files, reasons] of rows) {
      const cwd = applicationFolder(files)
      const { status, stdout } = await runLauncher(t, [], { cwd })
      assert.equal(status, 78)
      const [fatal] = readFileSync(join(cwd, '.logs/svc.log'), 'utf8').split('\n').filter((line) => line.includes('[FATAL]'))
      for (const reason of reasons) assert.match(fatal ?? '', reason)
      assert.ok(stdout.includes(`${fatal}\n`))
      assert.doesNotMatch(stdout, /listening/)
    }
  })

  it('starts without an invalid record, and logs it', async (t) => {
    const cwd = applicationFolder({ 'routes/b.json': [{ name: 'b', url: 'b', action: 'b.mjs' }] })
    const server = launch(t, [], { cwd })
    assert.equal((await request(await server.listening())).text, 'home')
    assert.match(server.stdout(), /\[ERROR\] \[config\] b\.json:1:14: route "b": /)
  })
})

describe('a server that cannot continue', () => {
  it('exits with 1 when the port is in use', async (t) => {
    const other = createServer().listen(0, '127.0.0.1')
    t.after(() => other.close())
    await once(other, 'listening')
    const port = String((other.address() as AddressInfo).port)
    const { status, stdout } = await runLauncher(t, ['--port', port], { cwd: applicationFolder() })
    assert.equal(status, 1)
    assert.match(stdout, new RegExp(`\\[FATAL\\] \\[server\\] .*${port}`))
  })

  it('reports why on standard error if its log does not go to the console', async (t) => {
    const other = createServer().listen(0, '127.0.0.1')
    t.after(() => other.close())
    await once(other, 'listening')
    const port = String((other.address() as AddressInfo).port)
    const { status, stdout, stderr } = await runLauncher(t, ['--port', port], {
      cwd: applicationFolder({}, { 'log.console': false }),
    })
    assert.deepEqual([status, stdout], [1, ''])
    assert.match(stderr, new RegExp(`^[^\\n]*${port}[^\\n]*\\n$`))
  })

  for (const [what, code] of [
    ['an exception', 'setTimeout(() => { throw new Error("gone wrong") }, 20)'],
    ['a rejection', 'setTimeout(() => { Promise.reject(new Error("gone wrong")) }, 20)'],
  ] as const) {
    it(`logs ${what} outside of a request as FATAL with its stack, and ends with 1`, async (t) => {
      const cwd = applicationFolder({
        'routes/middleware/config.json': { load: ['feed.mjs'] },
        'routes/middleware/feed.mjs': `export function setup() { ${code} }`,
      })
      const { status } = await runLauncher(t, [], { cwd })
      assert.equal(status, 1)
      const log = readFileSync(join(cwd, '.logs/svc.log'), 'utf8')
      assert.match(log, /\[FATAL\] \[error\] (uncaughtException|unhandledRejection): gone wrong\n {4}Error: gone wrong\n {4}at .*feed\.mjs/)
      assert.ok(log.endsWith('\n'))
    })
  }

  it('reports it on standard error too if the log does not go there, as a single process and as a primary', async (t) => {
    const code = "setInterval(() => { if (process.listenerCount('uncaughtException') > 0) throw Error('gone wrong') }, 20)"
    const preload = encodeURIComponent(`if (process.env.SVC_PROCESS === undefined) ${code}`)
    for (const count of [1, 2]) {
      const cwd = applicationFolder({}, { 'log.console': false, 'server.processes': count })
      const env = { NODE_OPTIONS: `--import=data:text/javascript,${preload}` }
      const { status, stdout, stderr } = await runLauncher(t, [], { cwd, env })
      assert.deepEqual([status, stdout], [1, ''])
      assert.match(stderr, /^uncaughtException: gone wrong\n/)
      assert.match(readFileSync(join(cwd, '.logs/svc.log'), 'utf8'), /\[FATAL\] \[error\] uncaughtException: gone wrong\n/)
    }
  })

  it('reports a thrown value that is not an Error', async (t) => {
    const cwd = applicationFolder({
      'routes/middleware/config.json': { load: ['feed.mjs'] },
      'routes/middleware/feed.mjs': 'export function setup() { setTimeout(() => { throw "only words" }, 20) }',
    })
    const { status, stdout } = await runLauncher(t, [], { cwd })
    assert.equal(status, 1)
    assert.match(stdout, /\[FATAL\] \[error\] uncaughtException: only words\n/)
  })

  it('flushes lines logged in the turn in which it exits', async (t) => {
    const cwd = applicationFolder({
      'routes/middleware/config.json': { load: ['feed.mjs'] },
      'routes/middleware/feed.mjs':
        "export function setup(app) { setTimeout(() => { app.logger('feed')('the last words'); process.exit(5) }, 20) }",
    })
    assert.equal((await runLauncher(t, [], { cwd })).status, 5)
    assert.match(readFileSync(join(cwd, '.logs/svc.log'), 'utf8'), /\[INFO \] \[feed\] the last words\n.*\[ERROR\] \[server\] the process exits with status 5; \d+ MiB of memory; no running request\n$/)
  })
})

describe('a closed console', () => {
  it('does not stop the server when the reader of its output leaves', async (t) => {
    const cwd = applicationFolder({ 'home.mjs': "export default ({ log }) => { log('asked'); return 'home' }" })
    const server = launch(t, [], { cwd })
    const url = await server.listening()
    server.child.stdout?.destroy()
    server.child.stderr?.destroy()
    for (let count = 0; count < 5; count += 1) assert.equal((await request(url)).text, 'home')
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    const log = readFileSync(join(cwd, '.logs/svc.log'), 'utf8')
    assert.equal(log.match(/\[app\] asked\n/g)?.length, 5)
    assert.match(log, /\[INFO \] \[server\] stopped\n$/)
  })

  it('does not stop the server when the disk behind its output is full', async (t) => {
    const cwd = applicationFolder()
    const full = openSync('/dev/full', 'w')
    const server = launch(t, [], { cwd, output: full })
    closeSync(full)
    const log = join(cwd, '.logs/svc.log')
    const url = (): string | undefined => /listening on (\S+)\n/.exec(existsSync(log) ? readFileSync(log, 'utf8') : '')?.[1]
    await until(() => url() !== undefined)
    assert.equal((await request(String(url()))).text, 'home')
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
  })
})
