import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { writeFiles } from '../support/application.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { fakeNotify } from './fake-notify.ts'

const socket = '/run/nowhere/notify'

describe('a server started by a service manager', () => {
  it('reports its start, its reload, a failed reload, and its stop', async (t) => {
    const { path, calls } = fakeNotify()
    const cwd = applicationFolder({ 'home.mjs': "export default () => [process.env.NOTIFY_SOCKET, process.env.LISTEN_FDS]" })
    const server = launch(t, [], { cwd, env: { PATH: path, NOTIFY_SOCKET: socket } })
    const url = await server.listening()
    const told = (): string[] => calls().map(([, ...texts]) => texts.filter((text) => !text.startsWith('MONO')).join(' '))
    assert.deepEqual((await request(url)).json(), [null, null])
    server.child.kill('SIGHUP')
    await until(() => told().length === 3)
    writeFiles(cwd, { 'routes/home.json': '{' })
    server.child.kill('SIGHUP')
    await until(() => told().length === 5)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    await until(() => told().length === 6)
    assert.deepEqual(told(), [
      `READY=1 STATUS=listening on ${url}`,
      'RELOADING=1 STATUS=reloading',
      'READY=1 STATUS=reloaded',
      'RELOADING=1 STATUS=reloading',
      'READY=1 STATUS=the last reload failed, so the old state is in use: see the log',
      'STOPPING=1 STATUS=stopping',
    ])
    for (const [pid] of calls()) assert.equal(pid, `--pid=${server.child.pid}`)
  })

  it('serves even if it cannot send notifications, and logs it', async (t) => {
    const cwd = applicationFolder()
    const server = launch(t, [], { cwd, env: { PATH: '/nowhere', NOTIFY_SOCKET: socket } })
    const url = await server.listening()
    await until(() => server.stdout().includes('[WARN ] [server] the service manager was not notified of READY=1: spawn systemd-notify ENOENT'))
    assert.equal((await request(url)).text, 'home')
  })
})
