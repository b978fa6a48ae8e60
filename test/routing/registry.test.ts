import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NameTakenError, Registry } from '../../lib/routing/registry.ts'
import type { Route } from '../../lib/routing/route.ts'
import { route } from './routes.ts'

test('returns routes by name, in order of registration', () => {
  const registry = registryOf([route('GET /svc-ping', 'svc.ping', true), route('GET /b', 'b'), route('GET /a', 'a')])
  assert.deepEqual(namesOf(registry), ['svc.ping', 'b', 'a'])
  assert.equal(registry.get('b')?.record.url, '/b')
  assert.equal(registry.get('c'), undefined)
})

test('refuses a taken name with its own error class, and stays unchanged', () => {
  const registry = registryOf([route('GET /a', 'a')])
  assert.throws(() => registry.add(route('GET /b', 'a')), (error) => {
    assert.ok(error instanceof NameTakenError)
    assert.match(error.message, /Cannot add route "a": the name is taken/)
    return true
  })
  assert.equal(registry.find('GET', '/b'), undefined)
  assert.equal(registry.find('GET', '/a')?.route.target, 'a')
})

test('finds the next route of a pattern when one is removed', () => {
  const list = [route('GET /a/:x', 'first'), route('* /a/:y', 'second'), route('POST /a/:z', 'third')]
  const registry = registryOf(list)
  assert.deepEqual(answers(registry, '/a/1'), ['first', 'second'])
  const [first, , third] = list as [Route<string>, Route<string>, Route<string>]
  registry.replaceApplication([first, third])
  assert.deepEqual(answers(registry, '/a/1'), ['first', 'third'])
  registry.replaceApplication([third])
  assert.deepEqual(answers(registry, '/a/1'), [undefined, 'third'])
  registry.replaceApplication([])
  assert.deepEqual(registry.allowed('/a/1'), [])
})

const allowed: readonly (readonly [routes: readonly string[], path: string, methods: string])[] = [
  [['GET /a'], '/b', ''],
  [['GET /a'], '/a', 'GET HEAD OPTIONS'],
  [['POST /a'], '/a/', 'OPTIONS POST'],
  [['POST /a', 'DELETE /:x', 'PUT /*r', 'GET /b'], '/a', 'DELETE OPTIONS POST PUT'],
  [['GET /f/*r'], '/f', 'GET HEAD OPTIONS'],
  [['POST /caf%C3%A9'], '/caf%C3%A9', 'OPTIONS POST'],
  [['* /a', 'PURGE /:x'], '/a', 'DELETE GET HEAD OPTIONS PATCH POST PURGE PUT'],
  [['GET /a'], '*', ''],
  [['GET /'], '/', 'GET HEAD OPTIONS'],
  [['GET /:x/b', 'POST /a/*r'], '/a//', 'OPTIONS POST'],
]

test('returns the methods of a path', () => {
  for (const [routes, path, methods] of allowed) {
    const registry = registryOf(routes.map((text) => route(text)))
    assert.equal(registry.allowed(path).join(' '), methods, `${path} in ${routes.join(', ')}`)
  }
})

test('replaces the application routes in one step, and keeps the system routes first', () => {
  const registry = registryOf([route('GET /a', 'a'), route('GET /svc-ping', 'svc.ping', true), route('GET /b', 'b')])
  registry.replaceApplication([route('GET /c', 'c'), route('GET /a', 'a2')])
  assert.deepEqual(namesOf(registry), ['svc.ping', 'c', 'a2'])
  assert.equal(registry.find('GET', '/a')?.route.target, 'a2')
  assert.equal(registry.find('GET', '/b'), undefined)
  assert.equal(registry.find('GET', '/svc-ping')?.route.target, 'svc.ping')
  registry.replaceApplication([])
  assert.deepEqual(namesOf(registry), ['svc.ping'])
})

test('keeps the whole old table if the new table cannot be built', () => {
  const registry = registryOf([route('GET /svc-ping', 'svc.ping', true), route('GET /a', 'a')])
  const wrong = [
    [route('GET /x', 'x'), route('GET /y', 'x')],
    [route('GET /x', 'x'), route('GET /y', 'svc.ping')],
  ]
  for (const routes of wrong) assert.throws(() => registry.replaceApplication(routes), NameTakenError)
  const withSystem = [route('GET /x', 'x'), route('GET /y', 'svc.y', true)]
  assert.throws(() => registry.replaceApplication(withSystem), /"svc\.y" is a system route/)
  assert.deepEqual(namesOf(registry), ['svc.ping', 'a'])
  assert.equal(registry.find('GET', '/x'), undefined)
  assert.equal(registry.find('GET', '/a')?.route.target, 'a')
})

const shadows: readonly (readonly [routes: readonly string[], added: string, by: string | undefined])[] = [
  [['GET /a'], 'GET /a', 'GET /a'],
  [['GET /a/:x'], 'GET,POST /a/:y/', 'GET /a/:x'],
  [['GET /a'], 'POST /a', undefined],
  [['GET /a'], 'HEAD /a', 'GET /a'],
  [['HEAD /a'], 'GET /a', undefined],
  [['* /a'], 'PURGE /a', '* /a'],
  [['POST /a'], '* /a', 'POST /a'],
  [['GET /:x', 'GET /*r'], 'GET /a', undefined],
  [['GET /f/*r'], 'GET /f/*s', 'GET /f/*r'],
  [['GET /f/*r'], 'GET /f/:s', undefined],
  [['GET /a/b'], 'GET /a/*r', undefined],
  [['POST /a', 'PUT /a'], 'PUT /a', 'PUT /a'],
]

test('returns the route that answers the method and pattern of another', () => {
  for (const [routes, text, by] of shadows) {
    const registry = registryOf(routes.map((one) => route(one)))
    const added = route(text, 'added')
    assert.equal(registry.shadowedBy(added)?.record.name, by, `before: ${text} after ${routes.join(', ')}`)
    registry.add(added)
    registry.add(route(text, 'later'))
    assert.equal(registry.shadowedBy(added)?.record.name, by, `once in: ${text} after ${routes.join(', ')}`)
  }
})

const patterns: readonly (readonly [string, string, boolean])[] = [
  ['/a/:id', '/a/:name/', true],
  ['/a/*x', '/a/*y', true],
  ['/café', '/caf%c3%a9', true],
  ['/a%3Ab', '/a%3ab', true],
  ['/', '/a', false],
  ['/:a', '/*a', false],
  ['/:a', '/%3Aa', false],
  ['/*a', '/%2Aa', false],
  ['/:a', '/%3A', false],
  ['/*a', '/%2A', false],
  ['/a%2Fb', '/a/b', false],
  ['/a', '/A', false],
]

test('treats patterns that match the same paths as equal', () => {
  for (const [one, other, same] of patterns) {
    const shadowing = registryOf([route(`GET ${one}`, 'one')]).shadowedBy(route(`GET ${other}`, 'other'))
    assert.equal(shadowing?.record.name, same ? 'one' : undefined, `${one} and ${other}`)
  }
})

test('shares nothing between two registries', () => {
  const one = registryOf([route('GET /a/:x', 'a')])
  const other = registryOf([route('GET /b', 'a')])
  assert.equal(one.find('GET', '/b'), undefined)
  assert.equal(other.find('GET', '/a/1'), undefined)
})

function registryOf(routes: readonly Route<string>[]): Registry<string> {
  const registry = new Registry<string>()
  for (const one of routes) registry.add(one)
  return registry
}

function namesOf(registry: Registry<string>): string[] {
  return registry.list().map(({ record }) => record.name)
}

function answers(registry: Registry<string>, path: string): (string | undefined)[] {
  return ['GET', 'POST'].map((method) => registry.find(method, path)?.route.target)
}
