import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FullContext } from '../support/context.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import { runWithSession } from '../../lib/session/feature.ts'
import { OpenReplies } from '../../lib/session/open-replies.ts'
import { Session } from '../../lib/session/session.ts'
import { fields, id } from '../session-stores/store-values.ts'

/** A context whose session is in a store in memory, with the other members that a session uses. */
function makeContext(): FullContext {
  const store = createMemoryStore({ max: 10, onFull: () => {} })
  store.create(id(1), fields({ 'key:a': '1' }), 60_000)
  const services = { cookie: 'SVCSID', ttlS: 60, store, saved: () => {}, openReplies: new OpenReplies() }
  const ctx = {
    header: (name: string) => (name === 'cookie' ? `SVCSID=${id(1)}` : undefined),
    outgoing: { fill: () => {} },
    outgoingIfAny: undefined,
    response: { headersSent: false },
    setCookie: () => {},
  } as unknown as FullContext // a stand-in with the members that a session uses
  return Object.assign(ctx, { session: new Session(ctx, services) })
}

describe('SVC_MwSession', () => {
  it('throws synchronously if the chain does', () => {
    const ctx = makeContext()
    const error = new Error('broken')
    assert.throws(
      () =>
        runWithSession(ctx, () => {
          throw error
        }),
      error,
    )
  })

  it('does nothing the second time', () => {
    const ctx = makeContext()
    const order: string[] = []
    runWithSession(ctx, () => {
      const inner = runWithSession(ctx, () => void order.push(String(ctx.session.get('a'))))
      assert.equal(inner, undefined)
      ctx.session.set('a', 2)
    })
    assert.deepEqual(order, ['1'])
    assert.equal(ctx.session.get('a'), 2)
  })
})
