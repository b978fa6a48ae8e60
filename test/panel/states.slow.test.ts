import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeConfig, cookieOf, nowSeconds, password, startPanel, user } from './panel-server.ts'
import { cookieFrom, form, leadsTo, says } from '../access/support.ts'

const none = { 'admin.user': '', 'admin.password': '', 'admin.secret': '' }
const wanted = { user, password, password2: password }

test('hardened: scrypt, 32 random bytes, an HMAC cookie; a cookie of the other form is invalid', async (t) => {
  const server = await startPanel(t, { ...none, 'admin.hardened': true })
  leadsTo(await server.ask('/svc-setup', form(wanted)), '/svc-login')
  const { 'admin.password': hash, 'admin.secret': made } = server.saved()
  assert.match(String(hash), /^scrypt\$/)
  assert.equal(Buffer.from(String(made), 'base64url').length, 32)
  says(await server.ask('/svc-login', form({ user, password: 'wrong one' })), 401, 'Invalid credentials')
  const cookie = cookieFrom(await server.ask('/svc-login', form({ user, password })))
  assert.match(cookie, /^svc_admin=\d+:[0-9a-f]{64}$/)
  assert.equal((await server.ask('/svc-status', { headers: { cookie } })).status, 200)
  const plain = { headers: { cookie: cookieOf(nowSeconds(), String(made)) } }
  assert.equal((await server.ask('/svc-status', plain)).status, 302)
  changeConfig(server, { 'admin.hardened': false })
  await server.restart()
  assert.equal((await server.ask('/svc-status', { headers: { cookie } })).status, 302)
  assert.equal((await server.ask('/svc-status', plain)).status, 200)
  leadsTo(await server.ask('/svc-login', form({ user, password })), '/svc-status')
})
