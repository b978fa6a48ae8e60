// The second factor in several processes: each code once, and the count of wrong ones for all of them.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from '../../lib/config/load.ts'
import { makeRecoveryCodes } from '../../lib/access/recovery-codes.ts'
import { makeTotpSecret } from '../../lib/access/totp.ts'
import { startSeveral, type ProcessClient, type Reply } from '../cluster/several.ts'
import { credentials, password, user } from '../panel/panel-server.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { codeNow, ticketOf } from './second-factor-support.ts'
import { form } from './support.ts'

const { codes, hashes } = makeRecoveryCodes()
const secret = makeTotpSecret()
const config = {
  ...credentials,
  'admin.secret': 'random secret',
  'admin.totp': secret,
  'admin.recovery_codes': hashes,
  'server.trusted_proxies': ['127.0.0.1'],
}
const right = { user, password }

function post(client: ProcessClient, fields: Readonly<Record<string, string>>, from = '192.0.2.1'): Promise<Reply> {
  return client.ask('/svc-login', form(fields, { 'x-forwarded-for': from }))
}

describe('the second factor in two processes', () => {
  it('accepts each code and recovery code once, whichever process gets it, a restart included', async (t) => {
    const server = await startSeveral(t, 2, {}, config)
    const [one, two] = [...(await server.clients()).values()] as [ProcessClient, ProcessClient]
    const code = codeNow(secret)
    const [recovery = '', other = ''] = codes
    assert.equal((await post(one, { ...right, code })).status, 302)
    for (const client of [two, one]) assert.equal((await post(client, { ...right, code })).status, 401)
    assert.equal((await post(two, { ...right, code: recovery })).status, 302)
    for (const client of [one, two]) assert.equal((await post(client, { ...right, code: recovery })).status, 401)
    const answers = await Promise.all([one, two, one, two].map((client) => post(client, { ...right, code: other })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [302, 401, 401, 401])
    assert.deepEqual(loadConfig(join(server.folder, 'svc.json')).config['admin.recovery_codes'], hashes.slice(2))
    const records = readFileSync(join(server.folder, '.logs', 'audit.log'), 'utf8').trim().split('\n')
    const logins = records.map((line) => JSON.parse(line) as { what: string; to?: string }).filter(({ what }) => what === 'login')
    assert.deepEqual(logins.map(({ to }) => to), ['code', 'recovery code, 9 left', 'recovery code, 8 left'])

    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    const url = await launch(t, ['start'], { cwd: server.folder }).listening()
    for (const used of [code, recovery, other]) {
      assert.equal((await request(`${url}/svc-login`, form({ ...right, code: used }))).status, 401)
    }
  })

  it('takes a ticket of the other process, once', async (t) => {
    const server = await startSeveral(t, 2, {}, config)
    const [one, two] = [...(await server.clients()).values()] as [ProcessClient, ProcessClient]
    const ticket = ticketOf(await post(one, right))
    const again = await post(two, { ticket, code: 'wrong' })
    assert.equal(again.status, 401)
    assert.match((await post(one, { ticket, code: codeNow(secret) })).text, /The page for the code has expired/)
    const answer = await post(one, { ticket: ticketOf(again), code: codeNow(secret) })
    assert.deepEqual([answer.status, answer.location], [302, '/svc-status'])
  })

  it('ends the attempts after ten wrong codes of both together, from as many addresses', async (t) => {
    const server = await startSeveral(t, 2, {}, config)
    const clients = [...(await server.clients()).values()]
    const attempts = Array.from({ length: 16 }, (_, at) => {
      return post(clients[at % 2] as ProcessClient, { ...right, code: 'wrong' }, `198.51.100.${at}`)
    })
    const statuses = (await Promise.all(attempts)).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [...Array<number>(10).fill(401), ...Array<number>(6).fill(429)])
    for (const client of clients) assert.equal((await post(client, { ...right, code: codeNow(secret) })).status, 429)
  })
})
