// A crypto library without MD5, HMAC-SHA1 and scrypt, as one in FIPS mode.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createPasswordCheck } from '../../lib/access/password.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { launch, optionsOfTarget, root, runLauncher } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { acceptsOnlySecret } from './password-support.ts'

const nodeOptions = ['--import', `${root}test/support/without-crypto.js`, ...optionsOfTarget()]
const files = {
  'routes/a.json': [{ name: 'hash', url: '/hash', action: 'a.mjs' }],
  'a.mjs': `export default async ({ password }) => {
    const stored = await password.hash('secret')
    return { stored, verified: await password.verify('secret', stored), wrong: await password.verify('Secret', stored) }
  }`,
}
const form = { 'Content-Type': 'application/x-www-form-urlencoded' }

describe('a Node whose crypto library refuses MD5 and scrypt', () => {
  it('exits with 78 and one sentence, unless admin.hardened', async (t) => {
    const cwd = applicationFolder(files)
    const reason = /: admin\.hardened must be true: the crypto library of this Node refuses MD5, as one in FIPS mode does\n/
    for (const command of ['start', 'check', 'passwd']) {
      const { status, stdout, stderr } = await runLauncher(t, [command], { cwd, nodeOptions })
      assert.equal(status, 78, command)
      assert.match(stdout + stderr, reason)
      assert.doesNotMatch(stdout + stderr, /^ +at |digital envelope/m)
    }
  })

  it('exits with 78 and one sentence if there is a second factor, or one is to be made', async (t) => {
    const reason = /: admin\.totp must be empty: the crypto library of this Node refuses HMAC-SHA1, which its codes need(?: \(line 1\))?\n/
    const config = { 'admin.hardened': true, 'app.env': 'dev' }
    const withFactor = applicationFolder(files, { ...config, 'admin.totp': 'A'.repeat(32) })
    const without = applicationFolder(files, config)
    for (const [cwd, args] of [[withFactor, ['start']], [withFactor, ['check']], [withFactor, ['passwd']], [without, ['passwd', '--totp']]] as const) {
      const { status, stdout, stderr } = await runLauncher(t, [...args], { cwd, nodeOptions })
      assert.equal(status, 78, args.join(' '))
      assert.match(stdout + stderr, reason)
      assert.doesNotMatch(stdout + stderr, /^ +at |digital envelope/m)
    }
  })

  it('has PBKDF2 for the panel and for ctx.password', async (t) => {
    const cwd = applicationFolder(files, { 'admin.hardened': true, 'app.env': 'dev' })
    const url = await launch(t, ['start'], { cwd, nodeOptions }).listening()
    const body = 'user=ada&password=secret&password2=secret'
    assert.equal((await request(`${url}/svc-setup`, { method: 'POST', body, headers: form })).status, 302)
    const { admin } = JSON.parse(readFileSync(join(cwd, 'svc.json'), 'utf8')) as { admin: { password: string } }
    assert.match(admin.password, /^\$pbkdf2-sha256\$i=600000\$[\w+/]{22}\$[\w+/]{43}$/)
    await acceptsOnlySecret(createPasswordCheck(), admin.password)
    const signIn = (password: string) =>
      request(`${url}/svc-login`, { method: 'POST', body: `user=ada&password=${password}`, headers: form })
    assert.ok((await signIn('secret')).headers['set-cookie']?.some((cookie) => cookie.startsWith('svc_admin=')))
    assert.equal((await signIn('Secret')).headers['set-cookie'], undefined)
    const { stored, verified, wrong } = (await request(`${url}/hash`)).json() as Record<string, unknown>
    assert.match(stored as string, /^\$pbkdf2-sha256\$i=600000\$/)
    assert.deepEqual([verified, wrong], [{ ok: true, stale: false }, { ok: false, stale: false }])
  })

  it('warns of a password that was made with scrypt', async (t) => {
    const password = `scrypt$1024$8$1$${'A'.repeat(22)}$${'A'.repeat(43)}`
    const admin = { 'admin.hardened': true, 'admin.user': 'ada', 'admin.password': password, 'admin.secret': 'x' }
    const server = launch(t, ['start'], { cwd: applicationFolder(files, { ...admin, 'app.env': 'dev' }), nodeOptions })
    const url = await server.listening()
    assert.match(server.stdout(), /admin\.password was made with scrypt, which the crypto library of this Node refuses/)
    await request(`${url}/svc-login`, { method: 'POST', body: 'user=ada&password=secret', headers: form })
    const reason = /its hash was made with scrypt, which the crypto library of this Node does not have; set the password again/
    await until(() => reason.test(server.stdout()))
  })
})
