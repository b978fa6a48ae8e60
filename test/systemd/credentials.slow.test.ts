import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ConfigError } from '../../lib/config/load.ts'
import { takeSecret } from '../../lib/systemd/credentials.ts'
import { applicationFolder } from '../cli/application-folder.ts'
import { writeFiles } from '../support/application.ts'
import { launch, runLauncher } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

describe('the application secret from outside of the configuration file', () => {
  it('is the credential, else the variable, else none', () => {
    const folder = temporaryFolder()
    const other = temporaryFolder()
    writeFiles(folder, { app_key: 'of the credential\n' })
    const rows: [env: Record<string, string>, key: string | undefined, from: RegExp][] = [
      [{ CREDENTIALS_DIRECTORY: folder, SVC_APP_KEY: 'of the variable' }, 'of the credential', /^the credential .*app_key$/],
      [{ CREDENTIALS_DIRECTORY: folder }, 'of the credential', /credential/],
      [{ CREDENTIALS_DIRECTORY: other, SVC_APP_KEY: 'of the variable' }, 'of the variable', /^the environment variable SVC_APP_KEY$/],
      [{ CREDENTIALS_DIRECTORY: '', SVC_APP_KEY: 'of the variable' }, 'of the variable', /variable/],
      [{ CREDENTIALS_DIRECTORY: other }, undefined, /^$/],
      [{}, undefined, /^$/],
    ]
    for (const [env, key, from] of rows) {
      const found = takeSecret(env, 'app_key')
      assert.equal(found?.secret, key)
      assert.match(found?.from ?? '', from)
      assert.ok(!('SVC_APP_KEY' in env))
    }
  })

  it('is one of several, each with its own credential and variable', () => {
    const folder = temporaryFolder()
    writeFiles(folder, { app_key: 'key', shared_password: 'password\n' })
    const env = { CREDENTIALS_DIRECTORY: folder, SVC_SHARED_PASSWORD: 'other', SVC_APP_KEY: 'other' }
    assert.equal(takeSecret(env, 'shared_password')?.secret, 'password')
    assert.deepEqual(Object.keys(env), ['CREDENTIALS_DIRECTORY', 'SVC_APP_KEY'])
    assert.equal(takeSecret(env, 'app_key')?.secret, 'key')
    const variable = { SVC_SHARED_PASSWORD: '' }
    assert.throws(() => takeSecret(variable, 'shared_password'), /^ConfigError: Cannot load shared_password: .*SVC_SHARED_PASSWORD is empty$/)
  })

  for (const [content, key] of [['a', 'a'], ['a\n', 'a'], ['a\r\n', 'a'], ['a\n\n', 'a\n'], [' a b ', ' a b ']] as const) {
    it(`loses one line end: ${JSON.stringify(content)}`, () => {
      const folder = temporaryFolder()
      writeFiles(folder, { app_key: content })
      assert.equal(takeSecret({ CREDENTIALS_DIRECTORY: folder }, 'app_key')?.secret, key)
    })
  }

  it('is an error of the configuration when it is empty or cannot be read', () => {
    const [empty, line, folder, binary] = Array.from({ length: 4 }, () => temporaryFolder()) as [string, string, string, string]
    writeFiles(empty, { app_key: '' })
    writeFiles(line, { app_key: '\n' })
    mkdirSync(join(folder, 'app_key'))
    writeFileSync(join(binary, 'app_key'), Buffer.of(0xff, 0xfe))
    const rows: [env: Record<string, string>, problem: RegExp][] = [
      [{ CREDENTIALS_DIRECTORY: empty, SVC_APP_KEY: 'good' }, /^Cannot load app_key: the credential .*app_key is empty$/],
      [{ CREDENTIALS_DIRECTORY: line }, /is empty$/],
      [{ CREDENTIALS_DIRECTORY: folder }, /app_key cannot be read: EISDIR/],
      [{ CREDENTIALS_DIRECTORY: binary }, /cannot be read: .*not valid/],
      [{ SVC_APP_KEY: '' }, /^Cannot load app_key: the environment variable SVC_APP_KEY is empty$/],
    ]
    for (const [env, problem] of rows) {
      assert.throws(
        () => takeSecret(env, 'app_key'),
        (error) => error instanceof ConfigError && problem.test(error.message),
      )
    }
  })

  it('signs, stands above svc.json, and is not written to it by the setup', async (t) => {
    const form = { 'routes/home.json': [{ name: 'home', url: '/', action: 'home.mjs' }] }
    const home = "export default ({ app, resourceInput }) => resourceInput('7') + (process.env.SVC_APP_KEY ?? '')"
    for (const config of [{ app_key: '' }, { app_key: 'of the file' }]) {
      const cwd = applicationFolder({ ...form, 'home.mjs': home }, config)
      const ask = async (env: Record<string, string>): Promise<string> => {
        const server = launch(t, [], { cwd, env })
        const url = await server.listening()
        assert.match(server.stdout(), /\[INFO \] \[config\] app_key comes from the /)
        assert.doesNotMatch(server.stdout(), /app_key is empty|of the variable/)
        const { text } = await request(url)
        const body = 'user=ann&password=secret1&password2=secret1'
        const headers = { 'content-type': 'application/x-www-form-urlencoded' }
        const { status } = await request(`${url}/svc-setup`, { method: 'POST', body, headers })
        assert.equal(status, 302)
        server.child.kill('SIGTERM')
        assert.equal(await server.ended, 0)
        return /value="([^"]*)"/.exec(text)?.[1] ?? ''
      }
      const credentials = temporaryFolder()
      writeFiles(credentials, { app_key: 'of the credential\n' })
      const signed = await ask({ SVC_APP_KEY: 'of the variable', CREDENTIALS_DIRECTORY: credentials })
      assert.match(signed, /^[\w+/=]+\.[0-9a-f]{64}$/)
      const after = JSON.parse(readFileSync(join(cwd, 'svc.json'), 'utf8')) as { app_key: string }
      assert.equal(after.app_key, config.app_key)
      assert.ok(JSON.stringify(after).includes('"ann"'))
    }
  })

  it('ends start, check and routes with 78 when it is wrong', async (t) => {
    const cwd = applicationFolder()
    for (const word of ['start', 'check', 'routes']) {
      const { status, stdout, stderr } = await runLauncher(t, [word], { cwd, env: { SVC_APP_KEY: '' } })
      assert.equal(status, 78, word)
      assert.match(`${stdout}${stderr}`, /Cannot load app_key: the environment variable SVC_APP_KEY is empty\n$/)
    }
  })
})
