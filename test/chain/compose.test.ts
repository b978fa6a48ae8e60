import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import type { FullContext } from '../support/context.ts'
import { BodyReply, type Reply } from '../../lib/http/reply.ts'
import { compose, type Action, type Middleware } from '../../lib/chain/compose.ts'
import { replyOf } from '../../lib/http/returned.ts'

/** The parts of a context that a chain uses. */
function makeContext(): FullContext {
  const ctx = {
    path: '/',
    reply: undefined as Reply | undefined,
    currentReply: () => {
      if (ctx.reply === undefined) throw new HttpError(404, 'not_found', 'nobody')
      return ctx.reply
    },
  }
  return ctx as unknown as FullContext // a stand-in with the members that compose.ts uses
}

function chainOf(
  layers: readonly Middleware[],
  action: Action,
  late: (error: unknown) => void = refuse,
  misuse: (message: string) => void = () => {},
) {
  const named = layers.map((run, at) => ({ name: `layer${at}`, run }))
  return compose(named, action, {
    late: (_ctx, error) => late(error),
    misuse: (_ctx, message) => misuse(message),
  })
}

function refuse(error: unknown): never {
  assert.fail(String(error))
}

/** Returns the text of the reply, whether the chain is synchronous or not. */
async function textOf(outcome: Reply | Promise<Reply>): Promise<string> {
  const reply = await outcome
  return reply instanceof BodyReply ? String(reply.body) : assert.fail('no body')
}

const reject = (message: string) => () => Promise.reject(new Error(message))
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('a chain', () => {
  it('runs the layers in order, outermost first, and unwinds them in reverse', async () => {
    const steps: string[] = []
    const layer = (name: string): Middleware => async (_ctx, next) => {
      steps.push(`${name} in`)
      await next()
      steps.push(`${name} out`)
    }
    const chain = chainOf([layer('a'), layer('b'), layer('c')], async () => (steps.push('action'), 'done'))
    assert.equal(await textOf(chain(makeContext())), 'done')
    assert.deepEqual(steps, ['a in', 'b in', 'c in', 'action', 'c out', 'b out', 'a out'])
  })

  it('returns no promise if nothing in it is asynchronous', () => {
    const pass: Middleware = (_ctx, next) => next()
    assert.ok(chainOf([], () => 'x')(makeContext()) instanceof BodyReply)
    assert.ok(chainOf([pass, pass], () => 'x')(makeContext()) instanceof BodyReply)
    assert.ok(chainOf([pass], async () => 'x')(makeContext()) instanceof Promise)
    assert.ok(chainOf([async (_ctx, next) => next()], () => 'x')(makeContext()) instanceof Promise)
  })

  it('serves many concurrent requests independently', async () => {
    const chain = chainOf([async (_ctx, next) => next()], async (ctx) => ctx.path)
    const contexts = Array.from({ length: 20 }, (_, at) => Object.assign(makeContext(), { path: `/${at}` }))
    const texts = await Promise.all(contexts.map((ctx) => textOf(chain(ctx))))
    assert.deepEqual(texts, contexts.map((ctx) => ctx.path))
  })

  it('uses the reply of a middleware that does not call next, and does not run the layers below', async () => {
    const never = (): never => assert.fail('it ran')
    const stops: Middleware[] = [(ctx) => void replyOf(ctx, 'stop'), async (ctx) => void replyOf(ctx, 'stop')]
    for (const stop of stops) assert.equal(await textOf(chainOf([stop, never], never)(makeContext())), 'stop')
  })

  it('lets a middleware replace the reply after next', async () => {
    const chain = chainOf([async (ctx, next) => (await next(), void replyOf(ctx, 'second'))], () => 'first')
    assert.equal(await textOf(chain(makeContext())), 'second')
  })

  it('is 404 without a reply', async () => {
    const isNotFound = { status: 404 }
    assert.throws(() => chainOf([() => {}], () => 'x')(makeContext()), isNotFound)
    await assert.rejects(async () => chainOf([async () => {}], () => 'x')(makeContext()), isNotFound)
  })

  it('accepts thenables other than promises from middleware and actions', async () => {
    const thenable = { then: (resolve: (value: unknown) => void) => resolve('later') }
    const lazy: Middleware = (_ctx, next) => ({ then: (resolve: () => void) => (next(), resolve()) }) as Promise<void>
    assert.equal(await textOf(chainOf([], () => thenable)(makeContext())), 'later')
    assert.equal(await textOf(chainOf([(_ctx, next) => next()], () => thenable)(makeContext())), 'later')
    assert.equal(await textOf(chainOf([lazy], () => 'x')(makeContext())), 'x')
    assert.equal(await textOf(chainOf([(_ctx, next) => next(), lazy], () => 'x')(makeContext())), 'x')
  })
})

describe('a failing chain', () => {
  it('passes on errors thrown before next, after it, and by the action', async () => {
    const boom = new Error('boom')
    const throws = (): never => {
      throw boom
    }
    const pass: Middleware = (_ctx, next) => next()
    assert.throws(() => chainOf([], throws)(makeContext()), boom)
    assert.throws(() => chainOf([pass], throws)(makeContext()), boom)
    assert.throws(() => chainOf([pass, throws], () => 'x')(makeContext()), boom)
    const after: Middleware = async (_ctx, next) => {
      await next()
      throw boom
    }
    await assert.rejects(async () => chainOf([pass, after], () => 'x')(makeContext()), boom)
    await assert.rejects(async () => chainOf([async (_ctx, next) => next()], () => Promise.reject(boom))(makeContext()), boom)
  })

  it('lets a middleware reply instead of a failure below it', async () => {
    const rescue: Middleware = async (ctx, next) => {
      try {
        await next()
      } catch (error) {
        replyOf(ctx, `saved from ${(error as Error).message}`)
      }
    }
    const outer: Middleware = async (_ctx, next) => next()
    assert.equal(await textOf(chainOf([outer, rescue, outer], reject('boom'))(makeContext())), 'saved from boom')
  })

  it('keeps a failure that a middleware caught without setting a reply', async () => {
    const swallowing: Middleware = async (_ctx, next) => {
      try {
        await next()
      } catch {}
    }
    const pass: Middleware = (_ctx, next) => next()
    const throwing = (): never => {
      throw new Error('swallowed?')
    }
    for (const action of [throwing, reject('swallowed?')]) {
      for (const layers of [[swallowing], [pass, swallowing, pass]]) {
        await assert.rejects(async () => chainOf(layers, action)(makeContext()), { message: 'swallowed?' })
      }
    }
  })

  it('keeps a failure that was not awaited and that came before the end', async () => {
    const notWaiting: Middleware = async (_ctx, next) => {
      void next()
      await soon()
    }
    await assert.rejects(async () => chainOf([notWaiting], reject('lost?'))(makeContext()), { message: 'lost?' })
    const replied: Middleware = (ctx, next) => (replyOf(ctx, 'early'), notWaiting(ctx, next))
    await assert.rejects(async () => chainOf([replied], reject('lost?'))(makeContext()), { message: 'lost?' })
  })

  it('reports that next() was called twice, and by which middleware', async () => {
    const twice: Middleware = async (_ctx, next) => {
      await next()
      await next()
    }
    let runs = 0
    const pass: Middleware = (_ctx, next) => next()
    const message = 'Middleware layer1 called next() twice: the rest of the chain runs once'
    await assert.rejects(async () => chainOf([pass, twice], () => String((runs += 1)))(makeContext()), { message })
    assert.equal(runs, 1)
    assert.throws(() => chainOf([pass, (_ctx, next) => (void next(), next())], () => 'x')(makeContext()), { message })
  })

  it('reports a next() that was not awaited, and answers once everything is done', async () => {
    const misuses: string[] = []
    const notAwaiting: Middleware = (_ctx, next) => void next()
    const pass: Middleware = (_ctx, next) => next()
    const action = async (): Promise<string> => {
      await soon()
      return 'at last'
    }
    const chain = chainOf([notAwaiting, pass], action, undefined, (message) => misuses.push(message))
    assert.equal(await textOf(chain(makeContext())), 'at last')
    assert.deepEqual(misuses, ['middleware layer0 returned before next() was done: write `await next()` in it'])
  })

  it('continues above a middleware that did not wait only when everything below has ended', async () => {
    for (const notAwaiting of [(_ctx, next) => void next(), async (_ctx, next) => void next()] as Middleware[]) {
      const steps: string[] = []
      const misuses: string[] = []
      const saving: Middleware = async (_ctx, next) => {
        await next()
        steps.push('saved')
      }
      const action = async (): Promise<string> => {
        await soon()
        steps.push('acted')
        return 'done'
      }
      const chain = chainOf([saving, notAwaiting, saving], action, undefined, (message) => misuses.push(message))
      assert.equal(await textOf(chain(makeContext())), 'done')
      assert.deepEqual(steps, ['acted', 'saved', 'saved'])
      assert.deepEqual(misuses, ['middleware layer1 returned before next() was done: write `await next()` in it'])
    }
  })

  it('waits for unfinished work of a middleware that threw, if another middleware has replied', async () => {
    const misuses: string[] = []
    const steps: string[] = []
    const catching: Middleware = async (ctx, next) => {
      try {
        await next()
      } catch {
        replyOf(ctx, 'caught')
      }
    }
    const throwing: Middleware = (_ctx, next) => {
      void next()
      throw new Error('too early')
    }
    const action = async (): Promise<void> => {
      await soon()
      steps.push('acted')
    }
    const chain = chainOf([catching, throwing], action, undefined, (message) => misuses.push(message))
    await chain(makeContext())
    assert.deepEqual(steps, ['acted'])
    assert.deepEqual(misuses, ['middleware layer1 returned before next() was done: write `await next()` in it'])
  })

  it('fails with the failure below a middleware that did not wait', async () => {
    const later: unknown[] = []
    const notAwaiting: Middleware = (_ctx, next) => void next()
    const action = async (): Promise<never> => {
      await soon()
      throw new Error('not too late')
    }
    const chain = chainOf([notAwaiting, notAwaiting], action, (error) => later.push(error))
    await assert.rejects(async () => chain(makeContext()), { message: 'not too late' })
    assert.deepEqual(later, [])
  })

  it('reports a failure below that comes after the middleware above has thrown', async () => {
    for (const late of ['sync', 'async']) {
      const later: unknown[] = []
      const notWaiting: Middleware = (_ctx, next) => {
        void next()
        if (late === 'sync') throw new Error('first')
        return Promise.reject(new Error('first'))
      }
      const action = async (): Promise<never> => {
        await soon()
        throw new Error('second')
      }
      const chain = chainOf([notWaiting], action, (error) => later.push(error))
      await assert.rejects(async () => chain(makeContext()), { message: 'first' })
      await soon()
      await soon()
      assert.deepEqual(later.map(String), ['Error: second'])
    }
  })

  it('does not run the layers below a middleware that calls next() after the response, and reports it', async () => {
    const later: unknown[] = []
    const timed: Middleware = (ctx, next) => {
      replyOf(ctx, 'at once')
      setImmediate(() => void next())
    }
    const chain = chainOf([timed], () => assert.fail('it ran'), (error) => later.push(error))
    assert.equal(await textOf(chain(makeContext())), 'at once')
    await soon()
    await soon()
    assert.deepEqual(later.map(String), ['Error: Middleware layer0 called next() after it had returned'])
  })
})
