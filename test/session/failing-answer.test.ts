// The session cookie of a request that fails after the session was saved.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

const files = {
  'routes/a.json': [
    { name: 'in', url: '/in', action: 'a.mjs@begin', middleware: 'SVC_MwSession' },
    { name: 'late', url: '/late', action: 'a.mjs@renew', middleware: 'failing,SVC_MwSession' },
    { name: 'saved', url: '/saved', action: 'a.mjs@renewAndFail', middleware: 'SVC_MwSession' },
    { name: 'early', url: '/early', action: 'a.mjs@setAndFail', middleware: 'SVC_MwSession' },
    { name: 'who', url: '/who', action: 'a.mjs@who', middleware: 'SVC_MwSession' },
  ],
  'a.mjs': `export const begin = ({ session }) => { session.set('user', 'Ada'); return 'in' }
    export const renew = (ctx) => { ctx.session.regenerate(); ctx.setCookie('other', '1'); return 'renewed' }
    export const renewAndFail = async (ctx) => { await renew(ctx), await ctx.session.save(); throw new Error('too late') }
    export const setAndFail = ({ session }) => { session.set('user', 'Eve'); throw new Error('too early') }
    export const who = ({ session }) => ({ user: session.get('user', null) })`,
  'routes/middleware/config.json': { load: ['m.mjs'] },
  'routes/middleware/m.mjs': `export const failing = async (ctx, next) => { await next(); throw new Error('after all') }`,
}

it('sends the new id with a 500 if the session was saved, and no other cookie', async (t) => {
  const { url } = await startApplication(t, files)
  for (const path of ['/late', '/saved']) {
    const before = cookiesOf(await request(`${url}/in`))
    const failed = await request(url + path, { headers: { Cookie: before.join('; ') } })
    const after = cookiesOf(failed)
    assert.deepEqual([failed.status, after.length], [500, 1], path)
    assert.notDeepEqual(after, before)
    const who = await request(`${url}/who`, { headers: { Cookie: after.join('; ') } })
    assert.deepEqual(who.json(), { user: 'Ada' })
  }
})

it('sends no cookie with a 500 if the session was not saved', async (t) => {
  const { url } = await startApplication(t, files)
  const before = cookiesOf(await request(`${url}/in`))
  for (const Cookie of ['', before.join('; ')]) {
    const failed = await request(`${url}/early`, { headers: { Cookie } })
    assert.deepEqual([failed.status, cookiesOf(failed)], [500, []])
  }
  assert.deepEqual((await request(`${url}/who`, { headers: { Cookie: before.join('; ') } })).json(), { user: 'Ada' })
})

function cookiesOf({ headers }: { headers: { 'set-cookie'?: string[] | undefined } }): string[] {
  return (headers['set-cookie'] ?? []).map((cookie) => cookie.split(';')[0] ?? '')
}
