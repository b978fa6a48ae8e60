import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { writeFiles } from '../support/application.ts'
import { freePort } from '../support/free-port.ts'
import { launch, optionsOfTarget, root } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { serviceManager } from '../support/service-manager.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const read = (name: string): string => readFileSync(join(root, 'docs/deploy', name), 'utf8')

/** Runs a program to its end: Debian's packages `systemd` and `logrotate`. */
function run(program: string, ...args: string[]): { status: number | null; output: string } {
  const { status, error, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (error !== undefined) assert.fail(`Cannot run ${program}: ${error.message}. Install it: apt-get install systemd logrotate`)
  return { status, output: `${stdout}${stderr}` }
}

/** How many connections may wait on a listening socket: what `ss` of Debian's package `iproute2` calls its Send-Q. */
function queueOf(port: number): number {
  const { status, error, stdout } = spawnSync('ss', ['-Hltn', `sport = :${port}`], { encoding: 'utf8' })
  if (error !== undefined) assert.fail(`Cannot run ss: ${error.message}. Install it: apt-get install iproute2`)
  const [state, , waiting] = stdout.trim().split(/ +/)
  assert.deepEqual([status, state], [0, 'LISTEN'], stdout)
  return Number(waiting)
}

/** A datagram socket as the service manager has one. Node has none of this kind, so Python listens. */
async function notifySocket(t: TestContext): Promise<{ path: string; messages: () => string[] }> {
  const path = join(temporaryFolder(), 'notify')
  const program = [
    'import json, socket, sys',
    's = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)',
    's.bind(sys.argv[1])',
    'print(json.dumps("bound"), flush=True)',
    'while True: print(json.dumps(s.recv(65536).decode()), flush=True)',
  ].join('\n')
  const child = spawn('python3', ['-c', program, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const lines = (): string[] => output.split('\n').slice(0, -1).map((line) => JSON.parse(line) as string)
  await until(() => lines().length > 0)
  // BARRIER=1 is by systemd-notify itself: it waits until the message has been read.
  return { path, messages: () => lines().slice(1).filter((message) => message !== 'BARRIER=1') }
}

describe('the unit', () => {
  it('has an exposure level of 2.0 or better', () => {
    const { output } = run('systemd-analyze', 'security', '--offline=true', join(root, 'docs/deploy/svc.service'))
    const level = Number(/Overall exposure level for svc\.service: ([\d.]+)/.exec(output)?.[1])
    assert.ok(level <= 2, output)
  })

  it('is verified without a complaint, with its socket', () => {
    const folder = temporaryFolder()
    const service = read('svc.service').replaceAll('=node ', `=${process.execPath} `).replaceAll('/opt/svc/current/', root)
    writeFiles(folder, { 'svc.service': service, 'svc.socket': read('svc.socket') })
    const files = ['svc.service', 'svc.socket'].map((name) => join(folder, name))
    assert.deepEqual(run('systemd-analyze', 'verify', ...files), { status: 0, output: '' })
  })

  it('has a user that systemd-sysusers makes', () => {
    const folder = temporaryFolder()
    writeFiles(folder, { 'etc/sysusers.d/svc.conf': read('svc.sysusers') })
    assert.equal(run('systemd-sysusers', `--root=${folder}`).status, 0)
    assert.match(readFileSync(join(folder, 'etc/passwd'), 'utf8'), /^svc:x:\d+:\d+:svc web application server:\/var\/lib\/svc:\/usr\/sbin\/nologin$/m)
  })
})

describe('the script that installs', () => {
  it('has nothing to complain about for shellcheck, as a script of POSIX sh', () => {
    const { status, error, stdout } = spawnSync('shellcheck', [join(root, 'docs/deploy/install.sh')], { encoding: 'utf8' })
    if (error !== undefined) assert.fail(`Cannot run shellcheck: ${error.message}. Install it: apt-get install shellcheck`)
    assert.deepEqual([status, stdout], [0, ''])
  })
})

describe('systemd-notify', () => {
  it('brings what the server tells to the socket of the service manager', async (t) => {
    const { path, messages } = await notifySocket(t)
    const cwd = applicationFolder()
    const server = launch(t, [], { cwd, env: { NOTIFY_SOCKET: path, WATCHDOG_USEC: '400000' } })
    const url = await server.listening()
    await until(() => messages().some((message) => message.includes('WATCHDOG=1')))
    server.child.kill('SIGHUP')
    await until(() => messages().some((message) => message.includes('STATUS=reloaded')))
    server.child.kill('SIGTERM')
    await until(() => messages().some((message) => message.includes('STOPPING=1')))
    assert.equal(await server.ended, 0)
    const found = messages().map((message) => message.split('\n').filter((line) => !line.startsWith('MAINPID=')))
    const others = found.filter(([first]) => first !== 'WATCHDOG=1').map((lines) => lines.map((line) => line.replace(/USEC=\d+/, 'USEC=N')))
    assert.ok(found.length > others.length)
    assert.deepEqual(others, [
      ['READY=1', `STATUS=listening on ${url}`],
      ['RELOADING=1', 'MONOTONIC_USEC=N', 'STATUS=reloading'],
      ['READY=1', 'STATUS=reloaded'],
      ['STOPPING=1', 'STATUS=stopping'],
    ])
    for (const message of messages()) assert.match(message, new RegExp(`^MAINPID=${server.child.pid}$`, 'm'))
    assert.doesNotMatch(server.stdout(), /was not notified of/)
  })

  it('fails where nobody listens, which is a warning', async (t) => {
    const server = launch(t, [], { cwd: applicationFolder(), env: { NOTIFY_SOCKET: join(temporaryFolder(), 'none') } })
    const url = await server.listening()
    await until(() => /\[WARN \] \[server\] the service manager was not notified of READY=1: .*No such file/.test(server.stdout()))
    assert.equal((await request(url)).text, 'home')
  })
})

describe('systemd-socket-activate', () => {
  it('starts the server with the first connection, which is answered', async (t) => {
    const port = await freePort()
    const args = [`--listen=127.0.0.1:${port}`, '--fdname=web', process.execPath, ...optionsOfTarget(), `${root}bin/svc.js`]
    const child = spawn('systemd-socket-activate', args, { cwd: applicationFolder(), stdio: ['ignore', 'pipe', 'pipe'] })
    t.after(() => child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    await until(() => output.includes('Listening on'))
    assert.equal((await request(`http://127.0.0.1:${port}/`)).text, 'home')
    assert.match(output, new RegExp(`listening on http://127\\.0\\.0\\.1:${port}\\n`))
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })
})

describe('the queue of a socket that the service manager passes', () => {
  it('is as long as the system lets it be while the server runs, and afterwards: longer than that of Node', async (t) => {
    const allowed = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))
    assert.ok(allowed > 511, `net.core.somaxconn is ${allowed}`)
    const service = await serviceManager(t, { cwd: applicationFolder(), listen: { host: '127.0.0.1', port: 0, backlog: 600 } })
    const queue = (): number => queueOf(service.port)
    assert.equal(queue(), 600)
    await service.start()
    assert.equal(queue(), Math.min(allowed, 65_535))
    service.kill('SIGTERM')
    assert.equal(await service.ended(), 0)
    assert.equal(queue(), Math.min(allowed, 65_535))
  })
})

describe('logrotate', () => {
  it('rotates the access log of a server that goes on, and no line is lost', async (t) => {
    const cwd = applicationFolder()
    const server = launch(t, [], { cwd })
    const url = await server.listening()
    const rotation = read('svc.logrotate')
      .replaceAll('/var/log/svc/', join(cwd, '.logs/'))
      .replace(/^ *su svc svc\n/gm, '')
      .replace(/systemctl kill .*/g, `kill -USR2 ${server.child.pid}`)
    writeFiles(cwd, { 'logrotate.conf': rotation })
    const files = (): string[] => run('sh', '-c', `cat ${join(cwd, '.logs')}/access.log*`).output.split('\n').filter((line) => line !== '')
    let asked = 0
    const client = (async () => {
      for (; asked < 600; asked += 1) await request(url)
    })()
    await until(() => asked > 200)
    const { status, output } = run('logrotate', '--force', '--state', join(cwd, 'state'), join(cwd, 'logrotate.conf'))
    assert.deepEqual([status, output], [0, ''])
    await client
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.equal(files().length, 600)
    const present = readFileSync(join(cwd, '.logs/access.log'), 'utf8').split('\n').length - 1
    assert.ok(present > 0 && present < 600, `${present} lines in the new file`)
  })
})
