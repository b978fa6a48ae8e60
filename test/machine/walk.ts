/**
 * `node test/run.js --exec test/machine/walk.ts [FOLDER]`: walks through docs/install.md, step by step, and docs/operations.md on a Debian 12 that systemd has booted. FOLDER keeps the root
 * of that Debian for the next time. See debian.ts for what it needs.
 *
 * Surprise: the Node of the machine is the one that runs this, since nothing is fetched from nodejs.org.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { version } from '../../lib/base/version.ts'
import { root } from '../support/markdown.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { bootDebian, type Machine } from './debian.ts'
import { blocksBelow } from './page.ts'

const base = 'http://127.0.0.1:8080'
/** What the page upgrades: the same code by another name. */
const previous = '0.9.0'
/** A route of the application that `init` makes. */
const hello = '/hello/world'
const restarts = 20
const routes = [
  { name: 'poll', url: '/poll', method: 'GET', action: 'routes/machine.mjs@poll' },
  { name: 'waiting', url: '/waiting', method: 'GET', action: 'routes/machine.mjs@count' },
  { name: 'upload', url: '/upload', method: 'POST', action: 'routes/machine.mjs@upload' },
  { name: 'keep', url: '/keep', method: 'GET', action: 'routes/machine.mjs@keep' },
  { name: 'kept', url: '/kept', method: 'GET', action: 'routes/machine.mjs@kept' },
]
const actions = `import { mkdir, rename } from 'node:fs/promises'
let waiting = 0
export const upload = async (ctx) => {
  const [file] = (await ctx.readForm()).files
  const folder = process.env.STATE_DIRECTORY + '/uploads'
  await mkdir(folder, { recursive: true })
  await rename(file.path, folder + '/kept')
  return { size: file.size }
}
export const poll = (ctx) => {
  waiting += 1
  return ctx.longPoll(ctx.channel('news'), { timeout_s: 300 })
}
export const count = () => ({ waiting })
const log = (ctx) => ctx.channel('log', { durable: true })
export const keep = async (ctx) => ({ id: await log(ctx).publish('kept') })
export const kept = async (ctx) => ({ id: await log(ctx).last_id })
`
const children: ChildProcess[] = []
let machine!: Machine

const page = (heading: string, input?: string): Promise<string> => machine.run(blocksBelow(heading, 'sh').join(''), input)
const show = async (property: string): Promise<string> => (await machine.run(`systemctl show -P ${property} svc.service`)).trim()
const signal = async (name: string): Promise<string> => {
  const pid = Number(await show('MainPID'))
  assert.ok(pid > 0, 'the server does not run') // Process 0 would be everyone.
  return machine.run(`sudo kill -${name} ${pid}`)
}
const journal = (): Promise<string> => machine.run('sudo journalctl --no-pager -o cat -u svc.service')
const write = (file: string, content: string): Promise<string> => machine.run(`sudo tee ${file} >/dev/null`, content)
/** Waits for as long as it takes: the socket keeps the request while the server is started. */
const ask = (path: string): Promise<string> => machine.run(`curl -sS ${base}${path}`)
const status = (is: string): Promise<string> =>
  machine.run(`until systemctl show -P StatusText svc.service | grep -q '${is}'; do sleep 0.1; done`)

/** What the page says, in its order; each builds on those before it. */
const steps: readonly (readonly [string, () => Promise<void>])[] = [
  ['installs', async () => {
    const server = blocksBelow('The server', 'sh').join('').replaceAll(version, previous)
    const rename = `sudo sed -i "s/'${version}'/'${previous}'/" /opt/svc/${previous}/lib/base/version.ts`
    assert.match(await machine.run(server.replace(/^node .*/m, `${rename}\n$&`)), new RegExp(`svc ${previous}\n$`))
    const [user = '', ...rights] = blocksBelow('The application', 'sh')
    await machine.run(user)
    await write('/srv/svc/svc.local.json', blocksBelow('The application', 'json')[0] ?? '')
    await write('/srv/svc/routes/machine.json', JSON.stringify(routes))
    await write('/srv/svc/routes/machine.mjs', actions)
    await machine.run(rights.join(''))
    await page('The secret')
    await page('Units')
    await machine.run(blocksBelow('First sign-in', 'sh')[0] ?? '', 'admin\ncorrect horse\ncorrect horse\n')
  }],

  ['starts: `systemctl enable --now` returns when it listens, with the key from the credential', async () => {
    const output = await page('Start')
    assert.match(output, /all is well/)
    assert.match(output, /Status: "listening on http:\/\/127\.0\.0\.1:8080"/)
    assert.match(output, /\{"status":"ready"\}$/)
    assert.match(await journal(), /app_key comes from the credential \/run\/credentials\/svc\.service\/app_key/)
  }],

  ['rates the unit', async () => {
    const [, level] = /Overall exposure level for svc\.service: ([\d.]+)/.exec(await machine.run('systemd-analyze security svc.service')) ?? []
    assert.ok(Number(level) <= 2, level)
  }],

  ['brings a new version of the application, and keeps the old state where something is wrong', async () => {
    const [bring = '', reload = ''] = blocksBelow('A new version of the application', 'sh')
    await machine.run('sudo cp -r /srv/svc app && sudo chown -R admin app')
    const pack = async (more: string): Promise<string> => {
      await machine.run('cat >app/routes/more.json', `[{"name": "more", "url": "/more"${more}}]`)
      await machine.run((blocksBelow('Your own application', 'sh')[0] ?? '').replace(/^/, 'cd app; ').replace(/^scp.*\n/m, ''))
      return machine.run(bring)
    }
    const before = await machine.run('sudo cat /srv/svc/svc.local.json')
    await pack('')
    await assert.rejects(machine.run(reload), /action is missing/)
    await assert.rejects(machine.run('sudo systemctl reload svc.service'), /Job for svc\.service failed/)
    await status('the last reload failed')
    await pack(', "action": "routes/home.mjs@hello"')
    await machine.run(reload)
    await status('^reloaded$')
    assert.equal(await ask('/more'), '{}')
    assert.equal(await machine.run('sudo cat /srv/svc/svc.local.json'), before)
    assert.match(before, /"password": "scrypt\$/)
    assert.equal(await machine.run('stat -c %U:%G:%a /srv/svc/routes/more.json'), 'root:svc:644\n')
  }],

  ['backs up at night, and restores', async () => {
    const [, nightly = '', restore = ''] = blocksBelow('Backup', 'sh')
    const kept = await ask('/keep')
    await write('/etc/cron.daily/svc-backup', nightly)
    await machine.run('sudo chmod 0755 /etc/cron.daily/svc-backup')
    await machine.run('sudo run-parts --test /etc/cron.daily | grep -q svc-backup && sudo /etc/cron.daily/svc-backup')
    assert.notEqual(await ask('/keep'), kept)
    const listed = await machine.run(`sudo sh -c 'tar -tzf /var/backups/svc/*.tgz'`)
    for (const name of ['srv/svc/svc.local.json', 'etc/svc/app_key', 'var/lib/svc/svc-copy']) assert.ok(listed.split('\n').includes(name), name)
    assert.doesNotMatch(listed, /\.db/)
    await machine.run(`sudo sh -c 'tar -xzOf /var/backups/svc/*.tgz var/lib/svc/svc-copy' >svc-copy.db\n${restore}`)
    assert.equal(await ask('/kept'), kept)
  }],

  [`fails no request in ${restarts} restarts`, async () => {
    const stop = startLoad()
    for (let count = 0; count < restarts; count += 1) {
      await machine.run('sudo systemctl restart svc.service')
      await ask(hello)
    }
    const { answered, failed, slowestMs, report } = await stop()
    console.log(`  a client had ${answered} answers, the slowest after ${slowestMs.toFixed()} ms; wrk:\n${report}`)
    assert.deepEqual(failed, [])
    assert.match(report, /requests in/)
    assert.doesNotMatch(report, /Socket errors|Non-2xx/)
  }],

  ['serves again after a kill, and after a process that has stopped', async () => {
    const found = Number(await show('NRestarts'))
    await signal('KILL')
    assert.equal(await ask(hello), '{"hello":"world"}')
    await status('^listening')
    await signal('STOP')
    assert.equal(await ask(hello), '{"hello":"world"}')
    await status('^listening')
    assert.equal(Number(await show('NRestarts')), found + 2)
    assert.match(await journal(), /Watchdog timeout/)
  }],

  ['serves again when a wrong configuration has been mended', async () => {
    await machine.run(`sudo sed -i 's/"max_files": 30/"max_files": -30/' /srv/svc/svc.local.json`)
    await assert.rejects(machine.run('sudo systemctl restart svc.service'), /control process exited with error code/)
    assert.match(await journal(), /Cannot load .*log\.max_files must be 0 to 100000: it is -30/)
    await machine.run(`sudo sed -i 's/"max_files": -30/"max_files": 30/' /srv/svc/svc.local.json`)
    assert.equal(await ask(hello), '{"hello":"world"}')
  }],

  ['rotates the access log', async () => {
    await machine.run('sudo logrotate --force /etc/logrotate.d/svc')
    await machine.run('until sudo test -e /var/log/svc/access.log; do sleep 0.1; done')
    await ask('/hello/after')
    await machine.run(`until sudo grep -q '"GET /hello/after HTTP/1.1" 200 ' /var/log/svc/access.log; do sleep 0.1; done`)
  }],

  ['keeps an upload above 64 KiB where the application wants it', async () => {
    const answer = await machine.run(`head -c 200000 /dev/zero >upload && curl -sS -F file=@upload ${base}/upload`)
    assert.equal(answer, '{"size":200000}')
  }],

  ['changes the secret, and the old one still verifies', async () => {
    const dropIn = '/etc/systemd/system/svc.service.d/key.conf'
    await machine.run('sudo install -d /etc/systemd/system/svc.service.d')
    await write(dropIn, '[Service]\nLoadCredential=app_key_previous:/etc/svc/app_key_previous\n')
    await machine.run('sudo systemctl daemon-reload')
    await page('Changing the secret')
    assert.match(await journal(), /app_key_previous comes from the credential /)
    await machine.run(`sudo rm ${dropIn} && sudo systemctl daemon-reload && sudo systemctl restart svc.service`)
  }],

  ['upgrades and rolls back under the permission model, with one drop-in', async () => {
    await page("Node's permission model")
    const last = async (): Promise<string> => [...(await journal()).matchAll(/ svc\/([\d.]+) on Node /g)].at(-1)?.[1] ?? ''
    assert.equal(await ask(hello), '{"hello":"world"}')
    await page('Upgrading the server')
    assert.equal(await ask(hello), '{"hello":"world"}')
    assert.equal(await last(), version)
    await page('Rolling back')
    assert.equal(await ask(hello), '{"hello":"world"}')
    assert.equal(await last(), previous)
    await machine.run('sudo rm /etc/systemd/system/svc.service.d/permissions.conf && sudo systemctl daemon-reload')
    await machine.run(`sudo systemctl restart svc.service && sudo rm -r /opt/svc/${version}`)
  }],

  ['upgrades and rolls back', async () => {
    await page('Upgrading the server')
    assert.equal(await machine.run('readlink /opt/svc/current'), `${version}\n`)
    await page('Rolling back')
    assert.match(await ask('/svc-ping'), /"ok"/)
  }],

  ['answers waiting polls when it stops, and the socket starts it again', async () => {
    const polls = await machine.run(`for _ in 1 2 3; do curl -sS ${base}/poll & done
      until curl -sS ${base}/waiting | grep -q 3; do sleep 0.1; done
      sudo systemctl stop svc.socket svc.service; wait`)
    assert.equal([...polls.matchAll(/"events":\[\]/g)].length, 3, polls)
    await assert.rejects(ask(hello), /Failed to connect/)
    await machine.run('sudo systemctl start svc.socket')
    assert.equal(await ask(hello), '{"hello":"world"}')
  }],
]

try {
  machine = await boot()
  for (const [name, step] of steps) {
    const begun = performance.now()
    await step()
    console.log(`${name}: ${((performance.now() - begun) / 1000).toFixed(1)} s`)
  }
} finally {
  for (const child of children) child.kill()
  await machine?.stop()
}

function boot(): Promise<Machine> {
  const folder = temporaryFolder()
  const packed = spawnSync('npm', ['pack', '--pack-destination', folder], { cwd: fileURLToPath(root), encoding: 'utf8' })
  assert.equal(packed.status, 0, packed.stderr)
  const archive = join(folder, `svc-${version}.tgz`)
  return bootDebian(process.argv[2] ?? join(folder, 'root'), 'bookworm', {
    '/usr/local/bin/node': process.execPath,
    ...Object.fromEntries([previous, version].map((each) => [`/home/admin/svc-${each}.tgz`, archive])),
  })
}

interface LoadResult {
  readonly answered: number
  readonly failed: readonly string[]
  readonly slowestMs: number
  readonly report: string
}

/** A Node client and wrk, both on connections that are kept alive. */
function startLoad(): () => Promise<LoadResult> {
  const [program = '', ...words] = machine.inItsNetwork
  const load = fileURLToPath(new URL('load.ts', import.meta.url))
  const client = spawn(program, [...words, process.execPath, ...process.execArgv, load, base + hello], { stdio: ['pipe', 'pipe', 'inherit'] })
  const wrk = spawn(program, [...words, 'wrk', '-t1', '-c32', '-d1h', '--timeout', '60s', base + hello], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(client, wrk)
  const result = text(client.stdout)
  const report = text(wrk.stdout)
  return async () => {
    client.stdin.end()
    wrk.kill('SIGINT')
    return { ...(JSON.parse(await result) as Omit<LoadResult, 'report'>), report: await report }
  }
}
