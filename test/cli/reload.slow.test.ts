// The command `reload`, which a service manager runs: its status says whether the server has reloaded.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { writeFiles } from '../support/application.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { fakeNotify } from '../systemd/fake-notify.ts'

const more = (action: string) => ({ 'routes/more.json': [{ name: 'more', url: '/more', ...(action !== '' && { action }) }] })

async function run(t: Parameters<typeof launch>[0], cwd: string, env: Readonly<Record<string, string>> = {}) {
  const command = launch(t, ['reload'], { cwd, env })
  return { status: await command.ended, out: command.stdout(), error: command.stderr() }
}

describe('svc reload', () => {
  for (const processes of [1, 2]) {
    it(`reloads a server of ${processes} process(es), and fails where that is refused`, async (t) => {
      const cwd = applicationFolder({}, { 'server.processes': processes })
      const { path, calls } = fakeNotify()
      const server = launch(t, [], { cwd, env: { PATH: path, NOTIFY_SOCKET: '/run/nowhere/notify' } })
      const url = await server.listening()
      writeFiles(cwd, more('home.mjs'))
      assert.deepEqual(await run(t, cwd), { status: 0, out: 'reloaded\n', error: '' })
      assert.equal((await request(`${url}/more`)).text, 'home')
      assert.ok(calls().some((texts) => texts.includes('STATUS=reloaded')), 'the service manager knows by then')
      writeFiles(cwd, more(''))
      const refused = await run(t, cwd)
      assert.equal(refused.status, 1)
      assert.match(refused.error, /^the reload was refused, and the old state stays in use:\n[^]*more\.json[^]*action/)
      assert.ok(calls().some((texts) => texts.some((text) => text.startsWith('STATUS=the last reload failed'))))
      assert.equal((await request(`${url}/more`)).text, 'home')
      writeFiles(cwd, more('home.mjs'))
      assert.equal((await run(t, cwd)).status, 0, 'it succeeds again')
    })
  }

  it('needs no credential: systemd lets a program of ExecReload= read none', async (t) => {
    const cwd = applicationFolder({ 'credentials/app_key/unreadable': '' }, { settings: { token: { credential: 'token' } } })
    writeFiles(cwd, { 'passed/token': 'secret' })
    const server = launch(t, [], { cwd, env: { CREDENTIALS_DIRECTORY: join(cwd, 'passed') } })
    await server.listening()
    for (const env of [{ CREDENTIALS_DIRECTORY: join(cwd, 'credentials') }, {}]) {
      assert.deepEqual(await run(t, cwd, env), { status: 0, out: 'reloaded\n', error: '' })
    }
  })

  it('takes no outcome of an earlier reload for its own', async (t) => {
    const cwd = applicationFolder()
    const server = launch(t, [], { cwd })
    await server.listening()
    writeFiles(cwd, more(''))
    const old = JSON.stringify({ pid: server.child.pid, begunAtMs: 8e15, problems: [] })
    writeFileSync(join(cwd, '.cached/reloaded'), old)
    assert.equal((await run(t, cwd)).status, 1)
  })

  it('fails without a server, with one that ended, and with one of another machine', async (t) => {
    const cwd = applicationFolder()
    const none = { status: 1, out: '', error: `no server is running: ${join(cwd, '.cached/running')} names none on this machine\n` }
    assert.deepEqual(await run(t, cwd), none)
    const server = launch(t, [], { cwd })
    await server.listening()
    const mark = readFileSync(join(cwd, '.cached/running'), 'utf8')
    server.child.kill('SIGKILL')
    await server.ended
    assert.deepEqual(await run(t, cwd), none)
    const elsewhere = mark.replace(hostname(), 'elsewhere').replace(/"pid":\d+/, `"pid":${process.pid}`)
    writeFileSync(join(cwd, '.cached/running'), elsewhere)
    assert.deepEqual(await run(t, cwd), none)
  })

  it('says that the server ended meanwhile', async (t) => {
    const cwd = applicationFolder()
    const server = launch(t, [], { cwd })
    await server.listening()
    server.child.kill('SIGSTOP')
    const command = launch(t, ['reload'], { cwd })
    writeFileSync(join(cwd, '.cached/reloaded'), '')
    await until(() => {
      try {
        return readFileSync(join(cwd, '.cached/reloaded'), 'utf8') !== ''
      } catch {
        return true // The command has begun: it removes the file.
      }
    })
    server.child.kill('SIGKILL')
    assert.equal(await command.ended, 1)
    assert.match(command.stderr(), /^process \d+ (?:ended before it had reloaded|cannot be signalled: .*ESRCH)\n$/)
  })

  it('is 78 with a wrong configuration', async (t) => {
    const cwd = applicationFolder({ 'svc.json': '{' })
    assert.equal((await run(t, cwd)).status, 78)
  })
})
