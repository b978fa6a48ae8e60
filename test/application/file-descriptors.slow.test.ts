import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { root } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

test('a server without a free file descriptor refuses connections, says so, and goes on', async (t) => {
  const folder = temporaryFolder()
  writeFiles(folder, {
    'svc.json': { app: { env: 'dev' }, app_key: 'test', server: { port: 0 } },
    'routes/hello.json': [{ name: 'hello', url: '/hello', action: 'hello.html' }],
    'hello.html': 'hello',
  })
  // Node opens the modules of one import at the same time, so a server does not start with 128.
  const limited = ['-c', 'ulimit -n 512; exec "$0" "$@"', process.execPath, ...nodeOptions(), `${root}bin/svc.js`]
  const child = spawn('sh', [...limited, 'start'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  await until(() => text.includes('listening on '))
  const url = /listening on (\S+)/.exec(text)?.[1] as string // It has just been said.
  const port = Number(new URL(url).port)
  const sockets: Socket[] = []
  t.after(() => sockets.forEach((socket) => socket.destroy()))
  const kept = await openConnection()
  let closed = 0
  for (let count = 0; count < 600; count += 1) {
    sockets.push(connect(port, '127.0.0.1').on('error', () => {}).on('close', () => (closed += 1)))
  }
  await until(() => closed === 153) // 512 less 64 are taken, one of them by `kept`.
  kept.write('GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [answer] = (await once(kept, 'data')) as [Buffer]
  assert.match(answer.toString(), /^HTTP\/1\.1 200 [^]*hello/) // There is a descriptor left to read the view with.
  assert.match(text, /\[WARN \] \[socket\] refused a connection: 448 are open, as many as the limit of open files allows/)
  for (const socket of sockets) socket.destroy()
  await until(async () => (await request(`${url}/hello`).catch(() => undefined))?.status === 200)
  const { connections } = (await request(`${url}/svc-status`)).json() as { connections: { refused: number } }
  assert.ok(connections.refused >= 153)

  async function openConnection(): Promise<Socket> {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    await once(socket, 'connect')
    socket.write('GET /svc-ping HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'data')
    return socket
  }
})

/** As the tests themselves are run. */
function nodeOptions(): string[] {
  const runsTypeScript = Boolean((process.features as { typescript?: string | false }).typescript)
  if (process.env['SVC_TEST_TARGET'] === 'dist') return runsTypeScript ? ['--no-experimental-strip-types'] : []
  return runsTypeScript ? [] : ['--import', import.meta.resolve('tsx')]
}
