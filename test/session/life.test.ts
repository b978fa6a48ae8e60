import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TestAction } from '../support/context.ts'
import { createGate } from '../support/gate.ts'
import { request } from '../support/request.ts'
import { idShape, sessionCookieOf, visit } from './session-server.ts'
import { contents } from '../session-stores/store-values.ts'

describe('destroy', () => {
  const actions: Readonly<Record<string, TestAction>> = {
    write: ({ session }) => {
      session.set('a', 1)
      session.setFlashBag('f', { x: 1 })
    },
    destroy: ({ session }) => {
      session.set('b', 1)
      session.destroy()
      return [session.has('a'), session.has('b'), session.has('_flash')]
    },
    both: ({ session }) => {
      session.regenerate()
      session.destroy()
      session.set('c', 1)
    },
    saved: async ({ session }) => {
      session.destroy()
      await session.save()
      await session.save()
      session.set('d', 1)
    },
    brief: async ({ session }) => {
      session.set('e', 1)
      await session.save()
      session.destroy()
    },
  }

  it('ends the session, with its flash, and expires the cookie', async (t) => {
    const { visitor, store } = await visit(t, actions)
    await visitor.ask('write')
    const id = visitor.id as string
    const answer = await visitor.ask('destroy')
    assert.deepEqual(answer.json(), [false, false, false])
    assert.deepEqual(sessionCookieOf(answer), {
      value: '',
      attributes: ['Max-Age=0', 'Path=/', 'HttpOnly', 'SameSite=Lax'],
    })
    assert.equal(await store.read(id), undefined)
  })

  it('lets later values begin a new session', async (t) => {
    const { visitor, store } = await visit(t, actions)
    for (const [path, field] of [['both', 'key:c'], ['saved', 'key:d']] as const) {
      await visitor.ask('write')
      const id = visitor.id as string
      await visitor.ask(path)
      assert.equal(await store.read(id), undefined)
      assert.notEqual(visitor.id, id)
      assert.deepEqual(await contents(store, visitor.id), { [field]: '1' })
    }
  })

  it('expires a worthless cookie, and sends none to a client without one', async (t) => {
    const { visitor } = await visit(t, actions)
    assert.equal((await visitor.ask('destroy')).headers['set-cookie'], undefined)
    visitor.id = 'A'.repeat(43)
    assert.equal(sessionCookieOf(await visitor.ask('destroy'))?.value, '')
    visitor.id = 'other'
    assert.equal(sessionCookieOf(await visitor.ask('destroy'))?.value, '')
    assert.equal(sessionCookieOf(await visitor.ask('brief'))?.value, '')
  })
})

describe('regenerate', () => {
  const actions: Readonly<Record<string, TestAction>> = {
    write: ({ session }) => session.set('a', 1),
    sign: ({ session }) => {
      session.set('user', 7)
      session.regenerate()
    },
    new: ({ session }) => {
      session.regenerate()
      session.set('b', 1)
    },
    only: ({ session }) => session.regenerate(),
    twice: async ({ session }) => {
      session.regenerate()
      await session.save()
      session.regenerate()
    },
    savedFirst: async ({ session }) => {
      session.set('user', 7)
      await session.save()
      session.regenerate()
    },
  }

  it('gives a new id and keeps the content; the old id is worthless', async (t) => {
    const { visitor, store } = await visit(t, actions)
    await visitor.ask('write')
    for (const path of ['sign', 'only', 'twice']) {
      const id = visitor.id as string
      const answer = await visitor.ask(path)
      assert.match(sessionCookieOf(answer)?.value ?? '', idShape)
      assert.notEqual(visitor.id, id)
      assert.equal(await store.read(id), undefined)
      assert.deepEqual(await contents(store, visitor.id), { 'key:a': '1', 'key:user': '7' })
    }
  })

  it('creates no session if nothing is set, and a new one if there was none', async (t) => {
    const { visitor, store } = await visit(t, actions)
    assert.equal((await visitor.ask('only')).headers['set-cookie'], undefined)
    await visitor.ask('new')
    assert.deepEqual(await contents(store, visitor.id), { 'key:b': '1' })
  })

  for (const path of ['sign', 'savedFirst']) {
    it(`called twice at the same time: both sign-ins succeed, nothing else is copied twice (${path})`, async (t) => {
      const gate = createGate(2)
      const { visitor, store } = await visit(t, {
        ...actions,
        [path]: async (ctx) => {
          await (actions[path] as TestAction)(ctx)
          await gate()
        },
      })
      await visitor.ask('write')
      const cookie = `SVCSID=${visitor.id}`
      const answers = await Promise.all([1, 2].map(() => request(`${visitor.url}/${path}`, { headers: { cookie } })))
      const ids = answers.map((answer) => sessionCookieOf(answer)?.value as string)
      const found = await Promise.all(ids.map((id) => contents(store, id)))
      found.sort((one, other) => Object.keys(other ?? {}).length - Object.keys(one ?? {}).length)
      assert.deepEqual(found, [{ 'key:a': '1', 'key:user': '7' }, { 'key:user': '7' }])
    })
  }

  it('that comes too late and has set nothing begins no session', async (t) => {
    const { visitor, store } = await visit(t, {
      ...actions,
      late: async (ctx) => {
        ctx.session.regenerate()
        await store.destroy(ctx.cookies['SVCSID'] as string)
      },
    })
    await visitor.ask('write')
    assert.equal((await visitor.ask('late')).headers['set-cookie'], undefined)
  })
})

describe('a session that ends while a request runs', () => {
  it('is not restored by its save; the cookie is left to the request that ended it', async (t) => {
    const { visitor, store, failures } = await visit(t, {
      write: ({ session }) => session.set('a', 1),
      late: async (ctx) => {
        ctx.session.set('b', 2)
        await store.destroy(ctx.cookies['SVCSID'] as string)
      },
      lateAndOn: async (ctx) => {
        ctx.session.set('b', 2)
        await store.destroy(ctx.cookies['SVCSID'] as string)
        await ctx.session.save()
        const rest = [ctx.session.has('a'), ctx.session.has('b')]
        ctx.session.set('c', 3)
        return rest
      },
    })
    await visitor.ask('write')
    const id = visitor.id as string
    assert.equal((await visitor.ask('late')).headers['set-cookie'], undefined)
    assert.equal(await store.read(id), undefined)

    visitor.id = undefined
    await visitor.ask('write')
    assert.deepEqual(await visitor.json('lateAndOn'), [false, false])
    assert.deepEqual(await contents(store, visitor.id), { 'key:c': '3' })
    assert.deepEqual(failures, [])
  })
})
