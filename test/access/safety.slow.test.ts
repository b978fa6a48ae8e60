import assert from 'node:assert/strict'
import { test } from 'node:test'
import { password, startPanel, user } from '../panel/panel-server.ts'
import { form, says } from './support.ts'

test('failed logins: the 11th response comes a second later; after 100 it is 429 until a minute has passed', async (t) => {
  const server = await startPanel(t, { 'server.trusted_proxies': ['127.0.0.1'] })
  const from = (ip: string) => ({ 'x-forwarded-for': ip })
  const fail = (ip: string) => server.ask('/svc-login', form({ user, password: 'wrong' }, from(ip)))
  for (let count = 1; count <= 10; count += 1) assert.equal((await fail('203.0.113.1')).status, 401)
  const began = performance.now()
  assert.equal((await fail('203.0.113.1')).status, 401)
  assert.ok(performance.now() - began >= 990)
  const right = await server.ask('/svc-login', form({ user, password }, from('203.0.113.1')))
  assert.equal(right.status, 302)

  const many = await Promise.all(Array.from({ length: 100 }, () => fail('203.0.113.2')))
  const statuses = many.map(({ status }) => status)
  assert.ok(statuses.every((status) => status === 401 || status === 429))
  const refused = await server.ask('/svc-login', form({ user, password }, from('203.0.113.2')))
  assert.equal(refused.status, 429)
  const seconds = Number(refused.headers['retry-after'])
  assert.ok(Number.isInteger(seconds) && seconds > 0 && seconds <= 60)
  says(refused, 429, `Too many failed logins. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`)
  assert.equal((await fail('203.0.113.3')).status, 401)
})
