// Clients that hold connections without doing anything, against a server with few file descriptors and workers.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { requestText } from '../support/connection.ts'
import { optionsOfTarget, root } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const hello = { name: 'hello', url: '/hello', action: 'hello.mjs' }
const others = ['read', 'poll', 'leak'].map((name) => ({ name, url: `/${name}`, action: `hello.mjs@${name}` }))

/** Starts a server with a limit of open files, in a separate process. */
async function startLimited(t: TestContext, limit: number) {
  const folder = temporaryFolder()
  writeFiles(folder, {
    'svc.json': {
      app: { env: 'dev' }, app_key: 'test', server: { port: 0 }, paths: { public: 'public' }, pool_http: { workers: 20 },
    },
    'routes/hello.json': [hello, ...others],
    'hello.mjs': `import { openSync } from 'node:fs'
      export default () => 'hello'
      export const leak = () => String(openSync('hello.mjs'))
      export const read = async (ctx) => (await ctx.readText()).length + ' bytes'
      export const poll = (ctx) => ctx.longPoll(ctx.channel('c'), { timeout_s: 600 })`,
    'public/large.bin': 'x'.repeat(4_000_000),
  })
  // Node opens the modules of one import concurrently, so a server does not start with 128.
  const limited = ['-c', `ulimit -n ${limit}; exec "$0" "$@"`, process.execPath, ...optionsOfTarget(), `${root}bin/svc.js`]
  const child = spawn('sh', [...limited, 'start'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  await until(() => text.includes('listening on '))
  const url = /listening on (\S+)/.exec(text)?.[1] as string // matched above
  const sockets: Socket[] = []
  t.after(() => sockets.forEach((socket) => socket.destroy()))
  /** Opens a connection that sends the text and reads nothing. */
  const open = (bytes: string): Socket => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
    socket.write(bytes)
    sockets.push(socket.pause())
    return socket
  }
  const status = async () =>
    (await request(`${url}/svc-status`)).json() as {
      connections: { stalled: number }
      pool_rest: { longpoll: number }
      warnings: string[]
    }
  const megabytes = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024
  return { child, url, open, status, megabytes, log: () => text }
}

describe('a server with few file descriptors', () => {
  it('closes only the connections longest without progress', async (t) => {
    const { url, open, status, log } = await startLimited(t, 512)
    const waits = open(requestText('GET /poll', ['Host: localhost']).replace('Host: h\r\n', ''))
    let waitsClosed = false
    waits.resume().on('close', () => (waitsClosed = true))
    await until(async () => (await status()).pool_rest.longpoll === 1)
    let closed = 0
    for (let count = 0; count < 600; count += 1) open('').resume().on('close', () => (closed += 1))
    await until(() => closed > 150)
    assert.equal((await request(`${url}/hello`)).text, 'hello')
    const { connections, warnings } = await status()
    assert.ok(connections.stalled > 150, `${connections.stalled}`)
    assert.match(warnings.join(), /of 512 file descriptors are open: connections without progress are closed/)
    assert.match(log(), /\[WARN \] \[socket\] \d+ of 512 file descriptors are open, with \d+ connections, closed \d+ that made no progress/)
    assert.ok(!waitsClosed, 'a client that waits for an event keeps up')
  })

  it('warns when the application leaves files open, and serves', async (t) => {
    const { url, status, log } = await startLimited(t, 512)
    const said = /\[WARN \] \[socket\] \d+ of 512 file descriptors are open, with \d+ connections, none of which can be closed; raise the limit \(LimitNOFILE=\), or look for files that the application leaves open/
    for (let leaked = 0; leaked < 400; leaked += 1) await request(`${url}/leak`)
    await until(() => said.test(log()))
    assert.match((await status()).warnings.join(), /of 512 file descriptors are open/)
    assert.equal((await request(`${url}/hello`)).text, 'hello')
  })

  it('serves others while 1,200 clients read nothing and 1,200 send nothing', async (t) => {
    const { child, url, open, status, megabytes } = await startLimited(t, 400)
    const local = ['Host: localhost']
    const readsNothing = requestText('GET /large.bin', local).replace('Host: h\r\n', '').repeat(100)
    const sendsNothing = requestText('POST /read', [...local, 'Content-Length: 100']).replace('Host: h\r\n', '')
    let slowestMs = 0
    const ask = async (): Promise<void> => {
      const beganMs = performance.now()
      assert.equal((await request(`${url}/hello`)).text, 'hello')
      slowestMs = Math.max(slowestMs, performance.now() - beganMs)
    }
    for (let count = 0; count < 200; count += 1) await ask()
    const [unloadedMs, before] = [slowestMs, megabytes()]
    slowestMs = 0
    for (let count = 0; count < 1200; count += 1) {
      open(readsNothing)
      open(sendsNothing)
      if (count % 10 === 0) await ask()
    }
    for (let count = 0; count < 100; count += 1) await ask()
    const grown = megabytes() - before
    t.diagnostic(`slowest answer ${slowestMs.toFixed()} ms, unloaded ${unloadedMs.toFixed()} ms; ${grown.toFixed()} MB more`)
    assert.ok(grown < 100, `${grown} MB more`)
    assert.ok((await status()).connections.stalled > 1000)
    assert.equal(child.exitCode, null)
  })
})
