import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { initApplication } from '../../lib/commands/init.ts'
import { configTable } from '../../lib/config/table.ts'
import { readPage, root } from '../support/markdown.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const read = (name: string): string => readFileSync(new URL(`docs/deploy/${name}`, root), 'utf8')
const unit = read('svc.service')
const pages = ['docs/install.md', 'docs/operations.md'].map(readPage)
const blocks = pages.flatMap((page) => page.blocks)
const text = [...pages.map((page) => page.prose), ...blocks.map((block) => block.text)].join('\n')
/** The configuration that the page tells the reader to write. */
const documented = blocks.map((block) => block.text).find((block) => block.includes('"max_files"')) ?? ''

/** The values of a setting of the unit. */
function settings(name: string, of = unit): string[] {
  return [...of.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

describe('the files in docs/deploy', () => {
  it('are exactly those named in docs/install.md and docs/operations.md', () => {
    const files = readdirSync(new URL('docs/deploy/', root)).sort()
    const units = /\bsvc\.(?:service|socket|sysusers|logrotate|nginx|rules\.yml|rules\.test\.yml|dashboard\.json)\b/g
    const others = /\bsvc-nodes\.(?:nginx|haproxy)\b|(?<=deploy\/)(?:acme|install\.sh|svc\.local\.json)\b/g
    const named = new Set([units, others].flatMap((pattern) => text.match(pattern) ?? []))
    assert.deepEqual([...named].sort(), files)
  })

  it('have the settings that the page tells the reader to write', () => {
    assert.equal(documented, read('svc.local.json'))
  })

  it('agree with each other and with the configuration on paths', () => {
    assert.deepEqual(settings('ListenStream', read('svc.socket')), [`${configTable['server.host'].default}:${configTable['server.port'].default}`])
    assert.match(read('svc.nginx'), /^ {4}server 127\.0\.0\.1:8080;$/m)
    for (const [name, place] of [['StateDirectory', 'lib'], ['CacheDirectory', 'cache'], ['LogsDirectory', 'log']] as const) {
      assert.deepEqual(settings(name), ['svc'])
      assert.ok(text.includes(`/var/${place}/svc`), place)
    }
    assert.deepEqual(settings('WorkingDirectory'), ['/srv/svc'])
    assert.match(read('svc.logrotate'), /^\/var\/log\/svc\/access\.log \{$/m)
    assert.equal(configTable['access_log.file'].default, 'access.log')
    for (const command of settings('ExecStart')) {
      const [, path = ''] = /^node \/opt\/svc\/current\/(\S+) start$/.exec(command) ?? []
      assert.ok(path !== '' && existsSync(new URL(path, root)), command)
    }
  })

  it('let an upload be moved into the folder of the application without a copy: both are on one mount', () => {
    const { paths } = JSON.parse(documented) as { paths: Record<string, string> }
    assert.deepEqual(settings('ProtectSystem'), ['strict'])
    assert.match(paths['temp'] ?? '', /^\/var\/lib\/svc\//)
    const writing = readdirSync(new URL('docs/recipes/', root)).filter((name) => {
      const code = readPage(`docs/recipes/${name}`).blocks.map((block) => block.text).join('\n')
      if (!/\b(?:writeFile|rename|moveTo)\b|\bDatabaseSync\((?!':memory:')|\b(?:writeFile|rename)Sync\b/.test(code)) return false
      assert.match(code, /process\.env\.STATE_DIRECTORY/, name)
      return true
    })
    assert.deepEqual(writing.sort(), [
      ...['audit-trail.md', 'database.md', 'files.md', 'from-php.md', 'import.md', 'migrations.md', 'nightly-report.md', 'outbox.md', 'sign-in.md', 'tokens.md', 'upload.md', 'webhook.md'],
    ])
  })

  it('serve the static files of an application that init makes', () => {
    const folder = join(temporaryFolder(), 'app')
    initApplication(folder)
    const { paths } = JSON.parse(readFileSync(join(folder, 'svc.json'), 'utf8')) as { paths: Record<string, string> }
    const [, root = ''] = /^ {4}root (\S+);$/m.exec(read('svc.nginx')) ?? []
    assert.equal(`/srv/svc/${paths['public']}`, root)
    assert.equal('public' in (JSON.parse(documented) as { paths: object }).paths, false)
  })

  it('start the server without a prior check, and with threads for many processes', () => {
    assert.deepEqual(settings('ExecStartPre'), [])
    assert.ok(Number(settings('TasksMax')[0]) >= 128 * 11)
  })

  it('let the others keep serving when the kernel kills one of several processes for memory', () => {
    assert.deepEqual(settings('OOMPolicy'), ['continue'])
    assert.deepEqual(settings('Restart'), ['on-failure'])
  })

  it('agree with the configuration on times', () => {
    assert.ok(Number(settings('TimeoutStopSec')[0]) > configTable['server.stop_timeout_s'].default)
    for (const [file, pattern] of [
      ['svc.nginx', /keepalive_timeout (\d+)s;/],
      ['svc-nodes.nginx', /keepalive_timeout (\d+)s;/],
      ['svc-nodes.haproxy', /timeout http-keep-alive (\d+)s$/m],
    ] as const) {
      const idle = pattern.exec(read(file))?.[1]
      assert.ok(Number(idle) < configTable['server.keep_alive_timeout_s'].default, file)
    }
    const watchdogS = Number(settings('WatchdogSec')[0])
    assert.ok(text.includes(`${watchdogS / 2} to ${watchdogS} seconds later`) && text.includes(`\`WatchdogSec=${watchdogS}\``))
  })

  it('let a stopping node serve until HAProxy has noticed', () => {
    const file = read('svc-nodes.haproxy')
    const drainDelayS = Number(/"drain_delay_s": (\d+)/.exec(file)?.[1])
    const checks = [...file.matchAll(/check inter (\d+)s fall (\d+) /g)]
    assert.equal(checks.length, 2)
    for (const [, inter, fall] of checks) assert.ok(drainDelayS > Number(inter) * Number(fall) + 1)
    assert.ok(drainDelayS < configTable['server.stop_timeout_s'].default)
  })

  it('refuse the same bodies as the server', () => {
    const bytes = configTable['server.body_limit_kb'].default * 1024
    for (const file of ['svc.nginx', 'svc-nodes.nginx']) {
      assert.equal(Number(/client_max_body_size (\d+)m;/.exec(read(file))?.[1]) * 2 ** 20, bytes, file)
    }
    assert.equal(Number(/req\.body_size gt (\d+)/.exec(read('svc-nodes.haproxy'))?.[1]), bytes)
  })

  it('let the server report its state, read its secret and reload', () => {
    assert.deepEqual([settings('Type'), settings('NotifyAccess')], [['notify'], ['all']])
    assert.deepEqual(settings('LoadCredential'), ['app_key:/etc/svc/app_key'])
    assert.deepEqual(settings('ExecReload'), ['node /opt/svc/current/bin/svc.js reload'])
    assert.match(read('svc.logrotate'), /--signal=USR2 --kill-whom=main svc\.service/)
  })

  it('are installed by commands that work on a new Debian 12', () => {
    // It has no /etc/sysusers.d; its first user may not read the journal; `--kill-whom` is of systemd 252.
    assert.match(text, /^sudo install -D -m 0644 \S+\/svc\.sysusers \/etc\/sysusers\.d\/svc\.conf$/m)
    assert.doesNotMatch(text, /(?<!sudo )\bjournalctl\b/)
    assert.match(text, /\bsystemd 252 or later\b/)
  })

  it('do not forbid what V8 needs', () => {
    assert.deepEqual(settings('MemoryDenyWriteExecute'), [])
  })
})
