import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { writeFiles } from '../support/application.ts'
import { launch, runLauncher } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

describe('the application secret from outside of the configuration file', () => {
  it('signs, overrides svc.json, and is not written to it by the setup', async (t) => {
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

  it('causes a WARN, a warning and a line of check if it overrides a key of svc.json', async (t) => {
    const cwd = applicationFolder({}, { app_key: 'the new key of the file, of 32 characters' })
    const env = { SVC_APP_KEY: 'the key of the variable, of 32 characters' }
    const hidden = /app_key \(svc\.json, line \d+\) is not used, since the environment variable SVC_APP_KEY overrides it/
    const { status, stdout } = await runLauncher(t, ['check'], { cwd, env })
    assert.equal(status, 0)
    assert.match(stdout, new RegExp(`^warning: ${hidden.source}`, 'm'))
    const server = launch(t, [], { cwd, env })
    await server.listening()
    assert.match(server.stdout(), new RegExp(`\\[WARN \\] \\[config\\] ${hidden.source}`))
  })

  it('can be replaced while tokens of the previous one remain valid: the previous one is a credential too', async (t) => {
    const files = {
      'routes/home.json': [{ name: 'home', url: '/', action: 'home.mjs' }, { name: 'id', url: '/id', action: 'home.mjs@id' }],
      'home.mjs': "export default (ctx) => ctx.resourceInput('7')\nexport const id = (ctx) => ctx.resourceId()",
    }
    const cwd = applicationFolder(files)
    const credentials = temporaryFolder()
    const ask = async (app_key: string, app_key_previous: string, path: string): Promise<string> => {
      writeFiles(credentials, { app_key, app_key_previous })
      const server = launch(t, [], { cwd, env: { CREDENTIALS_DIRECTORY: credentials } })
      const { text } = await request((await server.listening()) + path)
      assert.match(server.stdout(), /\[INFO \] \[config\] app_key_previous comes from the credential /)
      server.child.kill('SIGTERM')
      assert.equal(await server.ended, 0)
      return text
    }
    const token = /value="([^"]*)"/.exec(await ask('may', '', '/'))?.[1] ?? ''
    const path = `/id?_resource_id=${encodeURIComponent(token)}`
    assert.equal(await ask('june', 'april\nmay\n', path), '7')
    assert.equal(await ask('june', 'april\n', path), '')
  })

  it('makes start, check and routes exit with 78 if it is invalid', async (t) => {
    const cwd = applicationFolder()
    for (const word of ['start', 'check', 'routes']) {
      const { status, stdout, stderr } = await runLauncher(t, [word], { cwd, env: { SVC_APP_KEY: '' } })
      assert.equal(status, 78, word)
      assert.match(`${stdout}${stderr}`, /Cannot load app_key: the environment variable SVC_APP_KEY is empty\n$/)
    }
  })
})

describe('the token of the metrics from outside of the configuration file', () => {
  const token = 'a-token-of-32-visible-characters'

  it('grants /svc-metrics in every process, and appears in no environment and no file', async (t) => {
    for (const processes of [1, 2]) {
      const environment = "export default () => String(process.env.SVC_METRICS_TOKEN)"
      const routes = [{ name: 'home', url: '/', action: 'home.mjs' }]
      const cwd = applicationFolder({ 'routes/home.json': routes, 'home.mjs': environment }, { server: { processes } })
      const credentials = temporaryFolder()
      writeFiles(credentials, { metrics_token: `${token}\n` })
      for (const env of [{ CREDENTIALS_DIRECTORY: credentials }, { SVC_METRICS_TOKEN: token }] as Record<string, string>[]) {
        const server = launch(t, [], { cwd, env })
        const url = await server.listening()
        assert.match(server.stdout(), /\[INFO \] \[config\] admin\.metrics_token comes from the /)
        for (let count = 0; count < 6; count += 1) { // Each on a new connection, to reach both processes.
          const { status } = await request(`${url}/svc-metrics`, { headers: { authorization: `Bearer ${token}` } })
          assert.equal(status, 200)
        }
        assert.equal((await request(`${url}/svc-metrics`, { headers: { authorization: 'Bearer wrong' } })).status, 401)
        assert.equal((await request(url)).text, 'undefined')
        server.child.kill('SIGTERM')
        assert.equal(await server.ended, 0)
        assert.ok(!`${server.stdout()}${readFileSync(join(cwd, 'svc.json'), 'utf8')}`.includes(token))
      }
    }
  })

  it('makes start and check exit with 78 if it is too short, without quoting it', async (t) => {
    const cwd = applicationFolder()
    for (const word of ['start', 'check']) {
      const { status, stdout, stderr } = await runLauncher(t, [word], { cwd, env: { SVC_METRICS_TOKEN: 'too-short' } })
      assert.equal(status, 78, word)
      assert.match(`${stdout}${stderr}`, /admin\.metrics_token must be empty, or at least 32 visible ASCII characters/)
      assert.doesNotMatch(`${stdout}${stderr}`, /too-short/)
    }
  })
})
