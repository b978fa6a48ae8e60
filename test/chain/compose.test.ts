import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import type { FullContext } from '../support/context.ts'
import { BodyReply, type Reply } from '../../lib/http/reply.ts'
import { compose, type Action, type Middleware } from '../../lib/chain/compose.ts'
import { replyOf } from '../../lib/http/returned.ts'

/** As much of a context as a chain touches. */
function makeContext(): FullContext {
  const ctx = {
    path: '/',
    reply: undefined as Reply | undefined,
    currentReply: () => {
      if (ctx.reply === undefined) throw new HttpError(404, 'not_found', 'nobody')
      return ctx.reply
    },
  }
  return ctx as unknown as FullContext // a stand-in with the members that compose.ts asks for
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

/** The text of the reply, where the chain may answer at once or later. */
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

  it('answers without a promise when nothing in it is asynchronous', () => {
    const pass: Middleware = (_ctx, next) => next()
    assert.ok(chainOf([], () => 'x')(makeContext()) instanceof BodyReply)
    assert.ok(chainOf([pass, pass], () => 'x')(makeContext()) instanceof BodyReply)
    assert.ok(chainOf([pass], async () => 'x')(makeContext()) instanceof Promise)
    assert.ok(chainOf([async (_ctx, next) => next()], () => 'x')(makeContext()) instanceof Promise)
  })

  it('serves many requests, each for itself', async () => {
    const chain = chainOf([async (_ctx, next) => next()], async (ctx) => ctx.path)
    const contexts = Array.from({ length: 20 }, (_, at) => Object.assign(makeContext(), { path: `/${at}` }))
    const texts = await Promise.all(contexts.map((ctx) => textOf(chain(ctx))))
    assert.deepEqual(texts, contexts.map((ctx) => ctx.path))
  })

  it('takes what a middleware replied without calling next, and does not run what is below', async () => {
    const never = (): never => assert.fail('it ran')
    const stops: Middleware[] = [(ctx) => void replyOf(ctx, 'stop'), async (ctx) => void replyOf(ctx, 'stop')]
    for (const stop of stops) assert.equal(await textOf(chainOf([stop, never], never)(makeContext())), 'stop')
  })

  it('lets a middleware replace the reply after next', async () => {
    const chain = chainOf([async (ctx, next) => (await next(), void replyOf(ctx, 'second'))], () => 'first')
    assert.equal(await textOf(chain(makeContext())), 'second')
  })

  it('is 404 when nobody answers', async () => {
    const isNotFound = { status: 404 }
    assert.throws(() => chainOf([() => {}], () => 'x')(makeContext()), isNotFound)
    await assert.rejects(async () => chainOf([async () => {}], () => 'x')(makeContext()), isNotFound)
  })

  it('takes thenables that are no promises from middleware and actions', async () => {
    const thenable = { then: (resolve: (value: unknown) => void) => resolve('later') }
    const lazy: Middleware = (_ctx, next) => ({ then: (resolve: () => void) => (next(), resolve()) }) as Promise<void>
    assert.equal(await textOf(chainOf([], () => thenable)(makeContext())), 'later')
    assert.equal(await textOf(chainOf([(_ctx, next) => next()], () => thenable)(makeContext())), 'later')
    assert.equal(await textOf(chainOf([lazy], () => 'x')(makeContext())), 'x')
    assert.equal(await textOf(chainOf([(_ctx, next) => next(), lazy], () => 'x')(makeContext())), 'x')
  })
})

describe('a failing chain', () => {
  it('passes on what is thrown before next, after it, and by the action', async () => {
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

  it('lets a middleware answer in place of a failure below it', async () => {
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

  it('does not lose a failure that a middleware caught without setting a reply', async () => {
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

  it('does not lose a failure that nobody waited for and that came before the end', async () => {
    const careless: Middleware = async (_ctx, next) => {
      void next()
      await soon()
    }
    await assert.rejects(async () => chainOf([careless], reject('lost?'))(makeContext()), { message: 'lost?' })
    const replied: Middleware = (ctx, next) => (replyOf(ctx, 'early'), careless(ctx, next))
    await assert.rejects(async () => chainOf([replied], reject('lost?'))(makeContext()), { message: 'lost?' })
  })

  it('says that next() was called twice, and by whom', async () => {
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

  it('says that next() was not waited for, and answers once all is done', async () => {
    const said: string[] = []
    const forgetful: Middleware = (_ctx, next) => void next()
    const pass: Middleware = (_ctx, next) => next()
    const action = async (): Promise<string> => {
      await soon()
      return 'at last'
    }
    const chain = chainOf([forgetful, pass], action, undefined, (message) => said.push(message))
    assert.equal(await textOf(chain(makeContext())), 'at last')
    assert.deepEqual(said, ['middleware layer0 returned before next() was done: write `await next()` in it'])
  })

  it('lets those before a middleware that did not wait go on only when all below it is done', async () => {
    for (const forgetful of [(_ctx, next) => void next(), async (_ctx, next) => void next()] as Middleware[]) {
      const steps: string[] = []
      const said: string[] = []
      const saving: Middleware = async (_ctx, next) => {
        await next()
        steps.push('saved')
      }
      const action = async (): Promise<string> => {
        await soon()
        steps.push('acted')
        return 'done'
      }
      const chain = chainOf([saving, forgetful, saving], action, undefined, (message) => said.push(message))
      assert.equal(await textOf(chain(makeContext())), 'done')
      assert.deepEqual(steps, ['acted', 'saved', 'saved'])
      assert.deepEqual(said, ['middleware layer1 returned before next() was done: write `await next()` in it'])
    }
  })

  it('waits for what a middleware left behind that threw, where another one has answered', async () => {
    const said: string[] = []
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
    const chain = chainOf([catching, throwing], action, undefined, (message) => said.push(message))
    await chain(makeContext())
    assert.deepEqual(steps, ['acted'])
    assert.deepEqual(said, ['middleware layer1 returned before next() was done: write `await next()` in it'])
  })

  it('fails with what failed below a middleware that did not wait', async () => {
    const later: unknown[] = []
    const forgetful: Middleware = (_ctx, next) => void next()
    const action = async (): Promise<never> => {
      await soon()
      throw new Error('not too late')
    }
    const chain = chainOf([forgetful, forgetful], action, (error) => later.push(error))
    await assert.rejects(async () => chain(makeContext()), { message: 'not too late' })
    assert.deepEqual(later, [])
  })

  it('tells a failure below that comes after the middleware above has thrown', async () => {
    for (const late of ['sync', 'async']) {
      const later: unknown[] = []
      const careless: Middleware = (_ctx, next) => {
        void next()
        if (late === 'sync') throw new Error('first')
        return Promise.reject(new Error('first'))
      }
      const action = async (): Promise<never> => {
        await soon()
        throw new Error('second')
      }
      const chain = chainOf([careless], action, (error) => later.push(error))
      await assert.rejects(async () => chain(makeContext()), { message: 'first' })
      await soon()
      await soon()
      assert.deepEqual(later.map(String), ['Error: second'])
    }
  })

  it('does not run what is below a middleware that calls next() after the answer, and says so', async () => {
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
