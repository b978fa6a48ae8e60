/**
 * docs/deploy/install.sh in a folder instead of `/`, with stand-ins for what only root and systemd can do, and archives
 * whose server is a few lines. test/machine/walk.ts runs it with a real archive on a booted Debian.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { root as checkout } from '../support/launch.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const script = join(checkout, 'docs/deploy/install.sh')
/** The service starts where the server in `current` does. */
const standIns = {
  chown: '[ "$1" = -R ] && shift; echo "$2 $1" >>"$SVC_INSTALL_ROOT.owners"',
  stat: `case $2 in
    %a) exec /usr/bin/stat "$@" ;;
    *) while read -r path owner; do case $3 in "$path"*) found=$owner ;; esac; done <"$SVC_INSTALL_ROOT.owners"; echo "$found" ;;
  esac`,
  getent: 'test -e "$SVC_INSTALL_ROOT.user-$2"',
  journalctl: 'echo "from the journal"',
  runuser: 'shift 3; exec "$@"',
  systemctl: `case $* in
    is-enabled*|is-active*) exec test -e "$SVC_INSTALL_ROOT/active" ;;
    enable*|restart*) exec node "$SVC_INSTALL_ROOT"/opt/*/current/bin/svc.js start ;;
    disable*) rm "$SVC_INSTALL_ROOT/active" ;;
  esac`,
  'systemd-sysusers': 'for file in "$SVC_INSTALL_ROOT"/etc/sysusers.d/*; do touch "$SVC_INSTALL_ROOT.user-$(basename "$file" .conf)"; done',
  userdel: 'rm "$SVC_INSTALL_ROOT.user-$1"',
}
const server = `
const fs = require('node:fs')
const [command, ...args] = process.argv.slice(2)
const root = process.env.SVC_INSTALL_ROOT
if (command === 'init') for (const name of ['svc.json', 'svc.local.json']) { fs.mkdirSync(args[0], { recursive: true }); fs.writeFileSync(args[0] + '/' + name, '{}') }
if (command === 'passwd') {
  const local = args[1].replace('.json', '.local.json')
  const file = fs.existsSync(local) ? local : args[1]
  fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file)), admin: { password: fs.readFileSync(0, 'utf8') } }))
}
if (command === 'start') process.exit(BROKEN ? 1 : fs.writeFileSync(root + '/active', ''))
if (command === 'check') {
  const key = fs.readFileSync(args[1].replace(/srv\\/(\\w+)\\/svc\\.json$/, 'etc/$1/app_key'), 'utf8').trim()
  process.exit(REFUSES || process.env.SVC_APP_KEY !== key ? 1 : 0)
}
if (command === 'verify') process.exit(fs.readFileSync(args[0], 'utf8') === 'right' ? 0 : 1)
`
const { publicKey, privateKey } = generateKeyPairSync('ed25519')

interface Release {
  /** The server ends at its start. */
  readonly isBroken?: boolean
  /** Its `check` refuses the application. */
  readonly refuses?: boolean
  readonly unit?: string
}

/** A folder that stands for `/`, and one with the archives. */
class Machine {
  readonly root = join(temporaryFolder(), 'root')
  readonly #downloads = temporaryFolder()
  readonly #programs = temporaryFolder()
  readonly keyFile = join(this.#downloads, 'svc.pem')

  constructor() {
    mkdirSync(this.root)
    for (const [name, body] of Object.entries(standIns)) {
      writeFileSync(join(this.#programs, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
    }
    symlinkSync(process.execPath, join(this.#programs, 'node'))
    writeFileSync(this.keyFile, publicKey.export({ format: 'pem', type: 'spki' }))
  }

  /** Makes an archive with manifests and signed checksums beside it. */
  archive(version: string, { isBroken = false, refuses = false, unit }: Release = {}): string {
    const folder = join(temporaryFolder(), 'package')
    const text = server.replace('BROKEN', String(isBroken)).replace('REFUSES', String(refuses))
    mkdirSync(folder)
    writeFiles(folder, { 'package.json': `{\n  "name": "svc",\n  "version": "${version}",\n  "private": true\n}\n`, 'bin/svc.js': text })
    cpSync(join(checkout, 'docs/deploy'), join(folder, 'docs/deploy'), { recursive: true })
    if (unit !== undefined) writeFileSync(join(folder, 'docs/deploy/svc.service'), unit)
    const name = `svc-${version}`
    execFileSync('tar', ['-czf', join(this.#downloads, `${name}.tgz`), '-C', join(folder, '..'), 'package'])
    for (const code of ['lib', 'dist']) writeFileSync(join(this.#downloads, `${name}.${code}.manifest.json`), 'right')
    this.sum()
    return join(this.#downloads, `${name}.tgz`)
  }

  sum(): void {
    const files = readdirSync(this.#downloads).filter((file) => file.endsWith('.tgz'))
    const lines = files.map((file) => `${createHash('sha256').update(readFileSync(join(this.#downloads, file))).digest('hex')}  ${file}\n`)
    writeFileSync(join(this.#downloads, 'SHA256SUMS'), lines.join(''))
    writeFileSync(join(this.#downloads, 'SHA256SUMS.sig'), sign(null, Buffer.from(lines.join('')), privateKey).toString('base64'))
  }

  run(...args: readonly string[]): { status: number | null; output: string; commands: string[] } {
    const env = { ...process.env, PATH: `${this.#programs}:${process.env['PATH']}`, SVC_INSTALL_ROOT: this.root }
    const { status, stdout, stderr } = spawnSync('sh', [script, ...args], { env, encoding: 'utf8', input: 'secret' })
    return { status, output: stdout + stderr, commands: stdout.split('\n').filter((line) => line.startsWith('+ ')) }
  }

  ok(...args: readonly string[]): { output: string; commands: string[] } {
    const result = this.run(...args)
    assert.equal(result.status, 0, result.output)
    return result
  }

  fails(message: RegExp, ...args: readonly string[]): void {
    const { status, output } = this.run(...args)
    assert.equal(status, 1, output)
    assert.match(output, message)
  }

  current(): string {
    return readlinkSync(join(this.root, 'opt/svc/current'))
  }

  /** Every file with its content or the target of its link. */
  files(): Map<string, string> {
    const entries = readdirSync(this.root, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory())
    const contentOf = (path: string, isLink: boolean): string => (isLink ? readlinkSync(path) : readFileSync(path, 'latin1'))
    return new Map(entries.map((entry) => [join(entry.parentPath, entry.name).slice(this.root.length + 1), entry] as const)
      .map(([path, entry]) => [path, contentOf(join(this.root, path), entry.isSymbolicLink())]))
  }
}

function installed(): Machine {
  const machine = new Machine()
  machine.ok('install', machine.archive('1.0.0'))
  return machine
}

describe('install.sh', () => {
  it('installs the version, the application, the secret and the units, and starts them', () => {
    const machine = installed()
    const files = machine.files()
    assert.equal(files.get('opt/svc/current'), '1.0.0')
    for (const [path, file] of [['systemd/system/svc.service', 'svc.service'], ['systemd/system/svc.socket', 'svc.socket'], ['logrotate.d/svc', 'svc.logrotate'], ['sysusers.d/svc.conf', 'svc.sysusers']]) {
      assert.equal(files.get(`etc/${path}`), readFileSync(join(checkout, 'docs/deploy', String(file)), 'latin1'), path)
    }
    assert.match(String(files.get('etc/svc/app_key')), /^[\w-]{43}\n$/)
    assert.equal(files.get('srv/svc/svc.json'), '{}')
    const settings: object = JSON.parse(readFileSync(join(checkout, 'docs/deploy/svc.local.json'), 'utf8'))
    assert.deepEqual(JSON.parse(String(files.get('srv/svc/svc.local.json'))), { ...settings, admin: { password: 'secret' } })
    assert.equal(statSync(join(machine.root, 'srv/svc/svc.local.json')).mode & 0o777, 0o640)
    for (const folder of ['lib', 'cache', 'log']) assert.ok(existsSync(join(machine.root, 'var', folder, 'svc')), folder)
    assert.ok(files.has('active'))
  })

  it('gives an application that is there the settings of this machine, unless it has them', () => {
    const machine = new Machine()
    const archive = machine.archive('1.0.0')
    const files = { 'srv/svc/svc.json': '{"config": {"local": true}, "paths": {"public": "public", "log": ".logs"}}' }
    writeFiles(machine.root, { ...files, 'srv/svc/svc.local.json': '{"app_key": "of another machine"}' })
    machine.fails(/svc\.local\.json does not set paths\.log to a folder of this machine: remove it if it is of another one, else add/, 'install', archive)
    rmSync(join(machine.root, 'srv/svc/svc.local.json'))
    machine.ok('install', archive)
    assert.equal(machine.files().get('srv/svc/svc.json'), files['srv/svc/svc.json'])
    assert.equal(JSON.parse(String(machine.files().get('srv/svc/svc.local.json'))).paths.log, '/var/log/svc')

    const whole = new Machine()
    const json = '{"paths.log": "/run/svc-log", "admin": {"password": "hash"}}'
    writeFiles(whole.root, { 'srv/svc/svc.json': json })
    whole.ok('install', archive)
    assert.deepEqual([...whole.files()].filter(([path]) => path.startsWith('srv/')), [['srv/svc/svc.json', json]])
  })

  it('leaves a configuration that it cannot read to the check', () => {
    const machine = new Machine()
    writeFiles(machine.root, { 'srv/svc/svc.json': '{' })
    machine.fails(/version 1\.0\.0 cannot serve \S+\/srv\/svc, so nothing was switched\n$/, 'install', machine.archive('1.0.0', { refuses: true }))
    assert.deepEqual([...machine.files().keys()].filter((path) => path.startsWith('srv/')), ['srv/svc/svc.json'])
  })

  it('changes nothing the second time, and runs nothing but checks', () => {
    const machine = installed()
    const before = machine.files()
    const { commands } = machine.ok('install', machine.archive('1.0.0'))
    assert.deepEqual(machine.files(), before)
    assert.deepEqual(commands.filter((line) => !/ (?:sha256sum|verify|check) /.test(line)), [])
  })

  it('changes nothing in a dry run, and prints the commands that the real one runs', () => {
    const machine = new Machine()
    const first = machine.archive('1.0.0')
    const second = machine.archive('1.1.0', { unit: '[Service]\n' })
    for (const args of [['install', first], ['upgrade', second], ['rollback'], ['uninstall', '--purge']]) {
      const before = machine.files()
      const dry = machine.ok(...args, '--dry-run')
      assert.deepEqual(machine.files(), before, args[0])
      assert.deepEqual(dry.commands, machine.ok(...args).commands)
    }
  })

  it('upgrades with the new units, rolls back with the old ones, and forth', () => {
    const machine = installed()
    const unit = (): string => readFileSync(join(machine.root, 'etc/systemd/system/svc.service'), 'utf8')
    const old = unit()
    const next = machine.archive('1.1.0', { unit: '[Service]\nnew\n' })
    machine.ok('upgrade', next)
    assert.deepEqual([machine.current(), unit()], ['1.1.0', '[Service]\nnew\n'])
    assert.match(machine.ok('upgrade', next).output, /^ok: version 1\.1\.0 is in use$/m)
    machine.ok('rollback')
    assert.deepEqual([machine.current(), unit()], ['1.0.0', old])
    machine.ok('rollback')
    assert.deepEqual([machine.current(), unit()], ['1.1.0', '[Service]\nnew\n'])
  })

  it('keeps a unit that someone has edited, and says so', () => {
    const machine = installed()
    const unit = join(machine.root, 'etc/systemd/system/svc.service')
    appendFileSync(unit, '# mine\n')
    const edited = readFileSync(unit, 'utf8')
    const { output } = machine.ok('upgrade', machine.archive('1.1.0', { unit: '[Service]\nnew\n' }))
    assert.match(output, /^kept: \S+\/svc\.service was edited; compare it with \S+\/opt\/svc\/1\.1\.0\/docs\/deploy\/svc\.service$/m)
    assert.equal(readFileSync(unit, 'utf8'), edited)
  })

  it('returns by itself from a version that does not start, to all that was there', () => {
    const machine = installed()
    machine.ok('upgrade', machine.archive('1.1.0'))
    const before = machine.files()
    machine.fails(/from the journal[^]*version 1\.2\.0 does not start: version 1\.1\.0 is in use again\n$/, 'upgrade', machine.archive('1.2.0', { isBroken: true, unit: '[Service]\nbroken\n' }))
    rmSync(join(machine.root, 'opt/svc/1.2.0'), { recursive: true })
    assert.deepEqual(machine.files(), before)
  })

  it('switches nothing where the check of the application fails', () => {
    const machine = installed()
    machine.fails(/version 1\.1\.0 cannot serve \S+\/srv\/svc, so nothing was switched\n$/, 'upgrade', machine.archive('1.1.0', { refuses: true }))
    assert.equal(machine.current(), '1.0.0')
  })

  it('installs with a key only what its owner signed, and never what the checksums do not list', () => {
    const machine = new Machine()
    const archive = machine.archive('1.0.0')
    const bytes = readFileSync(archive)
    appendFileSync(archive, 'x')
    machine.fails(/FAILED/, 'install', archive)
    writeFileSync(archive, bytes)
    machine.ok('install', archive, '--key', machine.keyFile, '--dry-run')
    appendFileSync(join(archive, '../SHA256SUMS'), '\n')
    machine.fails(/Signature Verification Failure/, 'install', archive, '--key', machine.keyFile)
    writeFileSync(join(archive, '../SHA256SUMS'), '')
    machine.fails(/SHA256SUMS does not list svc-1\.0\.0\.tgz\n$/, 'install', archive)
    rmSync(join(archive, '../SHA256SUMS.sig'))
    machine.fails(/SHA256SUMS\.sig is missing or damaged\n$/, 'install', archive, '--key', machine.keyFile)
    assert.deepEqual([...machine.files().keys()], [])
  })

  it('refuses unpacked files that are not those of the manifest', () => {
    const machine = new Machine()
    const archive = machine.archive('1.0.0')
    for (const code of ['lib', 'dist']) writeFileSync(archive.replace('.tgz', `.${code}.manifest.json`), 'wrong')
    machine.fails(/is not what \S+manifest\.json says\n$/, 'install', archive)
    assert.equal(existsSync(join(machine.root, 'opt/svc/1.0.0')), false)
  })

  it('installs a second application under a name of its own, with a socket of its own', () => {
    const machine = installed()
    const before = machine.files()
    const archive = machine.archive('1.0.0')
    machine.fails(/--name needs --listen/, 'install', archive, '--name', 'shop')
    machine.ok('install', archive, '--name', 'shop', '--listen', '127.0.0.1:8081')
    const files = machine.files()
    for (const [path, content] of before) assert.equal(files.get(path), content, path)
    const unit = String(files.get('etc/systemd/system/shop.service'))
    assert.match(unit, /^ExecStart=node \/opt\/shop\/current\/bin\/svc\.js start$/m)
    for (const line of ['User=shop', 'StateDirectory=shop', 'WorkingDirectory=/srv/shop', 'LoadCredential=app_key:/etc/shop/app_key', 'Requires=shop.socket']) {
      assert.ok(unit.includes(`\n${line}\n`), line)
    }
    assert.equal(files.get('etc/systemd/system/shop.socket.d/listen.conf'), '[Socket]\nListenStream=\nListenStream=127.0.0.1:8081\n')
    assert.equal(JSON.parse(String(files.get('srv/shop/svc.local.json'))).paths.log, '/var/log/shop')
    machine.ok('uninstall', '--name', 'shop', '--purge')
    before.delete('active')
    assert.deepEqual(machine.files(), before)
  })

  it('takes no folder of /etc that belongs to something else', () => {
    const machine = new Machine()
    writeFiles(machine.root, { 'etc/nginx/nginx.conf': '' })
    const archive = machine.archive('1.0.0')
    machine.fails(/etc\/nginx belongs to something else/, 'install', archive, '--name', 'nginx', '--listen', '80')
    machine.fails(/there is no \S+\/opt\/nginx\/current/, 'uninstall', '--name', 'nginx', '--purge')
  })

  it('leaves nothing but data and configuration when it uninstalls, and nothing with --purge', () => {
    const machine = installed()
    writeFiles(machine.root, { 'var/lib/svc/data/svc.db': 'data', 'var/log/svc/svc.log': 'log' })
    machine.ok('uninstall')
    assert.deepEqual([...machine.files().keys()].sort(), ['etc/svc/app_key', 'srv/svc/svc.json', 'srv/svc/svc.local.json', 'var/lib/svc/data/svc.db', 'var/log/svc/svc.log'])
    machine.ok('uninstall', '--purge')
    assert.deepEqual([...machine.files().keys()], [])
  })

  it('puts a Node from an archive into place, and takes it back with the version that it came with', () => {
    const machine = installed()
    const folder = temporaryFolder()
    mkdirSync(join(machine.root, 'usr/local/bin'), { recursive: true })
    const pack = (name: string, sum?: string, program = `exec ${process.execPath} "$@"`): string => {
      mkdirSync(join(folder, name, 'bin'), { recursive: true })
      writeFileSync(join(folder, name, 'bin/node'), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
      execFileSync('tar', ['-czf', join(folder, `${name}.tar.gz`), '-C', folder, name])
      const digest = createHash('sha256').update(readFileSync(join(folder, `${name}.tar.gz`))).digest('hex')
      writeFileSync(join(folder, 'SHASUMS256.txt'), `${sum ?? digest}  ${name}.tar.gz\n`)
      return join(folder, `${name}.tar.gz`)
    }
    const early = machine.archive('1.0.1', { isBroken: true })
    machine.fails(/1\.0\.0 is in use again/, 'upgrade', early, '--node', pack('node-v22.0.0-linux-x64'))
    assert.equal(existsSync(join(machine.root, 'usr/local/bin/node')), false)
    const link = (): string => readlinkSync(join(machine.root, 'usr/local/bin/node'))
    machine.ok('upgrade', machine.archive('1.1.0'), '--node', pack('node-v24.0.0-linux-x64'))
    assert.equal(link(), join(machine.root, 'opt/node/node-v24.0.0-linux-x64/bin/node'))
    const broken = machine.archive('1.2.0', { isBroken: true })
    machine.fails(/1\.1\.0 is in use again/, 'upgrade', broken, '--node', pack('node-v26.0.0-linux-x64'))
    assert.equal(link(), join(machine.root, 'opt/node/node-v24.0.0-linux-x64/bin/node'))
    machine.fails(/FAILED/, 'upgrade', broken, '--node', pack('node-v26.0.1-linux-x64', '0'.repeat(64)))
    const lacksLibrary = pack('node-v26.0.2-linux-x64', undefined, 'exit 127')
    machine.fails(/node does not start: apt install libstdc\+\+6, for Node 26 also libatomic1\n$/, 'upgrade', broken, '--node', lacksLibrary)
    rmSync(join(machine.root, 'usr/local/bin/node'))
    writeFiles(machine.root, { 'usr/local/bin/node': 'another' })
    machine.fails(/usr\/local\/bin\/node is no link: remove it first\n$/, 'upgrade', broken, '--node', pack('node-v24.0.0-linux-x64'))
  })

  it('says how it is called', () => {
    const machine = new Machine()
    for (const args of [[], ['remove'], ['install'], ['rollback', 'x.tgz'], ['install', 'a.tgz', '--name']]) {
      const { status, output } = machine.run(...args)
      assert.deepEqual([status, /^sh install\.sh install /.test(output)], [64, true], args.join(' '))
    }
    machine.fails(/--name \.\.\/x: lower-case letters/, 'uninstall', '--name', '../x')
    machine.fails(/--listen 80;x is no address/, 'install', 'a.tgz', '--listen', '80;x')
  })
})
