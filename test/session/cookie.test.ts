import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { TestAction } from '../support/context.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { createGate } from '../support/gate.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { idShape, sessionCookieOf, visit, type SessionServerOptions } from './session-server.ts'
import { contents } from '../session-stores/store-values.ts'
import { around } from './wrapped-store.ts'

const minute = 60_000

describe('the session cookie', () => {
  it('is set once something was written, not before', async (t) => {
    const { visitor, store } = await visit(t, {
      read: ({ session }) => [session.get('a'), session.has('_flash')],
      remove: ({ session }) => session.delete('a'),
      write: ({ session }) => session.set('a', 1),
    })
    assert.equal((await visitor.ask('read')).headers['set-cookie'], undefined)
    assert.equal((await visitor.ask('remove')).headers['set-cookie'], undefined)
    const answer = await visitor.ask('write')
    const { value = '', attributes } = sessionCookieOf(answer) ?? {}
    assert.match(value, idShape)
    assert.deepEqual(attributes, ['Max-Age=3600', 'Path=/', 'HttpOnly', 'SameSite=Lax'])
    assert.equal(answer.headers['cache-control'], 'private')
    assert.deepEqual(await contents(store, value), { 'key:a': '1' })
  })

  it('ends with the browser session if ttl_s is 0, and is then sent once', async (t) => {
    const write: TestAction = ({ session }) => session.set('a', 1)
    const { visitor, store } = await visit(t, { write }, { ttlS: 0, cookie: 'own' })
    const answer = await request(`${visitor.url}/write`)
    const { value = '', attributes } = sessionCookieOf(answer, 'own') ?? {}
    assert.deepEqual(attributes, ['Path=/', 'HttpOnly', 'SameSite=Lax'])
    assert.equal(Math.round(((await store.read(value))?.remainingMs ?? 0) / 1000), 86_400)
    const second = await request(`${visitor.url}/write`, { headers: { cookie: `own=${value}` } })
    assert.equal(second.headers['set-cookie'], undefined)
    assert.equal(second.headers['cache-control'], 'private')
  })

  it("keeps the application's cache settings and other cookies", async (t) => {
    const { visitor } = await visit(t, {
      write: (ctx) => {
        ctx.setHeader('Cache-Control', 'no-store')
        ctx.setCookie('SVCSID2', 'x')
        ctx.session.set('a', 1)
      },
      plain: () => 'x',
      read: ({ session }) => String(session.get('a')),
    })
    assert.equal((await visitor.ask('plain')).headers['cache-control'], undefined)
    const answer = await visitor.ask('write')
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.deepEqual(answer.headers['set-cookie']?.map((field) => field.split('=', 1)[0]), ['SVCSID2', 'SVCSID'])
    assert.equal((await visitor.ask('read')).headers['cache-control'], 'private')
  })

  const ignored: Readonly<Record<string, string>> = {
    empty: '',
    short: 'A'.repeat(42),
    long: 'A'.repeat(44),
    'of another alphabet': `${'A'.repeat(42)}+`,
    'of 8 KiB': 'A'.repeat(8192),
    'with an encoded NUL': `${'A'.repeat(42)}%00`,
    'that is a path': '../../../../../../../../../../../etc/passwd',
    'with a line break': `${'A'.repeat(42)}%0A`,
    'that is not UTF-8': `${'A'.repeat(42)}%ff`,
    'that is quoted and short': '"AAAA"',
  }
  for (const [kind, value] of Object.entries(ignored)) {
    it(`is ignored without a store access: ${kind}`, async (t) => {
      const asked: string[] = []
      const write: TestAction = ({ session }) => session.set('a', 1)
      const { visitor } = await visit(t, { write, read: () => 'x' }, noting(asked))
      const headers = { cookie: `SVCSID=${value}` }
      assert.equal((await request(`${visitor.url}/read`, { headers })).headers['set-cookie'], undefined)
      const given = sessionCookieOf(await request(`${visitor.url}/write`, { headers }))?.value ?? ''
      assert.match(given, idShape)
      assert.notEqual(given, value)
      assert.deepEqual(asked, ['create'])
    })
  }

  it('with a NUL is refused by the HTTP parser', async (t) => {
    const asked: string[] = []
    const { visitor } = await visit(t, { read: () => 'x' }, noting(asked))
    const bytes = `GET /read HTTP/1.1\r\nHost: h\r\nCookie: SVCSID=${'A'.repeat(42)}\u0000\r\n\r\n`
    assert.equal(parseAnswer(await exchange(Number(new URL(visitor.url).port), bytes)).status, 400)
    assert.deepEqual(asked, [])
  })

  it('with an unknown id is never adopted, nor expired', async (t) => {
    const { visitor, store } = await visit(t, { write: ({ session }) => session.set('a', 1), read: () => 'x' })
    const unknown = 'A'.repeat(43)
    visitor.id = unknown
    const read = await visitor.ask('read')
    assert.deepEqual([read.headers['set-cookie'], read.headers['cache-control']], [undefined, undefined])
    await visitor.ask('write')
    assert.notEqual(visitor.id, unknown)
    assert.equal(await store.read(unknown), undefined)
  })

  it('that is sent twice counts by the first with an existing session, whatever precedes it', async (t) => {
    const { visitor, store } = await visit(t, {
      enter: ({ session }) => {
        session.regenerate()
        session.set('a', 'entered')
      },
      write: ({ session, query }) => session.set('a', query.get('a')),
      read: ({ session }) => String(session.get('a', 'none')),
    })
    await visitor.ask('write?a=first')
    const first = visitor.id
    visitor.id = undefined
    await visitor.ask('write?a=second')
    const read = async (cookie: string) => (await request(`${visitor.url}/read`, { headers: { cookie } })).text
    assert.equal(await read(`SVCSID=${first}; SVCSID=${visitor.id}`), 'first')
    const gone = 'A'.repeat(43)
    for (const before of ['SVCSID=unknown', 'SVCSID=', `SVCSID=${gone}`, `SVCSID="${gone}"; a=b; SVCSID=x; SVCSID=${'B'.repeat(43)}`]) {
      assert.equal(await read(`${before}; SVCSID=${first}`), 'first', before)
      assert.equal(await read(before), 'none', before)
    }
    // Another sign-in gives the live session a new id, and keeps nothing of the other.
    const answer = await request(`${visitor.url}/enter`, { headers: { cookie: `SVCSID=${gone}; SVCSID=${first}` } })
    const entered = sessionCookieOf(answer)?.value
    assert.equal(await read(`SVCSID=${gone}; SVCSID=${entered}`), 'entered')
    assert.deepEqual([await store.read(gone), await store.read(String(first))], [undefined, undefined])
  })

  it('that is sent twice counts by the first with an existing session, in an asynchronous store too', async (t) => {
    const memory = createMemoryStore({ max: 10, onFull: () => {} })
    const store = around(memory, async (_call, work) => work())
    const { visitor } = await visit(
      t,
      { write: ({ session }) => session.set('a', 1), read: ({ session }) => String(session.get('a', 'none')) },
      { store },
    )
    await visitor.ask('write')
    const read = async (cookie: string) => (await request(`${visitor.url}/read`, { headers: { cookie } })).text
    const [one, two] = ['A'.repeat(43), 'B'.repeat(43)]
    assert.equal(await read(`SVCSID=${one}; SVCSID=${two}; SVCSID=${visitor.id}`), '1')
    assert.equal(await read(`SVCSID=${one}; SVCSID=${two}`), 'none')
  })

  it('that is sent many times accesses the store once per id', async (t) => {
    const asked: string[] = []
    const { visitor } = await visit(t, { read: () => 'x' }, noting(asked))
    const ids = ['A', 'B', 'A', 'C', 'B'].map((letter) => letter.repeat(43))
    const cookie = ids.map((id) => `SVCSID=${id}`).join('; ')
    assert.equal((await request(`${visitor.url}/read`, { headers: { cookie } })).status, 200)
    assert.deepEqual(asked, ['read', 'read', 'read'])
  })
})

describe('the time to live', () => {
  const actions: Readonly<Record<string, TestAction>> = {
    write: ({ session }) => session.set('a', 1),
    read: ({ session }) => String(session.get('a', 'none')),
    twice: async ({ session }) => {
      session.set('a', 1)
      await session.save()
      session.set('a', 2)
    },
  }

  /** A visitor whose session lives 600 s, and the store's clock. */
  async function visitWithClock(t: TestContext) {
    const clock = { ms: 0 }
    const store = createMemoryStore({ max: 10, onFull: () => {}, now: () => clock.ms })
    return { clock, ...(await visit(t, actions, { store, ttlS: 600 })) }
  }

  for (const path of ['read', 'write', 'twice']) {
    it(`is renewed, with the cookie, when less than nine tenths are left: ${path}`, async (t) => {
      const { clock, visitor, store } = await visitWithClock(t)
      await visitor.ask('write')
      clock.ms += minute
      const early = await visitor.ask(path)
      assert.deepEqual([early.headers['set-cookie'], await left(store, visitor.id)], [undefined, 540])
      clock.ms += 1
      const late = await visitor.ask(path)
      assert.equal(sessionCookieOf(late)?.value, visitor.id)
      assert.deepEqual([sessionCookieOf(late)?.attributes[0], await left(store, visitor.id)], ['Max-Age=600', 600])
      clock.ms += 599_999
      await visitor.ask(path)
      assert.equal(await left(store, visitor.id), 600)
      clock.ms += 600_000
      assert.equal((await visitor.ask('read')).text, 'none')
    })
  }

  it('is the same in store and cookie, however often something is written', async (t) => {
    const { clock, visitor, store } = await visitWithClock(t)
    let cookieEndsMs = 0
    for (let round = 0; round < 60; round += 1) {
      const answer = await visitor.ask('write')
      if (sessionCookieOf(answer) !== undefined) cookieEndsMs = clock.ms + 600_000
      assert.equal(await left(store, visitor.id), Math.round((cookieEndsMs - clock.ms) / 1000))
      clock.ms += 25_000
      assert.ok(cookieEndsMs > clock.ms, 'the browser still has the cookie')
    }
  })

  it('is not renewed by a late response, which has no cookie: it would restore an old id', async (t) => {
    const gate = createGate(2)
    const { visitor } = await visit(t, {
      write: ({ session }) => session.set('a', 1),
      slow: async ({ session }) => {
        session.set('slow', 1)
        await session.save()
        await gate()
      },
      sign: async ({ session }) => {
        await gate()
        session.regenerate()
      },
      read: ({ session }) => [session.get('a'), session.get('slow')],
    })
    await visitor.ask('write')
    const before = visitor.id
    const slow = request(`${visitor.url}/slow`, { headers: { cookie: `SVCSID=${before}` } })
    await visitor.ask('sign')
    assert.notEqual(visitor.id, before)
    assert.equal((await slow).headers['set-cookie'], undefined)
    assert.deepEqual(await visitor.json('read'), [1, 1])
  })
})

/** The seconds that a session has left, as an integer. */
async function left(store: SessionStore, id: string | undefined): Promise<number> {
  return Math.round(((await store.read(id ?? ''))?.remainingMs ?? 0) / 1000)
}

/** A store that records its calls. */
function noting(asked: string[]): SessionServerOptions {
  const store = createMemoryStore({ max: 10, onFull: () => {} })
  return { store: around(store, (call, work) => (asked.push(call), work())) }
}
