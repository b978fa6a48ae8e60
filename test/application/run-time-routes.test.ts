import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { RouteRefusedError, RoutesUnsavedError } from '../../lib/control/commands.ts'
import { emptyReply } from '../../lib/http/reply.ts'
import type { Chain } from '../../lib/chain/compose.ts'
import type { MiddlewareSet } from '../../lib/application/middleware-host.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import { Registry } from '../../lib/routing/registry.ts'
import type { RouteBuilder } from '../../lib/application/route-builder.ts'
import { RunTimeRoutes } from '../../lib/application/run-time-routes.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const target: Chain = () => emptyReply
const a = { name: 'a', url: '/a', action: 'a.mjs' }

/** Run-time routes over an empty folder, with one system route and the middleware `known`. */
function make(problem?: string) {
  const folder = temporaryFolder()
  const registry = new Registry<Chain>()
  const record = { name: 'svc.ping', url: '/svc-ping', method: 'GET', action: '', middleware: '', scope: '' }
  registry.add({ record, pattern: parsePattern('/svc-ping'), system: true, target })
  const builder: RouteBuilder = {
    batch: () => async ({ record, pattern }) =>
      ({ route: { record, pattern, system: false, target }, problem, broken: false }),
  }
  const middleware: MiddlewareSet = {
    byName: new Map([['known', (_ctx, next) => next()]]),
    unready: new Map(),
    requires: new Map(),
  }
  const routes = new RunTimeRoutes({
    root: folder,
    routesFolder: folder,
    registry,
    builder,
    middleware: () => middleware,
    kept: new Map(),
  })
  return { routes, registry, file: join(folder, 'admin.json'), folder }
}

function refusal(name: string, reserved: boolean, message: RegExp) {
  return (error: unknown) =>
    error instanceof RouteRefusedError
    && error.routeName === name
    && error.reserved === reserved
    && message.test(error.message)
}

test('registers a route, and writes no file unless it is to last', async () => {
  const { routes, registry, file } = make()
  assert.deepEqual(await routes.add({ ...a, middleware: 'known' }, false), { name: 'a', warnings: [] })
  assert.equal(registry.find('GET', '/a')?.route.record.name, 'a')
  assert.ok(!existsSync(file))
})

test('what is to last is written in the normal form of a record', async () => {
  const { routes, file } = make()
  await routes.add(
    { name: 'a', pattern: '/a', action: 'a.mjs', method: 'get , post', middleware: ' known ', odd: 1 },
    true,
  )
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), [
    { ...a, method: 'GET,POST', middleware: 'known', scope: '' },
  ])
})

test('says all that the route lacks', async () => {
  const { routes } = make('the action is not there yet')
  const { warnings } = await routes.add({ ...a, url: '/svc-ping', odd: 1 }, false)
  assert.deepEqual(warnings, [
    'field "odd" is not known and is ignored',
    'the action is not there yet',
    'route "svc.ping" answers this method and pattern already',
  ])
})

test('refuses what is wrong, with all that is wrong', async () => {
  const { routes, registry } = make()
  await assert.rejects(routes.add(null, false), refusal('', false, /^a route record is a JSON object/))
  await assert.rejects(
    routes.add({}, false),
    refusal('', false, /^name is missing; url is missing; action is missing$/),
  )
  await assert.rejects(routes.add({ ...a, name: 'svc.a' }, false), refusal('svc.a', true, /system routes/))
  await assert.rejects(routes.add({ ...a, middleware: 'knwon' }, true), refusal('a', false, /did you mean "known"\?/))
  assert.equal(registry.size, 1)
})

test('refuses a name that is taken before it writes', async () => {
  const { routes, file } = make()
  await routes.add(a, false)
  await assert.rejects(routes.add({ ...a, url: '/b' }, true), refusal('a', false, /the name is taken/))
  assert.ok(!existsSync(file))
})

test('refuses to keep a name that another route file has, whether or not it is registered', async () => {
  const { routes, registry, folder, file } = make()
  writeFileSync(join(folder, 'b.json'), JSON.stringify([{ name: 'a', url: '/old', action: 'a.mjs' }]))
  await assert.rejects(routes.add(a, true), refusal('a', false, /^Cannot keep route "a": b\.json has one of that name/))
  assert.ok(!existsSync(file))
  await routes.add(a, false)
  assert.equal(registry.size, 2)
})

test('a name that stands in admin.json alone is replaced there', async () => {
  const { routes, file } = make()
  writeFileSync(file, JSON.stringify([{ name: 'a', url: '/old', action: 'a.mjs' }]))
  await routes.add(a, true)
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), [{ ...a, method: '*', middleware: '', scope: '' }])
})

test('what cannot be written is not registered', async () => {
  const { routes, registry, file } = make()
  writeFileSync(file, '{}')
  await assert.rejects(routes.add(a, true), RoutesUnsavedError)
  assert.equal(registry.size, 1)
})

test('removes a route from the table and from admin.json, and says whether there was one', async () => {
  const { routes, registry, file } = make()
  await routes.add(a, true)
  assert.equal(routes.remove('a'), true)
  assert.deepEqual([registry.size, JSON.parse(readFileSync(file, 'utf8'))], [1, []])
  assert.equal(routes.remove('a'), false)
  writeFileSync(file, JSON.stringify([{ name: 'a' }]))
  assert.equal(routes.remove('a'), true, 'one that was left out at the start, say')
})

test('what another process has removed goes from the table alone: the file may have it anew by now', async () => {
  const { routes, registry, file } = make()
  await routes.add(a, true)
  routes.drop('a', false)
  assert.equal(registry.size, 1)
  assert.equal((JSON.parse(readFileSync(file, 'utf8')) as unknown[]).length, 1)
  routes.drop('a', true)
  assert.equal((JSON.parse(readFileSync(file, 'utf8')) as unknown[]).length, 0, 'another machine has not done that')
})

test('what cannot be removed from admin.json stays in the table', async () => {
  const { routes, registry, file } = make()
  await routes.add(a, true)
  writeFileSync(file, '{}')
  assert.throws(() => routes.remove('a'), RoutesUnsavedError)
  assert.equal(registry.size, 2)
})

test('a system route cannot be removed', () => {
  const { routes, registry } = make()
  assert.throws(() => routes.remove('svc.ping'), RangeError)
  assert.equal(registry.size, 1)
})
