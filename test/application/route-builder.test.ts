import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { FullContext } from '../support/context.ts'
import { BodyReply, type Reply } from '../../lib/http/reply.ts'
import type { Middleware } from '../../lib/chain/compose.ts'
import { Modules } from '../../lib/modules/modules.ts'
import { parseRecord } from '../../lib/application/record.ts'
import { createRouteBuilder } from '../../lib/application/route-builder.ts'
import { replyOf } from '../../lib/http/returned.ts'
import { writeFiles, type Files } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Builds one route of an action. */
function makeBuilder(files: Files) {
  const root = temporaryFolder()
  writeFiles(root, files)
  const builder = createRouteBuilder({ root, modules: new Modules(root), reports: { late: assert.fail, misuse: assert.fail }, webSockets: { load: async () => {}, accept: () => new BodyReply('', 'a WebSocket') }, describe: async () => ({ below: () => ({}) }) })
  const byName = new Map<string, Middleware>([
    ['outer', async (ctx, next) => (await next(), void replyOf(ctx, `outer(${textOf(ctx.reply)})`))],
    ['inner', async (ctx, next) => (await next(), void replyOf(ctx, `inner(${textOf(ctx.reply)})`))],
  ])
  byName.set('keyless', (_ctx, next) => next())
  const requires = new Map([['inner', 'outer']])
  const batch = () => builder.batch({ byName, unready: new Map([['keyless', 'it has no key']]), requires })
  const build = (action: string, middleware = '', buildOne = batch()) => {
    const parsed = parseRecord({ name: 'a', url: '/a', action, middleware }, {
      root,
      middlewareKnown: () => true,
      middlewareNames: () => [],
    })
    if (!('record' in parsed)) return assert.fail(parsed.problems.join())
    return buildOne(parsed)
  }
  return { root, batch, build, write: (more: Files) => writeFiles(root, more) }
}

function makeContext(): FullContext {
  const ctx = {
    reply: undefined as Reply | undefined,
    replyOf: (value: unknown) => (ctx.reply = value instanceof BodyReply ? value : new BodyReply('', String(value))),
    currentReply: () => ctx.reply,
    view: (file: string) => new BodyReply('', `view of ${file}`),
  }
  return ctx as unknown as FullContext // a stand-in with the members that a route asks for
}

function textOf(reply: Reply | undefined): string {
  return reply instanceof BodyReply ? String(reply.body) : assert.fail('no body')
}

const keyless = 'middleware keyless cannot work: it has no key'

describe('building a route', () => {
  it('joins the action with its middleware, in the order of the record', async () => {
    const { build } = makeBuilder({ 'a.mjs': 'export default () => "action"; export const named = () => "named"' })
    const { route, problem, broken } = await build('a.mjs', 'outer, inner')
    assert.deepEqual([problem, broken, route.system, route.record.middleware], [undefined, false, false, 'outer,inner'])
    assert.equal(textOf(await route.target(makeContext())), 'outer(inner(action))')
    assert.equal(textOf(await (await build('a.mjs@named')).route.target(makeContext())), 'named')
  })

  it('shares one chain among the routes of a batch with the same action and middleware', async () => {
    const { batch, build, write } = makeBuilder({ 'a.mjs': 'export default () => "action"; export const named = () => "named"' })
    const inOne = batch()
    const { route } = await build('a.mjs', 'outer', inOne)
    assert.equal((await build('a.mjs', ' outer ', inOne)).route.target, route.target)
    for (const [action, middleware, text] of [
      ['a.mjs', '', 'action'],
      ['a.mjs', 'outer,inner', 'outer(inner(action))'],
      ['a.mjs@named', 'outer', 'outer(named)'],
    ] as const) {
      assert.equal(textOf(await (await build(action, middleware, inOne)).route.target(makeContext())), text)
    }
    assert.notEqual((await build('late.mjs', '', inOne)).problem, undefined)
    write({ 'late.mjs': 'export default () => "late"' })
    assert.notEqual((await build('late.mjs', '', inOne)).problem, undefined)
    assert.equal((await build('late.mjs', '', batch())).problem, undefined)
  })

  it('names the middleware that cannot work with the present settings', async () => {
    const { build } = makeBuilder({ 'a.mjs': 'export default () => 1' })
    const { problem, broken } = await build('a.mjs', 'outer, keyless')
    assert.deepEqual([problem, broken], [keyless, false])
  })

  it('names the middleware that lacks a required one before it', async () => {
    const { build } = makeBuilder({ 'a.mjs': 'export default () => 1' })
    const problem = 'middleware inner cannot work: outer must come before it in the list'
    for (const list of ['inner', 'inner, outer', 'inner, outer, inner', 'keyless, inner']) {
      const built = await build('a.mjs', list)
      assert.deepEqual([built.problem, built.broken], [list.includes('keyless') ? keyless : problem, false], list)
    }
    for (const list of ['outer, inner', 'outer, keyless']) {
      assert.equal((await build('a.mjs', list)).problem, list.includes('keyless') ? keyless : undefined, list)
    }
  })

  it('answers with a view', async () => {
    const { build } = makeBuilder({ 'a/b.html': '' })
    const { route, problem } = await build('a/b.html')
    assert.equal(problem, undefined)
    assert.equal(textOf(await route.target(makeContext())), 'view of a/b.html')
  })

  it('serves a missing action once its file exists', async () => {
    const { build, write } = makeBuilder({})
    const { route, problem, broken } = await build('a.mjs', 'outer')
    assert.deepEqual([problem, broken], ['Cannot load a.mjs: there is no such file', false])
    await assert.rejects(async () => route.target(makeContext()), { status: 500, message: problem ?? '' })
    write({ 'a.mjs': 'export default () => "now"' })
    assert.equal(textOf(await route.target(makeContext())), 'outer(now)')
    assert.equal(textOf(await route.target(makeContext())), 'outer(now)')
  })

  const failing: readonly [action: string, problem: RegExp, broken: boolean][] = [
    ['none.html', /Cannot run none\.html: there is no such file/, false],
    ['good.mjs@none', /its export "none" must be a function: it is undefined/, false],
    ['good.mjs@text', /its export "text" must be a function: it is string/, false],
    ['good.txt', /an action is a module/, false],
    ['syntax.mjs', /syntax\.mjs:2: SyntaxError/, true],
    ['throws.mjs', /throws\.mjs:1: Error: ouch/, true],
    ['imports.mjs', /imports\.mjs/, true],
  ]
  for (const [action, problem, broken] of failing) {
    it(`reports the problem of ${action}, and builds a route that fails`, async () => {
      const { build } = makeBuilder({
        'good.mjs': 'export default () => "good"; export const text = "text"',
        'good.txt': '',
        'syntax.mjs': '\nexport default (',
        'throws.mjs': 'throw new Error("ouch")',
        'imports.mjs': 'import "./none.mjs"',
      })
      const built = await build(action)
      assert.match(built.problem ?? '', problem)
      assert.equal(built.broken, broken)
      if (action === 'none.html') return assert.equal(textOf(await built.route.target(makeContext())), 'view of none.html')
      await assert.rejects(async () => built.route.target(makeContext()), { status: 500, message: built.problem ?? '' })
    })
  }

  it('passes a handshake to the export websocket, after the middleware, and plain requests to the function', async () => {
    const both = 'export const websocket = { open() {} }\nexport default () => "plain"\n'
    const { build, root } = makeBuilder({ 'both.mjs': both, 'plain.mjs': 'export default () => "plain"\n' })
    const handshake = (): FullContext => Object.assign(makeContext(), { upgrading: { head: Buffer.alloc(0) } })
    const { route } = await build('both.mjs', 'outer')
    assert.equal(textOf(await route.target(handshake())), 'outer(a WebSocket)')
    assert.equal(textOf(await route.target(makeContext())), 'outer(plain)')
    assert.equal(textOf(await (await build('plain.mjs')).route.target(handshake())), 'plain')

    const late = (await build('late.mjs')).route
    await assert.rejects(async () => late.target(handshake()), { status: 500 })
    writeFiles(root, { 'late.mjs': both })
    assert.equal(textOf(await late.target(handshake())), 'a WebSocket')
    assert.equal(textOf(await late.target(handshake())), 'a WebSocket')
    assert.equal(textOf(await late.target(makeContext())), 'plain')
  })

  it('refuses middleware missing from the set', async () => {
    const { build } = makeBuilder({ 'a.mjs': '' })
    await assert.rejects(build('a.mjs', 'none'), { message: 'Cannot build route "a": middleware none is not loaded' })
  })

  it('serves only files below the root', () => {
    const { build, root } = makeBuilder({})
    assert.throws(() => build(join('..', 'x.mjs')), assert.AssertionError)
    assert.throws(() => build(join(root, '..', 'x.mjs')), assert.AssertionError)
  })
})
