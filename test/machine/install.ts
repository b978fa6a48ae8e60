/**
 * `node test/run.js --exec test/machine/install.ts SUITE [FOLDER]`: runs the commands of docs/install.md that call the
 * script, with releases of the last commit, on a machine of that suite. FOLDER keeps its root for the next time. See
 * debian.ts for what it needs.
 *
 * Surprise: nothing is fetched. On Debian 13 Node is that of the distribution, elsewhere the one that runs this, packed as
 * nodejs.org does.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { bootDebian, suites, type Machine } from './debian.ts'
import { blocksBelow } from './page.ts'
import { makeReleases, packNode, versions } from './releases.ts'

const [, , given = '', folder = join(temporaryFolder(), 'root')] = process.argv
const suite = suites.find((each) => each === given)
assert.ok(suite, `the suite must be one of ${suites.join(', ')}: it is ${given}`)
const hasNode = suite === 'trixie'
const credentials = 'admin\ncorrect horse\ncorrect horse\n'
const hello = 'http://127.0.0.1:8080/hello/world'
let machine!: Machine

const block = (heading: string, at = 0): string => blocksBelow(heading, 'sh')[at] ?? assert.fail(`no block ${at} below ${heading}`)
/** The line of a block that has a text. */
const lineWith = (heading: string, text: string): string => block(heading).split('\n').find((line) => line.includes(text)) ?? assert.fail(text)
/** Commands of the page for another version than its own. */
const of = (version: string, commands: string): string => commands.replaceAll(versions.current, version)
const unpackScript = block('Installing on a virtual machine').split('\n')[0] ?? ''
const upgrading = (command: string): string => lineWith('Upgrading, rolling back, removing', command)
const run = (commands: string, input?: string): Promise<string> => machine.run(commands, input)
const ask = (url: string, options = ''): Promise<string> => run(`curl -sS ${options} '${url}'`)
const use = (version: string): Promise<string> => run(`rm -f SHA256SUMS* && cp /releases/${version}/* .`)
const current = async (name = 'svc'): Promise<string> => (await run(`readlink /opt/${name}/current`)).trim()
const mainPid = (): Promise<string> => run('systemctl show -P MainPID svc.service')
/** Every file that the script may touch, but for logs and compiled code, with its time. */
const snapshot = (): Promise<string> =>
  run(`sudo find /opt /srv /etc /usr/local /var/lib/svc /home -name .cached -prune -o -printf '%p %M %U:%G %T@ %l\\n' 2>/dev/null | sort || true`)

const installPrevious = of(versions.previous, installCommand())
/** What the page says, in its order; each builds on those before it. */
const steps: readonly (readonly [string, () => Promise<void>])[] = [
  ['changes nothing in a dry run', async () => {
    await use(versions.previous)
    await run(of(versions.previous, unpackScript))
    const before = await snapshot()
    const output = await run(installPrevious.replace('sudo ', '').replace(/$/, ' --dry-run'))
    assert.match(output, /^\+ systemctl enable --now svc\.socket svc\.service$/m)
    assert.equal(await snapshot(), before)
  }],

  ['installs, and the second time changes nothing', async () => {
    assert.match(await run(installPrevious, credentials), /all is well[^]*ok: svc\.service is ready\n$/)
    assert.equal(await ask(hello), '{"hello":"world"}')
    assert.equal(await ask('http://127.0.0.1:8080/svc-ready'), '{"status":"ready"}')
    const [, sheet = ''] = /<link rel="stylesheet" href="([^"]+)">/.exec(await ask('http://127.0.0.1:8080/')) ?? []
    assert.match(await ask(`http://127.0.0.1:8080${sheet}`, '-i'), /^HTTP\/1\.1 200 [^]*\nContent-Type: text\/css/)
    const [files, pid] = [await snapshot(), await mainPid()]
    const output = await run(installPrevious)
    assert.deepEqual(output.split('\n').filter((line) => /^\+(?!.*(?:sha256sum|svc\.js (?:verify|check)) )/.test(line)), [])
    assert.deepEqual([await snapshot(), await mainPid()], [files, pid])
  }],

  ['reloads, and reports a reload that was refused', async () => {
    const more = (record: string): Promise<string> => run('sudo tee /srv/svc/routes/more.json >/dev/null', `[{"name": "more", "url": "/more"${record}}]`)
    await more('')
    await assert.rejects(run('sudo systemctl reload svc.service'), /Job for svc\.service failed/)
    assert.match(await run('systemctl show -P StatusText svc.service'), /^the last reload failed/)
    await more(', "action": "routes/home.mjs@hello"')
    await run('sudo systemctl reload svc.service')
    assert.equal(await ask('http://127.0.0.1:8080/more'), '{}')
    await run('sudo rm /srv/svc/routes/more.json && sudo systemctl reload svc.service')
  }],

  ['upgrades without losing a request, with a signature', async () => {
    await use(versions.current)
    await run(unpackScript)
    const load = `(while [ ! -e done ]; do curl -sS -m 60 -o /dev/null -w '%{http_code}\\n' ${hello}; done >codes 2>&1) & `
    const output = await run(`rm -f done; ${load} ${upgrading('upgrade')} --key svc.pem; touch done; wait; sort codes | uniq -c`)
    assert.match(output, /Signature Verified Successfully[^]*svc\.pem\n/)
    assert.ok(output.includes(`\nok: version ${versions.current} is ready; install.sh rollback returns to ${versions.previous}\n`), output)
    assert.match(output, /\n *\d+ 200\n$/)
    assert.doesNotMatch(output, /^ *\d+ (?!200$)/m)
    assert.equal(await current(), versions.current)
    assert.ok((await run('sudo journalctl --no-pager -o cat -t svc')).includes(`svc/${versions.current} on Node `))
  }],

  ['refuses a changed archive, and returns by itself from a version that does not start', async () => {
    await use(versions.broken)
    const upgrade = of(versions.broken, upgrading('upgrade'))
    await run(`chmod u+w svc-${versions.broken}.tgz; echo >>svc-${versions.broken}.tgz`)
    await assert.rejects(run(upgrade), /FAILED/)
    await run(`cp -f /releases/${versions.broken}/svc-${versions.broken}.tgz .`)
    await assert.rejects(run(upgrade), new RegExp(`version ${versions.broken} does not start: version ${versions.current} is in use again`))
    assert.deepEqual([await current(), await ask(hello)], [versions.current, '{"hello":"world"}'])
  }],

  ['rolls back, and forward again', async () => {
    for (const version of [versions.previous, versions.current]) {
      assert.match(await run(upgrading('rollback')), new RegExp(`ok: version ${version} is ready\n$`))
      assert.deepEqual([await current(), await ask(hello)], [version, '{"hello":"world"}'])
    }
    await use(versions.current)
  }],

  ['logs to memory', async () => {
    const dropIn = '/etc/systemd/system/svc.service.d/log.conf'
    await run(`sudo mkdir -p $(dirname ${dropIn}) && sudo tee ${dropIn} >/dev/null`, blocksBelow('A log disk that stalls', 'ini')[0])
    const restart = 'sudo systemctl daemon-reload && sudo systemctl restart svc.service'
    await run(`sudo sed -i 's#/var/log/svc#/run/svc-log#' /srv/svc/svc.local.json && ${restart}`)
    await ask(hello)
    assert.match(await run('sudo cat /run/svc-log/svc.log'), /listening on /)
    await run(`sudo sed -i 's#/run/svc-log#/var/log/svc#' /srv/svc/svc.local.json && sudo rm ${dropIn} && ${restart}`)
  }],

  ['runs a second application beside the first', async () => {
    await run(block('Two applications on one machine'), credentials)
    await run('sudo systemctl stop svc.socket svc.service')
    assert.equal(await ask('http://127.0.0.1:8081/hello/world'), '{"hello":"world"}')
    assert.match(await run('ps -o user= -p $(systemctl show -P MainPID shop.service)'), /^shop$/m)
    assert.match(await run('sudo journalctl --no-pager -o cat -t shop'), /listening on http:\/\/127\.0\.0\.1:8081/)
    await run('sudo systemctl start svc.socket && sudo sh install.sh uninstall --name shop --purge')
    assert.equal(await ask(hello), '{"hello":"world"}')
    assert.equal(await run('ls -d /opt/shop /etc/shop /srv/shop /var/lib/shop /var/log/shop /etc/systemd/system/shop* 2>/dev/null || true'), '')
  }],

  ['moves to a machine where the user has another number', async () => {
    const key = await run('sudo cat /etc/svc/app_key')
    const uid = await run('id -u svc')
    await run('sudo -u svc sh -c "echo kept >/var/lib/svc/kept"')
    await run(block('Moving to another machine'))
    await run('sudo sh install.sh uninstall --purge && sudo useradd --system before')
    assert.equal(await run('ls -d /opt/svc /etc/svc /srv/svc /var/lib/svc /var/log/svc /etc/systemd/system/svc* 2>/dev/null || true'), '')
    await run(block('Moving to another machine', 1).replace(/sudo sh .*/, installCommand()))
    assert.notEqual(await run('id -u svc'), uid)
    assert.equal(await ask(hello), '{"hello":"world"}')
    assert.equal(await run('sudo cat /etc/svc/app_key'), key)
    assert.equal(await run('sudo stat -c %U:%G /var/lib/svc/kept /srv/svc/routes/app.json'), 'svc:svc\nroot:svc\n')
    assert.match(await run('sudo CREDENTIALS_DIRECTORY=/etc/svc node /opt/svc/current/bin/svc.js audit --config /srv/svc/svc.json'), /head/)
    await run(`sudo systemctl stop svc.socket svc.service && sudo usermod -u 4242 svc\n${installCommand()}`)
    assert.equal(await run('sudo stat -c %u /var/lib/svc/kept'), '4242\n')
    assert.equal(await ask(hello), '{"hello":"world"}')
  }],

  ['serves 443 with its own certificate, and redirects and answers challenges on 80', async () => {
    await run(block('Without a proxy').replaceAll('YOUR.NAME', 'localhost'))
    await run('echo token.thumbprint | sudo tee /srv/acme/public/.well-known/acme-challenge/token >/dev/null')
    assert.equal(await ask('http://localhost/.well-known/acme-challenge/token'), 'token.thumbprint\n')
    await run('mkdir live && openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout live/privkey.pem -out live/fullchain.pem 2>/dev/null')
    await run('cat >hook && chmod +x hook && sudo RENEWED_LINEAGE=$PWD/live ./hook || true', block('Certificates'))
    const edit = 'const c = JSON.parse(fs.readFileSync(process.argv[1])); Object.assign(c.server, JSON.parse(process.argv[2]).server); fs.writeFileSync(process.argv[1], JSON.stringify(c))'
    await run(`sudo node -e '${edit}' /srv/svc/svc.local.json '${blocksBelow('Certificates', 'json')[0]}'`)
    await run(block('Without a proxy', 2).replace(/sudo sh .*/, `${installCommand()} --listen 443`))
    assert.equal(await ask('http://localhost/hello/world?a=b', '-kL'), '{"hello":"world"}')
    assert.match(await ask('http://localhost/hello/world?a=b', '-si'), /^HTTP\/1\.1 308 [^]*\nLocation: https:\/\/localhost\/hello\/world\?a=b\r$/m)
    await run('sudo sh install.sh uninstall --name acme --purge')
  }],

  ['leaves only data and configuration when it is removed, and nothing with --purge', async () => {
    await run(upgrading('uninstall'))
    const kept = await run(`sudo find / -xdev \\( -path /proc -o -path /home -o -path /releases -o -path /var/log/journal -o -path /run -o -path /tmp -o -path /sys \\) -prune -o -name '*svc*' -print`)
    for (const path of kept.trim().split('\n')) assert.match(path, /^\/(?:srv\/svc|etc\/svc|var\/(?:lib|log|cache)\/svc|etc\/systemd\/system\/svc\.socket\.d)(?:\/|$)/)
    await run(`${upgrading('uninstall')} --purge`)
    assert.equal(await run('ls -d /opt/svc /etc/svc /srv/svc /var/lib/svc /var/log/svc /var/cache/svc /etc/systemd/system/svc* 2>/dev/null || true'), '')
    await assert.rejects(run('id svc'))
  }],
]

try {
  const node = hasNode ? {} : packNode()
  const releases = Object.entries(makeReleases()).map(([name, file]) => [name === 'svc.pem' ? '/home/admin/svc.pem' : `/releases/${name}`, file])
  const archives = Object.entries(node).map(([name, file]) => [`/home/admin/${name}`, file])
  machine = await bootDebian(folder, suite, Object.fromEntries([...releases, ...archives]))
  for (const [name, step] of steps) {
    const begun = performance.now()
    await step()
    console.log(`${name}: ${((performance.now() - begun) / 1000).toFixed(1)} s`)
  }
} finally {
  await machine?.stop()
}

/** The command of the page for this machine, but for its downloads. */
function installCommand(): string {
  if (hasNode) return block('Installing on a virtual machine').split('\n')[1] ?? ''
  const [set = '', ...rest] = block('Node').replace(/v=v[\d.]+/, `v=${process.version}`).split('\n')
  return `${set}; ${rest.find((line) => line.startsWith('sudo sh '))}`
}
