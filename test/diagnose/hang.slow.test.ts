import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { freePort } from '../support/free-port.ts'
import { launch, optionsOfTarget, type Launched, type LaunchOptions } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'

const actions = `import fs from 'node:fs'
import { execSync } from 'node:child_process'
export function spin() { while (!fs.existsSync('go')) {} return 'ended' }
export function pattern() { return String(/^(a+)+$/.test('a'.repeat(40) + 'b')) }
export function pipe() { return fs.readFileSync('pipe', 'utf8') }
export function deep(n = 6000) { const all = { n, list: [n] }; if (n > 0) return deep(n - 1) + all.list.length - 1; while (!fs.existsSync('go')) {} return 0 }
export const deepest = () => String(deep())
export function fill({ log }) { for (let at = 0; at < 3000; at += 1) log('x'.repeat(100)); return 'filled' }
export function exit() { process.exit(3) }
export async function kill() {
  const has = (name) => name.startsWith('last-state') && fs.readFileSync('.cached/' + name, 'latin1').includes('GET /kill')
  while (!fs.readdirSync('.cached').some(has)) await new Promise((resolve) => setTimeout(resolve, 20))
  process.kill(process.pid, 'SIGKILL')
}`
const names = ['spin', 'deepest', 'fill', 'pattern', 'pipe', 'exit', 'kill']
const files = {
  'hang.mjs': actions,
  'routes/hang.json': names.map((name) => ({ name, url: `/${name}`, action: `hang.mjs@${name}` })),
}

const watched = { 'log.format': 'json', 'app.env': 'dev', 'dev.watch': false, 'server.hang_trace_s': 1 }

interface Line {
  readonly level: string
  readonly module: string
  readonly message: string
  readonly process?: number
  readonly error?: { readonly stack: string }
}

interface Started extends Launched {
  readonly url: string
  readonly cwd: string
  /** The lines of its log file. */
  lines(): Line[]
  /** The lines about an event loop that a request blocks, once there are so many; a busy machine may block it at the start. */
  blocked(count: number): Promise<Line[]>
}

async function start(t: TestContext, config: Readonly<Record<string, unknown>> = {}, options: Partial<LaunchOptions> = {}): Promise<Started> {
  const { cwd = applicationFolder(files, { ...watched, ...config }) } = options
  const server = launch(t, [], { ...options, cwd })
  const url = (await server.listening()).replace(/"}$/, '') // From a line of JSON.
  const lines = (): Line[] =>
    readFileSync(join(cwd, '.logs/svc.log'), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as Line)
  const ofHang = (): Line[] => lines().filter(({ level, message }) => level === 'error' && /has been blocked.*running: GET/.test(message))
  const blocked = async (count: number): Promise<Line[]> => {
    await until(() => ofHang().length >= count)
    return ofHang()
  }
  return { ...server, url, cwd, lines, blocked }
}

/** Requests a route that may never answer. */
const ask = (url: string): Promise<string> => request(url).then(({ text }) => text, () => 'no answer')

for (const processes of [1, 2]) {
  const who = processes === 1 ? 'the event loop' : 'the event loop of process [12]'

  describe(`an event loop that hangs, with ${processes} process${processes === 1 ? '' : 'es'}`, () => {
    it('in a loop is logged once with its request and its code, and again when it hangs again', async (t) => {
      const server = await start(t, { 'server.processes': processes })
      for (const count of [1, 2]) {
        const asked = ask(`${server.url}/spin`)
        const lines = await server.blocked(count)
        const { message, module, error, process: number } = lines.at(-1) as Line
        assert.match(message, new RegExp(`^${who} has been blocked for 1 s; \\d+ MiB of memory; running: GET /spin$`))
        assert.equal(module, 'server')
        assert.match(error?.stack ?? '', /\n {4}at spin \(.*hang\.mjs:3:\d+\)\n/)
        assert.equal(typeof number, processes === 1 ? 'undefined' : 'number')
        writeFileSync(join(server.cwd, 'go'), '')
        assert.equal(await asked, 'ended')
        await until(() => server.lines().some(({ message }) => message.includes('was blocked for')))
        assert.equal((await server.blocked(count)).length, count)
        execFileSync('rm', [join(server.cwd, 'go')])
      }
      const errors = await request(`${server.url}/svc-errors?format=json`)
      assert.match(errors.text, /has been blocked for 1 s.*running: GET \/spin/)
      server.child.kill('SIGTERM')
      assert.equal(await server.ended, 0)
      assert.deepEqual(readdirSync(join(server.cwd, '.cached')).filter((name) => name.startsWith('last-state')), [])
    })

    it('in a regular expression is logged with the function that uses it', async (t) => {
      const server = await start(t, { 'server.processes': processes, 'server.hang_timeout_s': 4 })
      const asked = ask(`${server.url}/pattern`)
      const [line] = await server.blocked(1)
      assert.match(line?.message ?? '', /running: GET \/pattern$/)
      assert.match(line?.error?.stack ?? '', /\n {4}at pattern \(.*hang\.mjs:4:\d+\)\n/)
      if (processes === 1) server.child.kill('SIGKILL') // A service manager would; the primary of several does it.
      assert.equal(await asked, 'no answer')
    })

    it('in native code is logged with its request, and the server then continues', async (t) => {
      const server = await start(t, { 'server.processes': processes })
      execFileSync('mkfifo', [join(server.cwd, 'pipe')])
      const asked = ask(`${server.url}/pipe`)
      const [line] = await server.blocked(1)
      assert.match(line?.message ?? '', new RegExp(`^${who} has been blocked for 1 s in native code; .*running: GET /pipe$`))
      assert.equal(line?.error, undefined)
      const pipe = openSync(join(server.cwd, 'pipe'), 'w')
      writeSync(pipe, 'read')
      closeSync(pipe)
      assert.equal(await asked, 'read')
      for (let at = 0; at < 8; at += 1) assert.equal((await request(server.url)).text, 'home')
    })
  })

  describe(`a process that ends unexpectedly, with ${processes} process${processes === 1 ? '' : 'es'}`, () => {
    it('by process.exit() says which requests were running', async (t) => {
      const server = await start(t, { 'server.processes': processes })
      await ask(`${server.url}/exit`)
      const isLogged = ({ message }: Line): boolean =>
        /^the process exits with status 3; \d+ MiB of memory; running: GET \/exit$/.test(message)
      await until(() => server.lines().some(isLogged))
      if (processes === 1) assert.equal(await server.ended, 3)
      else await until(() => server.lines().some(({ message }) => /process . ended: with status 3/.test(message)))
    })

    it('by a signal leaves its last state to the next one', async (t) => {
      const server = await start(t, { 'server.processes': processes })
      await ask(`${server.url}/kill`)
      if (processes === 1) {
        assert.equal(await server.ended, 'SIGKILL')
        const next = await start(t, {}, { cwd: server.cwd })
        assert.ok(next.lines().some(({ message }) => /^the last run.* Last seen: \d+ MiB of memory; running: GET \/kill$/.test(message)))
      } else {
        const isLogged = ({ message }: Line): boolean =>
          /^process . ended: by SIGKILL; last seen: \d+ MiB of memory; running: GET \/kill; restarting$/.test(message)
        await until(() => server.lines().some(isLogged))
      }
    })
  })
}

describe('the watch of the event loop', () => {
  it('logs a deep stack, and goes on', async (t) => {
    const server = await start(t)
    for (const count of [1, 2]) {
      const asked = ask(`${server.url}/deepest`)
      const line = (await server.blocked(count)).at(-1)
      assert.match(line?.message ?? '', /running: GET \/deepest$/)
      assert.match(line?.error?.stack ?? '', /at deep \(.*hang\.mjs:\d+:\d+\)\n {4}at deep \(/)
      writeFileSync(join(server.cwd, 'go'), '')
      assert.equal(await asked, '0')
      execFileSync('rm', [join(server.cwd, 'go')])
    }
  })

  it('logs into the file while nobody reads the console', async (t) => {
    const fifo = join(applicationFolder(), 'console')
    execFileSync('mkfifo', [fifo])
    const console = openSync(fifo, 'r+')
    t.after(() => closeSync(console))
    const port = await freePort()
    const cwd = applicationFolder(files, { ...watched, 'server.port': port })
    launch(t, [], { cwd, output: console })
    const url = `http://127.0.0.1:${port}`
    await until(async () => (await ask(url)) === 'home')
    assert.equal(await ask(`${url}/fill`), 'filled')
    for (const count of [1, 2]) {
      const asked = ask(`${url}/spin`)
      await until(() => readFileSync(join(cwd, '.logs/svc.log'), 'utf8').split('has been blocked').length > count)
      writeFileSync(join(cwd, 'go'), '')
      assert.equal(await asked, 'ended')
      execFileSync('rm', [join(cwd, 'go')])
    }
    assert.doesNotMatch(readFileSync(join(cwd, '.logs/svc.log'), 'utf8'), /watches the event loop has failed/)
  })

  it('gives its lines a priority and no time in the journal', async (t) => {
    const journal = join(applicationFolder(), 'journal')
    const fd = openSync(journal, 'w')
    t.after(() => closeSync(fd))
    const { dev, ino } = fstatSync(fd)
    const port = await freePort()
    const cwd = applicationFolder(files, { ...watched, 'log.format': 'text', 'server.port': port })
    launch(t, [], { cwd, output: fd, env: { JOURNAL_STREAM: `${dev}:${ino}` } })
    const url = `http://127.0.0.1:${port}`
    await until(async () => (await ask(url)) === 'home')
    const asked = ask(`${url}/spin`)
    await until(() => readFileSync(journal, 'utf8').includes('at spin'))
    writeFileSync(join(cwd, 'go'), '')
    assert.equal(await asked, 'ended')
    assert.match(readFileSync(journal, 'utf8'), /^<3>\[ERROR\] \[server\] the event loop has been blocked .*\n<3> +Blocked: .*\n<3> +at spin/m)
  })

  it('runs where a service manager started the server, unless the configuration says otherwise', async (t) => {
    const service = { INVOCATION_ID: 'a', NODE_OPTIONS: '' }
    const hasState = ({ cwd }: Started): boolean => existsSync(join(cwd, '.cached/last-state'))
    const ofService = await start(t, { 'server.hang_trace_s': 'auto' }, { env: service })
    await until(() => hasState(ofService))
    for (const [value, env] of [['auto', {}], [0, service]] as const) {
      const unwatched = await start(t, { 'server.hang_trace_s': value }, { env })
      unwatched.child.kill('SIGTERM')
      assert.equal(await unwatched.ended, 0)
      assert.equal(hasState(unwatched), false)
    }
  })

  if (process.allowedNodeEnvironmentFlags.has('--permission')) {
    it('says at the start that the permission model denies it, and later that there is no stack', async (t) => {
      const net = process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []
      const flags = ['--permission', '--allow-fs-read=*', '--allow-fs-write=*', ...net]
      const denied = await start(t, {}, { nodeOptions: [...optionsOfTarget(), ...flags] })
      const isSaid = ({ level, message }: Line): boolean => level === 'warn' && /^server\.hang_trace_s has no effect: .*--allow-worker/.test(message)
      assert.ok(denied.lines().some(isSaid))
      const allowed = await start(t, {}, { nodeOptions: [...optionsOfTarget(), ...flags, '--allow-worker'] })
      assert.equal(allowed.lines().some(isSaid), false)
      const asked = ask(`${allowed.url}/spin`)
      const [line] = await allowed.blocked(1)
      if (process.allowedNodeEnvironmentFlags.has('--allow-inspector')) {
        assert.match(line?.message ?? '', /blocked for 1 s \(no stack: .*--allow-inspector.*\); .*running: GET \/spin$/)
      } else assert.match(line?.message ?? '', /running: GET \/spin$/)
      writeFileSync(join(allowed.cwd, 'go'), '')
      assert.equal(await asked, 'ended')
    })
  }
})
