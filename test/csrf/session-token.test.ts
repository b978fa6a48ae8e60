import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import type { TestAction } from '../support/context.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { openFileStore } from '../session-stores/file-store-support.ts'
import { createGate } from '../support/gate.ts'
import { request, type Answer } from '../support/request.ts'
import { cookieOf, serveForms, valueOf } from './form-server.ts'

const stores: Readonly<Record<string, (t: TestContext) => SessionStore>> = {
  memory: () => createMemoryStore({ max: 100, onFull: () => {} }),
  file: (t) => openFileStore(t).store,
}
const stateful = ['SVC_MwSession', 'SVC_MwCsrf']
const page: TestAction = ({ csrfInput }) => csrfInput()
const act: TestAction = (ctx) => (ctx.method === 'GET' ? ctx.csrfInput() : { changed: true })

for (const [name, open] of Object.entries(stores)) {
  describe(`the token of a session in the store ${name}`, () => {
    /** A server with pages that reply once two are requested, a sign-in, and a visitor with a session but no token. */
    async function serve(t: TestContext) {
      const gate = createGate(2)
      const signInBegan = new EventEmitter()
      const { url } = await serveForms(t, {
        store: open(t),
        routes: {
          '/form': [stateful, act],
          '/tab': [stateful, async (ctx) => (await gate(), ctx.csrfInput())],
          '/cart': [['SVC_MwSession'], ({ session }) => session.set('cart', 1)],
          '/sign-in': [['SVC_MwSession'], ({ session }) => {
            session.regenerate()
          }],
          '/sign-in-page': [stateful, (ctx) => {
            ctx.session.regenerate()
            return ctx.csrfInput()
          }],
          '/sign-in-late': [['SVC_MwSession'], async ({ session }) => {
            signInBegan.emit('begun')
            await gate()
            session.regenerate()
          }],
        },
      })
      let cookie = cookieOf(await request(`${url}/cart`)) ?? ''
      const visitor = {
        signInBegan: once(signInBegan, 'begun'),
        /** Requests a path with the cookie, and stores the cookie of the response. */
        async ask(path: string): Promise<Answer> {
          const answer = await request(url + path, { headers: { Cookie: cookie } })
          cookie = cookieOf(answer) ?? cookie
          return answer
        },
        async tokenOf(path: string): Promise<string> {
          return valueOf((await visitor.ask(path)).text)
        },
        /** The status of a form that is sent with this token. */
        async send(token: string): Promise<number> {
          const headers = { Cookie: cookie, 'X-CSRF-Token': token }
          return (await request(`${url}/form`, { method: 'POST', headers })).status
        },
      }
      return visitor
    }

    it('is the same for two pages that are opened at the same time', async (t) => {
      const visitor = await serve(t)
      const tokens = await Promise.all([visitor.tokenOf('/tab'), visitor.tokenOf('/tab')])
      assert.match(tokens[0], /^[A-Za-z0-9_-]{43}$/)
      assert.deepEqual(await Promise.all(tokens.map((token) => visitor.send(token))), [200, 200])
      assert.equal(await visitor.tokenOf('/form'), tokens[0])
    })

    it('is the same for two such pages after a sign-in, and different from before', async (t) => {
      const visitor = await serve(t)
      const before = await visitor.tokenOf('/form')
      await visitor.ask('/sign-in')
      const tokens = await Promise.all([visitor.tokenOf('/tab'), visitor.tokenOf('/tab')])
      assert.deepEqual(await Promise.all(tokens.map((token) => visitor.send(token))), [200, 200])
      assert.notEqual(tokens[0], before)
      assert.equal(await visitor.send(before), 403)
    })

    it('is different in a page of the request that signs in', async (t) => {
      const visitor = await serve(t)
      const before = await visitor.tokenOf('/form')
      const after = await visitor.tokenOf('/sign-in-page')
      assert.notEqual(after, before)
      assert.deepEqual([await visitor.send(after), await visitor.send(before)], [200, 403])
      assert.equal(await visitor.tokenOf('/form'), after)
    })

    it('is different even if a page of the old session is opened during the sign-in', async (t) => {
      const visitor = await serve(t)
      const signingIn = visitor.ask('/sign-in-late')
      await visitor.signInBegan
      const before = await visitor.tokenOf('/form')
      await Promise.all([signingIn, visitor.ask('/tab')])
      assert.equal(await visitor.send(before), 403)
      assert.notEqual(await visitor.tokenOf('/form'), before)
    })
  })
}

describe('the token of a session', () => {
  it('is random in a new session, and reveals nothing about the id in an existing one', async (t) => {
    const ids: string[] = []
    const { url } = await serveForms(t, {
      routes: {
        '/': [stateful, page],
        '/set': [['SVC_MwSession'], ({ session }) => session.set('a', 1)],
      },
    })
    const tokens = new Set<string>()
    for (const path of ['/', '/set', '/', '/set']) {
      const first = await request(url + path)
      const Cookie = cookieOf(first) ?? ''
      const token = valueOf((await request(url, { headers: { Cookie } })).text)
      if (path === '/') assert.equal(token, valueOf(first.text))
      tokens.add(token)
      ids.push(Cookie.slice('SVCSID='.length))
    }
    assert.equal(tokens.size, 4)
    assert.ok(ids.every((id) => id.length === 43 && !tokens.has(id)))
  })

  it('depends on app_key, and stays when that changes', async (t) => {
    const store = createMemoryStore({ max: 10, onFull: () => {} })
    const set: TestAction = ({ session }) => session.set('a', 1)
    const routes = { '/': [stateful, act], '/set': [['SVC_MwSession'], set] } as const
    const before = await serveForms(t, { store, routes, keys: ['may'] })
    const after = await serveForms(t, { store, routes, keys: ['june', 'may'] })
    const tokenOf = async (url: string, Cookie: string): Promise<string> =>
      valueOf((await request(url, { headers: { Cookie } })).text)
    const Cookie = cookieOf(await request(`${before.url}/set`)) ?? ''
    const token = await tokenOf(before.url, Cookie)
    assert.equal(await tokenOf(after.url, Cookie), token)
    const id = Cookie.slice('SVCSID='.length)
    store.merge(id, { set: new Map(), removed: new Set(['key:_csrf_token']) }, 60_000)
    assert.notEqual(await tokenOf(after.url, Cookie), token)
  })
})
