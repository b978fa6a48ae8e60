// The open replies of a session end with it: streams, polls, holds and WebSockets.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { startApplication, type TestApplication } from '../support/application.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { openWebSocket } from '../support/websocket.ts'

const files = {
  'routes/a.json': {
    defaults: { middleware: 'SVC_MwSession' },
    routes: [
      ...['begin', 'enter', 'leave', 'destroy', 'renew', 'who', 'nobody', 'sse', 'poll', 'hold', 'stream'].map((name) => ({
        name, url: `/${name}`, action: `a.mjs@${name}`,
      })),
      { name: 'ws', url: '/ws', action: 'ws.mjs' },
      { name: 'open', url: '/open', action: 'a.mjs@sse', defaults: false },
    ],
  },
  'a.mjs': `
    export const begin = ({ session }) => (session.set('a', 1), session.set('_csrf_token', 'known'), 'begun')
    export const enter = ({ signIn }) => (signIn({ id: 7 }), 'in')
    export const leave = ({ signOut, flash }) => (signOut(), 'out')
    export const destroy = ({ session }) => (session.destroy(), 'gone')
    export const renew = ({ session }) => (session.regenerate(), 'renewed')
    export const who = ({ session }) => ({ user: session.get('_auth_user') ?? null, a: session.get('a') ?? null, token: session.get('_csrf_token') ?? null })
    export const nobody = ({ signIn }) => signIn('')
    export const sse = ({ sse, channel }) => sse(channel('a'))
    export const poll = ({ longPoll, queue }) => longPoll(queue('a'), { timeout_s: 600 })
    export const hold = ({ hold }) => hold((signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('cut short'))))
    export async function* stream() { yield 'x'.repeat(70000); await new Promise(() => {}) }`,
  'ws.mjs': `
    export const websocket = { open: (ws) => ws.send('open'), message: (ws, text) => ws.send(text) }
    export default () => 'no WebSocket'`,
}

/** A visitor with a session. */
async function visit(url: string, from = 'begin'): Promise<string> {
  return cookieOf((await request(`${url}/${from}`)).headers['set-cookie'])
}

const cookieOf = (fields: readonly string[] | undefined): string => fields?.[0]?.split(';')[0] ?? ''

/** Opens a reply that stays open. Resolves when its header section has arrived, or it waits at the server. */
function open(url: string, path: string, cookie: string): { answer: Promise<IncomingMessage>; ended: Promise<string> } {
  const sent = get(url + path, { headers: { cookie }, agent: false })
  const answer = once(sent, 'response').then(([response]) => response as IncomingMessage)
  const ended = answer.then(async (response) => {
    let text = ''
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    response.on('error', () => {}) // The application's own stream is cut.
    await new Promise((resolve) => response.once('close', resolve))
    return text
  })
  return { answer, ended }
}

async function busy({ url }: TestApplication, sse: number, polls: number): Promise<void> {
  await until(async () => {
    const { pool_rest: pool } = (await request(`${url}/svc-status`)).json() as { pool_rest: { sse: number; longpoll: number } }
    return pool.sse === sse && pool.longpoll === polls
  })
}

const start = (t: TestContext, more: Readonly<Record<string, unknown>> = {}): Promise<TestApplication> =>
  startApplication(t, { ...files, ...more }, { 'app.env': 'dev' })

describe('the open replies of a session', () => {
  for (const [how, path] of [['signOut()', '/leave'], ['session.destroy()', '/destroy'], ['signIn()', '/enter'], ['session.regenerate()', '/renew']] as const) {
    it(`end at ${how}, without affecting other sessions`, async (t) => {
      const server = await start(t)
      const { url, port } = server
      const [ann, bob] = [await visit(url), await visit(url)]
      const ws = await openWebSocket(t, port, '/ws', [`Cookie: ${ann}`])
      const bobs = await openWebSocket(t, port, '/ws', [`Cookie: ${bob}`])
      const ended = ['/sse', '/poll', '/hold', '/stream'].map((opened) => open(url, opened, ann).ended)
      const kept = [open(url, '/sse', bob), open(url, '/open', ann)]
      const left = new Set<unknown>(kept)
      for (const one of kept) void one.ended.then(() => left.delete(one))
      await busy(server, 4, 2)

      assert.equal((await request(url + path, { headers: { cookie: ann } })).status, 200)
      const [stream = '', poll, hold, iterable = ''] = await Promise.all(ended)
      assert.match(stream, /^retry: 2000\n/)
      assert.deepEqual([poll, hold, iterable.length], ['{"ok":true,"event":null}', 'cut short', 70000])
      assert.equal(await ws.hear(), 'open')
      assert.deepEqual(await ws.closing(), [1008, 'The session has ended'])
      await busy(server, 2, 0)
      assert.equal(left.size, 2)
      bobs.say('still there')
      assert.deepEqual([await bobs.hear(), await bobs.hear()], ['open', 'still there'])
    })
  }

  it('may be opened again under the new id, and by a visitor without a session', async (t) => {
    const server = await start(t)
    const { url } = server
    const cookie = cookieOf((await request(`${url}/enter`, { headers: { cookie: await visit(url) } })).headers['set-cookie'])
    const opened = [open(url, '/sse', cookie), open(url, '/sse', '')]
    for (const { answer } of opened) assert.equal((await answer).statusCode, 200)
    await busy(server, 2, 0)
    await request(`${url}/leave`, { headers: { cookie } })
    await opened[0]?.ended
    await busy(server, 1, 0)
  })

  for (const [what, changes] of [['reads', ''], ['changes', "session.set('b', 2)"]] as const) {
    it(`end too if a request that ${what} the session began before the end and opens its reply after it`, async (t) => {
      const server = await start(t, {
        'routes/slow.json': [{ name: 'slow', url: '/slow', action: 'slow.mjs', middleware: 'SVC_MwSession' }],
        'slow.mjs': `
          export default async ({ sse, channel, session }) => {
            process.emit('svc-open-replies')
            await new Promise((resolve) => process.once('svc-open-replies-go', resolve))
            ${changes}
            return sse(channel('a'))
          }`,
      })
      const { url } = server
      const cookie = await visit(url)
      const began = new Promise((resolve) => process.once('svc-open-replies' as 'SIGUSR2', resolve)) // Any name will do.
      const { ended } = open(url, '/slow', cookie)
      await began
      await request(`${url}/leave`, { headers: { cookie } })
      process.emit('svc-open-replies-go' as 'SIGUSR2')
      await ended
      await busy(server, 0, 0)
    })
  }
})

describe('ctx.signIn and ctx.signOut', () => {
  it('renew the session with the user in it and without its CSRF token, and end it', async (t) => {
    const { url } = await start(t, { 'routes/middleware/config.json': { setup: { auth: { user_key: '_auth_user' } } } })
    const before = await visit(url)
    const answer = await request(`${url}/enter`, { headers: { cookie: before } })
    const after = cookieOf(answer.headers['set-cookie'])
    assert.notEqual(after, before)
    const who = async (cookie: string): Promise<unknown> => (await request(`${url}/who`, { headers: { cookie } })).json()
    assert.deepEqual(await who(after), { user: { id: 7 }, a: 1, token: null })
    assert.deepEqual(await who(before), { user: null, a: null, token: null })
    const out = await request(`${url}/leave`, { headers: { cookie: after } })
    assert.match(String(out.headers['set-cookie']), /^SVCSID=; .*Max-Age=0/)
    assert.deepEqual(await who(after), { user: null, a: null, token: null })
  })

  it('keep nothing if signOut() comes before signIn()', async (t) => {
    const { url } = await start(t, {
      'routes/anew.json': [{ name: 'anew', url: '/anew', action: 'anew.mjs', middleware: 'SVC_MwSession' }],
      'anew.mjs': 'export default ({ signIn, signOut }) => (signOut(), signIn(7), "anew")',
    })
    const before = await visit(url)
    const cookie = cookieOf((await request(`${url}/anew`, { headers: { cookie: before } })).headers['set-cookie'])
    assert.notEqual(cookie, before)
    const who = (await request(`${url}/who`, { headers: { cookie } })).json()
    assert.deepEqual(who, { user: 7, a: null, token: null })
  })

  it('set the key configured by setup.auth', async (t) => {
    const { url } = await start(t, {
      'routes/middleware/config.json': { setup: { auth: { user_key: 'me' } } },
      'routes/me.json': [{ name: 'me', url: '/me', action: 'me.mjs', middleware: 'SVC_MwSession, SVC_MwIsAuth' }],
      'me.mjs': 'export default ({ state }) => state.user',
    })
    const cookie = cookieOf((await request(`${url}/enter`)).headers['set-cookie'])
    assert.deepEqual((await request(`${url}/me`, { headers: { cookie } })).json(), { id: 7 })
  })

  it('refuse a user that was not awaited, and leave the session unchanged', async (t) => {
    const { url, lines } = await start(t, {
      'routes/soon.json': [{ name: 'soon', url: '/soon', action: 'soon.mjs', middleware: 'SVC_MwSession' }],
      'soon.mjs': 'export default ({ signIn }) => signIn(Promise.resolve(undefined))',
    })
    const answer = await request(`${url}/soon`)
    assert.deepEqual([answer.status, answer.headers['set-cookie']], [500, undefined])
    assert.match(lines().join('\n'), /Cannot sign in: JSON cannot hold the user: it is a promise: await it/)
  })

  it('refuse an empty user, and a route without a session', async (t) => {
    const { url, lines } = await start(t, {
      'routes/bare.json': [{ name: 'bare', url: '/bare', action: 'a.mjs@enter' }],
    })
    const cookie = await visit(url)
    assert.equal((await request(`${url}/nobody`, { headers: { cookie } })).status, 500)
    assert.equal((await request(`${url}/who`, { headers: { cookie } })).status, 200)
    assert.equal((await request(`${url}/bare`)).status, 500)
    const text = lines().join('\n')
    assert.match(text, /Cannot sign in: "" names no user: give a name or an id/)
    assert.match(text, /This route has no session: add SVC_MwSession/)
  })
})
