// svc.local.json: the settings of one machine, merged over svc.json.
import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createCredentialWriter } from '../../lib/config/credential-writer.ts'
import { ConfigError, fileToWrite, loadConfig, localFileOf } from '../../lib/config/load.ts'
import { inconsistencies } from '../../lib/config/together.ts'
import { assertCurrent } from '../support/current.ts'
import { writeFiles } from '../support/application.ts'
import { renderSchema } from '../support/schema.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Creates a folder with these files; returns the path of its `svc.json`. */
function place(files: Readonly<Record<string, unknown>>): string {
  const folder = temporaryFolder()
  writeFiles(folder, files)
  return join(folder, 'svc.json')
}

describe('svc.local.json', () => {
  it('overrides svc.json key by key, nested or dotted; a list replaces the whole list', () => {
    const file = place({
      'svc.json': { 'server.port': 1, server: { host: 'a.example', trusted_proxies: ['10.0.0.1', '10.0.0.2'] }, trace: { app: false } },
      'svc.local.json': { server: { port: 2, trusted_proxies: ['10.0.0.3'] }, 'log.level': 'debug', 'trace.pool': false },
    })
    const { config, overridden, localFile } = loadConfig(file, { 'app.env': 'dev' })
    assert.deepEqual(
      [config['server.port'], config['server.host'], config['server.trusted_proxies'], config['log.level'], config['app.env']],
      [2, 'a.example', ['10.0.0.3'], 'debug', 'dev'],
    )
    assert.deepEqual([config['trace.app'], config['trace.pool'], config['trace.server']], [false, false, true])
    assert.deepEqual(overridden, ['server.port', 'server.trusted_proxies'])
    assert.equal(localFile, localFileOf(file))
  })

  it('suffices without svc.json, with a warning', () => {
    const file = place({ 'svc.local.json': { server: { port: 2 } } })
    const { config, file: main, warnings } = loadConfig(file)
    assert.deepEqual([config['server.port'], main], [2, undefined])
    assert.deepEqual(warnings, [`${file} does not exist: the defaults are used`])
  })

  it('has its name in the messages about its problems', () => {
    const file = place({ 'svc.json': '{\n"log": {"level": "all"}}', 'svc.local.json': '{\n"server": {"port": null,\n"host": 7}, "porrt": 1}' })
    assert.throws(() => loadConfig(file), (error) => {
      assert.ok(error instanceof ConfigError)
      assert.deepEqual(error.problems.map((text) => text.replace(/ must .*(?= \()/, '')), [
        'log.level (line 2)',
        'server.port (svc.local.json, line 2)',
        'server.host (svc.local.json, line 3)',
      ])
      assert.match(error.warnings.join(), /unknown key porrt \(svc\.local\.json, line 3\)/)
      return true
    })
    const broken = place({ 'svc.json': {}, 'svc.local.json': '{' })
    assert.throws(() => loadConfig(broken), { name: 'ConfigError', message: /^Cannot load .*svc\.local\.json: / })
  })

  it('has a matching name for another file name', () => {
    assert.deepEqual(['/a/prod.json', '/a/conf'].map(localFileOf), ['/a/prod.local.json', '/a/conf.local.json'])
  })

  it('is the file to write when it exists or config.local is true', () => {
    const rows: [Readonly<Record<string, unknown>>, string][] = [
      [{ 'svc.json': {} }, 'svc.json'],
      [{ 'svc.json': {}, 'svc.local.json': {} }, 'svc.local.json'],
      [{ 'svc.json': { config: { local: true } } }, 'svc.local.json'],
    ]
    for (const [files, name] of rows) {
      const file = place(files)
      const { config } = loadConfig(file)
      const before = readFileSync(file, 'utf8')
      const saved: string[] = []
      const writer = createCredentialWriter(file, config, (_, written) => saved.push(written))
      writer.write({ 'admin.user': 'ann' })
      const written = join(file, '..', name)
      assert.deepEqual([saved, fileToWrite(file, config)], [[written], written])
      assert.equal(writer.read()?.['admin.user'], 'ann')
      if (name === 'svc.local.json') assert.equal(readFileSync(file, 'utf8'), before)
      assert.match(readFileSync(written, 'utf8'), /"admin": \{\s*"user": "ann"/)
      if (files['svc.local.json'] === undefined && name === 'svc.local.json') assert.equal(statSync(written).mode & 0o777, 0o600)
    }
  })

  it('may not be served as a static file', () => {
    const loaded = loadConfig(place({ 'svc.json': { paths: { public: '.' }, config: { local: true } } }))
    assert.match(inconsistencies(loaded)[0]?.text ?? '', /contains the local configuration file and the configuration file and/)
  })
})

describe('docs/svc.schema.json', () => {
  it('is current: npm run docs writes it', () => {
    assertCurrent('svc.schema.json', renderSchema())
  })

  it('may be referenced in a file, without a warning', () => {
    assert.deepEqual(loadConfig(place({ 'svc.json': { $schema: '../svc/docs/svc.schema.json' } })).warnings, [])
  })
})
