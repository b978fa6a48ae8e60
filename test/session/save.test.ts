import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import type { TestAction } from '../support/context.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { visit } from './session-server.ts'
import { contents } from '../session-stores/store-values.ts'
import { around } from './wrapped-store.ts'

describe('save', () => {
  it('writes at once, and the response has one cookie', async (t) => {
    const { visitor, store, saves } = await visit(t, {
      write: async (ctx) => {
        ctx.session.set('a', 1)
        await ctx.session.save()
        assert.equal(saves(), 1)
        ctx.session.set('b', 2)
        await ctx.session.save()
        await ctx.session.save()
        assert.equal(saves(), 2)
        ctx.session.regenerate()
      },
    })
    await visitor.ask('write')
    assert.equal(saves(), 3)
    assert.deepEqual(await contents(store, visitor.id), { 'key:a': '1', 'key:b': '2' })
  })

  it('need not be awaited: the end of the request waits, and nothing is written twice', async (t) => {
    const memory = createMemoryStore({ max: 10, onFull: () => {} })
    const slow = delayed(memory)
    const { visitor, saves } = await visit(
      t,
      {
        write: ({ session }) => {
          session.set('a', 1)
          void session.save()
          session.set('a', 2)
          void session.save()
          session.set('b', 1)
          void session.save()
        },
        read: ({ session }) => [session.get('a'), session.get('b')],
        end: ({ session }) => {
          session.set('c', 1)
          void session.save()
          session.destroy()
        },
      },
      { store: slow },
    )
    await visitor.ask('write')
    assert.equal(saves(), 2)
    assert.deepEqual(await visitor.json('read'), [2, 1])
    const id = visitor.id as string
    await visitor.ask('end')
    assert.equal(memory.read(id), undefined)
    await visitor.ask('end')
    assert.equal(visitor.id, undefined)
  })

  it('keeps values that are set while its own session is ended', async (t) => {
    const memory = createMemoryStore({ max: 10, onFull: () => {} })
    const { visitor } = await visit(
      t,
      {
        write: ({ session }) => session.set('a', 1),
        end: (ctx) => {
          memory.destroy(ctx.cookies['SVCSID'] as string)
          ctx.session.set('b', 1)
          void ctx.session.save()
          ctx.session.destroy()
          ctx.session.set('c', 1)
        },
      },
      { store: delayed(memory) },
    )
    await visitor.ask('write')
    await visitor.ask('end')
    assert.deepEqual(await contents(memory, visitor.id), { 'key:c': '1' })
  })

  it('is needed for values set after the response, and fails if a new id can no longer be sent', async (t) => {
    const outcomes: Promise<unknown>[] = []
    const { visitor, store } = await visit(t, {
      write: ({ session }) => session.set('a', 1),
      later: ({ session, query, response }) => {
        const work = async (): Promise<void> => {
          await once(response, 'close')
          if (query.has('renew')) session.regenerate()
          session.set('late', 1)
          await session.save()
        }
        outcomes.push(work().catch((error: unknown) => error))
        return 'x'
      },
    })
    const reason = 'its new id needs a header field, and the headers have been sent'
    const refusal = new Error(`Cannot save the session: ${reason}`)
    await visitor.ask('later')
    assert.deepEqual(await outcomes.pop(), refusal)
    await visitor.ask('write')
    await visitor.ask('later')
    assert.equal(await outcomes.pop(), undefined)
    const id = visitor.id as string
    assert.deepEqual(await contents(store, id), { 'key:a': '1', 'key:late': '1' })
    await visitor.ask('later?renew')
    assert.deepEqual(await outcomes.pop(), refusal)
    assert.deepEqual(await contents(store, id), { 'key:a': '1', 'key:late': '1' })
  })
})

describe('a chain that throws', () => {
  const actions: Readonly<Record<string, TestAction>> = {
    write: ({ session }) => session.set('a', 1),
    meant: (ctx) => {
      ctx.session.set('b', 1)
      throw new HttpError(422, 'wrong', 'no')
    },
    meantLater: async (ctx) => {
      await Promise.resolve()
      ctx.session.set('b', 1)
      ctx.fail(401, 'wrong', 'no')
    },
    wrong: (ctx) => {
      ctx.session.set('b', 1)
      throw new Error('broken')
    },
    wrongLater: async (ctx) => {
      await Promise.resolve()
      ctx.session.set('b', 1)
      ctx.fail(503, 'busy', 'no')
    },
  }
  for (const [path, status] of [['meant', 422], ['meantLater', 401]] as const) {
    it(`with an intended response saves the session: ${path}`, async (t) => {
      const { visitor, store } = await visit(t, actions)
      assert.equal((await visitor.ask(path)).status, status)
      assert.deepEqual(await contents(store, visitor.id), { 'key:b': '1' })
    })
  }
  for (const [path, status] of [['wrong', 500], ['wrongLater', 503]] as const) {
    it(`with a failure drops its changes: ${path}`, async (t) => {
      const { visitor, store, saves } = await visit(t, actions)
      const answer = await visitor.ask(path)
      assert.deepEqual([answer.status, answer.headers['set-cookie'], saves()], [status, undefined, 0])
      await visitor.ask('write')
      await visitor.ask(path)
      assert.deepEqual(await contents(store, visitor.id), { 'key:a': '1' })
    })
  }
})

describe('a failing store', () => {
  const actions: Readonly<Record<string, TestAction>> = {
    write: ({ session, query }) => session.set(query.get('key') ?? 'a', 1),
    sign: ({ session }) => session.regenerate(),
    destroy: ({ session }) => session.destroy(),
    meant: ({ session, fail }) => {
      session.set('b', 1)
      fail(422, 'wrong', 'no')
    },
    caught: async ({ session }) => {
      session.set('b', 1)
      await assert.rejects(session.save(), /refused by the test/)
      return 'x'
    },
    unawaited: ({ session }) => {
      session.set('b', 1)
      void session.save()
    },
    read: ({ session }) => [session.has('a'), session.has('b')],
  }
  for (const mode of ['sync', 'async'] as const) {
    it(`causes a 500, and nothing is half-written (${mode})`, async (t) => {
      const failing = new Set<string>()
      const memory = createMemoryStore({ max: 10, onFull: () => {} })
      const store = faulty(memory, failing, mode)
      const { visitor, failures } = await visit(t, actions, { store })
      const fails = async (path: string): Promise<void> => {
        const answer = await visitor.ask(path)
        assert.deepEqual([path, answer.status, answer.headers['set-cookie']], [path, 500, undefined])
        assert.match(String(failures.pop()), /refused by the test/)
      }
      failing.add('create')
      await fails('write')
      failing.clear()
      await visitor.ask('write')
      const id = visitor.id as string

      for (const call of ['merge', 'rename', 'destroy']) failing.add(call)
      for (const path of ['write', 'sign', 'destroy', 'meant', 'caught', 'unawaited']) await fails(path)
      failing.add('read')
      await fails('read')
      failing.clear()
      assert.deepEqual(await visitor.json('read'), [true, false])
      assert.deepEqual(await contents(memory, id), { 'key:a': '1' })
    })
  }

  it('once is retried at the end of the request', async (t) => {
    const failing = new Set(['create'])
    const store = faulty(createMemoryStore({ max: 10, onFull: () => {} }), failing, 'async')
    const { visitor } = await visit(
      t,
      {
        caught: async ({ session }) => {
          session.set('b', 1)
          await assert.rejects(session.save(), /refused by the test/)
          failing.clear()
          return 'x'
        },
      },
      { store },
    )
    assert.equal((await visitor.ask('caught')).text, 'x')
    assert.deepEqual(await contents(store, visitor.id), { 'key:b': '1' })
  })
})

/** A store that answers one turn of the event loop later. */
function delayed(store: SessionStore): SessionStore {
  return around(store, async (_call, work) => {
    await new Promise((resolve) => setImmediate(resolve))
    return work()
  })
}

function faulty(store: SessionStore, failing: ReadonlySet<string>, mode: 'sync' | 'async'): SessionStore {
  const answer = (call: string, work: () => unknown): unknown => {
    if (failing.has(call)) throw new Error(`refused by the test: ${call}`)
    return work()
  }
  return around(store, mode === 'sync' ? answer : async (call, work) => answer(call, work))
}
