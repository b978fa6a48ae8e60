import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ConfigError } from '../../lib/config/load.ts'
import { takeSecret, takeSecrets } from '../../lib/systemd/service.ts'
import { writeFiles } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

describe('the application secret from outside of the configuration file', () => {
  it('is the variable, else the credential, else none', () => {
    const folder = temporaryFolder()
    const other = temporaryFolder()
    writeFiles(folder, { app_key: 'of the credential\n' })
    const rows: [env: Record<string, string>, key: string | undefined, from: RegExp][] = [
      [{ CREDENTIALS_DIRECTORY: folder, SVC_APP_KEY: 'of the variable' }, 'of the variable', /^the environment variable SVC_APP_KEY$/],
      [{ CREDENTIALS_DIRECTORY: folder }, 'of the credential', /^the credential .*app_key$/],
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

  it('is one of several, each with a credential and a variable', () => {
    const folder = temporaryFolder()
    writeFiles(folder, { app_key: 'key', shared_password: 'password\n' })
    const env = { CREDENTIALS_DIRECTORY: folder, SVC_SHARED_PASSWORD: 'other', SVC_APP_KEY: 'other' }
    assert.equal(takeSecret(env, 'shared_password')?.secret, 'other')
    assert.deepEqual(Object.keys(env), ['CREDENTIALS_DIRECTORY', 'SVC_APP_KEY'])
    assert.equal(takeSecret(env, 'shared_password')?.secret, 'password')
    assert.equal(takeSecret(env, 'app_key')?.secret, 'other')
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

  it('is a configuration error if it is empty or cannot be read', () => {
    const [empty, line, folder, binary] = Array.from({ length: 4 }, () => temporaryFolder()) as [string, string, string, string]
    writeFiles(empty, { app_key: '' })
    writeFiles(line, { app_key: '\n' })
    mkdirSync(join(folder, 'app_key'))
    writeFileSync(join(binary, 'app_key'), Buffer.of(0xff, 0xfe))
    const rows: [env: Record<string, string>, problem: RegExp][] = [
      [{ CREDENTIALS_DIRECTORY: empty }, /^Cannot load app_key: the credential .*app_key is empty$/],
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
})

describe('all secrets from outside of the configuration file', () => {
  it('replace the values of their keys, with their sources', () => {
    const folder = temporaryFolder()
    writeFiles(folder, { app_key: 'key\n', app_key_previous: 'may\r\n\napril\n', metrics_token: 'token' })
    assert.deepEqual(takeSecrets({ CREDENTIALS_DIRECTORY: folder, SVC_SHARED_PASSWORD: 'password' }), {
      overrides: { app_key: 'key', app_key_previous: ['may', 'april'], 'admin.metrics_token': 'token' },
      sharedPassword: 'password',
      from: {
        app_key: `the credential ${folder}/app_key`,
        app_key_previous: `the credential ${folder}/app_key_previous`,
        'shared.url': 'the environment variable SVC_SHARED_PASSWORD',
        'admin.metrics_token': `the credential ${folder}/metrics_token`,
      },
    })
    assert.deepEqual(takeSecrets({}), { overrides: {}, from: {} })
  })

  it('have no previous key if its credential is empty: the key rotation is done', () => {
    const folder = temporaryFolder()
    writeFiles(folder, { app_key_previous: '\n' })
    assert.deepEqual(takeSecrets({ CREDENTIALS_DIRECTORY: folder }).overrides, { app_key_previous: [] })
  })
})
