import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from '../../lib/config/load.ts'
import { inconsistencies, inconsistencyWarnings } from '../../lib/config/together.ts'
import { writeFiles } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Writes a configuration to a new file, with folders and a link beside it. */
function load(config: Readonly<Record<string, unknown>>) {
  const folder = temporaryFolder()
  writeFiles(folder, { 'svc.json': config, 'key.pem': '' })
  for (const name of ['routes/public', 'public', 'site/cache']) mkdirSync(join(folder, name), { recursive: true })
  symlinkSync('routes', join(folder, 'link'))
  return loadConfig(join(folder, 'svc.json'))
}

describe('values of the configuration', () => {
  const refused: [config: Readonly<Record<string, unknown>>, problems: readonly RegExp[]][] = [
    [{ 'paths.public': '.' }, [/^paths\.public must contain nothing private, .*: it contains the configuration file and paths\.routes and/]],
    [{ 'paths.public': 'routes' }, [/: it contains paths\.routes and paths\.middleware and paths\.errors$/]],
    [{ 'paths.public': 'link' }, [/: it contains paths\.routes and paths\.middleware and paths\.errors$/]],
    [{ 'paths.public': 'routes/public' }, []],
    [{ 'paths.public': 'public' }, []],
    [{ 'paths.public': 'site', 'paths.cache': 'site/cache' }, [/: it contains paths\.cache$/]],
    [{ 'paths.public': 'site', 'server.tls.key': 'site/key.pem' }, [/: it contains server\.tls\.key$/]],
    [{ 'paths.public': 'site', 'server.tls.key': 'key.pem' }, []],
    [{ 'shared.url': 'redis://127.0.0.1' }, [/^app_key must be set together with shared\.url/]],
    [{ 'shared.url': 'redis://127.0.0.1', app_key: 'k' }, []],
    [{ 'shared.url': 'redis://127.0.0.1', 'app.env': 'dev' }, []],
  ]
  for (const key of ['routes', 'jobs', 'middleware', 'errors', 'cache', 'log', 'temp', 'data']) {
    refused.push([{ 'paths.public': 'site', [`paths.${key}`]: 'site/not/there/yet' }, [new RegExp(`: it contains paths\\.${key}$`)]])
  }
  for (const [config, problems] of refused) {
    it(`${problems.length > 0 ? 'are refused' : 'are accepted'} together: ${JSON.stringify(config)}`, () => {
      const found = inconsistencies(load(config)).map(({ text }) => text)
      assert.equal(found.length, problems.length, found.join('\n'))
      for (const [at, problem] of problems.entries()) assert.match(found[at] ?? '', problem)
    })
  }

  const md5 = 'd'.repeat(32)
  const told: readonly [config: Readonly<Record<string, unknown>>, warning: RegExp | undefined][] = [
    [{ 'app.env': 'dev' }, undefined],
    [{ 'app.env': 'dev', 'server.host': '::1' }, undefined],
    [{ 'server.host': '0.0.0.0' }, undefined],
    [{ 'app.env': 'dev', 'server.host': '0.0.0.0' }, /^app\.env is dev and server\.host is 0\.0\.0\.0: the admin panel is open/],
    [{ 'app.env': 'dev', 'server.host': 'web1' }, /the admin panel is open to everybody/],
    [{ 'admin.password': md5 }, undefined],
    [{ 'admin.password': md5, 'admin.hardened': true }, /admin\.password is still an MD5/],
    [{ 'admin.hardened': true }, undefined],
    [{ 'server.tls.key': 'key.pem' }, /^server\.tls\.key: everybody on this machine can read key\.pem/],
  ]
  for (const [config, warning] of told) {
    it(`${warning === undefined ? 'cause no warning' : 'cause a warning'}: ${JSON.stringify(config)}`, () => {
      const found = inconsistencyWarnings(load(config))
      if (warning === undefined) assert.deepEqual(found, [])
      else assert.match(found.join(), warning)
    })
  }

  it('that are secret cause a warning if everybody can read their file', () => {
    const file = join(temporaryFolder(), 'svc.json')
    writeFileSync(file, '{"app_key": "k", "admin": {"secret": "s", "password": ""}, "log": {"level": "info"}}', { mode: 0o644 })
    const said = `${file}: everybody on this machine can read app_key and admin.secret: remove that permission (chmod o-r)`
    assert.deepEqual(loadConfig(file).warnings, [said])
    chmodSync(file, 0o640)
    assert.deepEqual(loadConfig(file).warnings, [])
    writeFileSync(file, '{"app_key": ""}')
    chmodSync(file, 0o644)
    assert.deepEqual(loadConfig(file, { app_key: 'from elsewhere' }).warnings, [])
  })
})
