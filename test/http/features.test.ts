import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { createClientAddress } from '../../lib/http/client-address.ts'
import type { FullContext } from '../support/context.ts'
import { createContextClass, type Feature } from '../../lib/http/features.ts'

const services = { bodyLimitBytes: 1, clientAddress: createClientAddress([]) }

function contextOf(features: readonly Feature[], url = '/a?b=c') {
  const parts = createContextClass(features, services)
  const make = (): FullContext & Record<string, unknown> =>
    new parts.ContextClass({ method: 'GET', url, rawHeaders: [] } as unknown as IncomingMessage, {} as ServerResponse) as never
  return { ...parts, make }
}

describe('createContextClass', () => {
  it('creates a member on first use, caches it for that request, and returns it for its aliases', () => {
    let made = 0
    const { make } = contextOf([
      { name: 'one', members: [{ name: 'first', make: () => ({ number: ++made }) }] },
      { name: 'two', members: [{ name: 'second', aliases: ['USecond', 'Second2'], make: (ctx) => ({ path: ctx.path }) }] },
    ])
    const ctx = make()
    assert.equal(made, 0)
    assert.equal(ctx.first, ctx.first)
    assert.deepEqual(ctx.first, { number: 1 })
    assert.equal(ctx.USecond, ctx.second)
    assert.equal(ctx.Second2, ctx.second)
    assert.deepEqual(ctx.second, { path: '/a' })
    assert.deepEqual(make().first, { number: 2 })
  })

  it('caches undefined as a member too, but nothing if the maker throws', () => {
    let calls = 0
    const fails = (): never => {
      calls += 1
      throw new Error('not now')
    }
    const nothing = (): undefined => {
      calls += 1
    }
    const ctx = contextOf([{ name: 'f', members: [{ name: 'fails', make: fails }, { name: 'nothing', make: nothing }] }]).make()
    assert.throws(() => ctx.fails, /not now/)
    assert.throws(() => ctx.fails, /not now/)
    assert.equal(calls, 2)
    assert.equal(ctx.nothing, undefined)
    assert.equal(ctx.nothing, undefined)
    assert.equal(calls, 3)
  })

  it('refuses a taken name: of a feature, a method or a getter of the context', () => {
    const twice = { name: 'again', members: [{ name: 'x', make: () => 1 }] }
    assert.throws(() => createContextClass([twice, twice], services), {
      message: 'Feature again adds x to the context, which already has it',
    })
    for (const name of ['json', 'query', 'close', 'services', 'constructor']) {
      const feature = { name: 'bad', members: [{ name, make: () => 1 }] }
      assert.throws(() => createContextClass([feature], services), /which already has it/, name)
    }
    const alias = { name: 'bad', members: [{ name: 'fine', aliases: ['json'], make: () => 1 }] }
    assert.throws(() => createContextClass([alias], services), /adds json/)
  })

  it('isolates the contexts of two servers', () => {
    const first = contextOf([{ name: 'f', members: [{ name: 'extra', make: () => 1 }] }]).make()
    const second = contextOf([]).make()
    assert.equal(first.extra, 1)
    assert.equal('extra' in second, false)
  })
})

describe('the scope of views', () => {
  it('has the plain members, the context, and the exposed features, each read on demand', () => {
    let made = 0
    const make = (): string => `made ${++made}`
    const parts = contextOf([
      {
        name: 'f',
        members: [
          { name: 'shown', inViews: 'name', aliases: ['hiddenAlias'], make },
          { name: 'hidden', aliases: ['UShown'], inViews: 'aliases', make },
          { name: 'bare', make },
          { name: 'bareAliases', inViews: 'aliases', make },
        ],
      },
    ])
    const ctx = parts.make()
    const scope = parts.viewScope(ctx)
    const names: string[] = []
    for (const name in scope) names.push(name)
    assert.deepEqual(names, ['ctx', 'params', 'query', 'path', 'prefix', 'method', 'state', 'shown', 'UShown'])
    assert.equal(made, 0)
    assert.equal(scope['shown'], 'made 1')
    assert.equal(scope['UShown'], 'made 2')
    assert.equal(ctx.shown, 'made 1')
    assert.equal(scope['ctx'], ctx)
    assert.equal(scope['path'], '/a')
    assert.equal((scope['query'] as URLSearchParams).get('b'), 'c')
    assert.equal('constructor' in scope, false)
  })
})
