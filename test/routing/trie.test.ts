import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import { maxSegments } from '../../lib/routing/pattern.ts'
import { Registry } from '../../lib/routing/registry.ts'
import type { Route } from '../../lib/routing/route.ts'
import { referenceFind } from './reference-matcher.ts'
import { route } from './routes.ts'
import { answerOf, checkAgainstReference } from './trie-support.ts'

/** A request, then the matching route and its values; `-` for none. */
type Row = readonly [request: string, route: string, ...values: string[]]

/** Routes in order of registration, then requests. */
const tables: readonly (readonly [name: string, routes: readonly string[], rows: readonly Row[]])[] = [
  ['literal, parameter and rest', ['GET /', 'GET /a', 'GET /a/:id', 'GET /f/*path'], [
    ['GET /', 'GET /'],
    ['GET /a', 'GET /a'],
    ['GET /b', '-'],
    ['GET /a/7', 'GET /a/:id', '7'],
    ['GET /a/7/8', '-'],
    ['GET /f/x/y', 'GET /f/*path', 'x/y'],
    ['GET /A', '-'],
    ['GET /aa', '-'],
    ['GET *', '-'],
    ['GET ', '-'],
    ['GET xa', '-'],
  ]],
  ['one trailing slash is ignored', ['GET /', 'GET /a', 'GET /b/', 'GET /c/:id'], [
    ['GET /a/', 'GET /a'],
    ['GET /b', 'GET /b/'],
    ['GET /b/', 'GET /b/'],
    ['GET /c/7/', 'GET /c/:id', '7'],
    ['GET /a//', '-'],
    ['GET //', '-'],
    ['GET //a', '-'],
  ]],
  ['a parameter is never empty', ['GET /a/:id', 'GET /b/:x/c'], [
    ['GET /a', '-'],
    ['GET /a/', '-'],
    ['GET /b//c', '-'],
  ]],
  ['a rest may be empty and keeps its slashes', ['GET /f/*path', 'GET /:x'], [
    ['GET /f', 'GET /f/*path', ''],
    ['GET /f/', 'GET /f/*path', ''],
    ['GET /f//', 'GET /f/*path', '/'],
    ['GET /f/a/', 'GET /f/*path', 'a/'],
    ['GET /f//a//b', 'GET /f/*path', '/a//b'],
    ['GET /g', 'GET /:x', 'g'],
  ]],
  ['a rest at the root matches everything', ['GET /*all'], [
    ['GET /', 'GET /*all', ''],
    ['GET //', 'GET /*all', '/'],
    ['GET /a/b', 'GET /*all', 'a/b'],
  ]],
  ['literal before parameter before rest, from the left', [
    'GET /*r', 'GET /:x', 'GET /a', 'GET /:x/b', 'GET /a/*r', 'GET /a/:y',
  ], [
    ['GET /a', 'GET /a'],
    ['GET /c', 'GET /:x', 'c'],
    ['GET /a/b', 'GET /a/:y', 'b'],
    ['GET /c/b', 'GET /:x/b', 'c'],
    ['GET /a/b/c', 'GET /a/*r', 'b/c'],
    ['GET /c/d', 'GET /*r', 'c/d'],
    ['GET /', 'GET /*r', ''],
  ]],
  ['it backtracks if a literal does not match', ['GET /a/:x/c', 'GET /:y/b/d', 'GET /:z/*r'], [
    ['GET /a/b/c', 'GET /a/:x/c', 'b'],
    ['GET /a/b/d', 'GET /:y/b/d', 'a'],
    ['GET /a/b/e', 'GET /:z/*r', 'a', 'b/e'],
    ['GET /a', 'GET /:z/*r', 'a', ''],
  ]],
  ['the method is part of the match', ['POST /a/b', 'GET /a/:x', 'PUT /*r'], [
    ['GET /a/b', 'GET /a/:x', 'b'],
    ['POST /a/b', 'POST /a/b'],
    ['PUT /a/b', 'PUT /*r', 'a/b'],
    ['DELETE /a/b', '-'],
    ['get /a/b', '-'],
  ]],
  ['GET serves HEAD, OPTIONS must be registered', [
    'GET /a', 'HEAD /a', 'OPTIONS /b', 'GET /b', 'HEAD /c', 'GET /c', 'POST /d', '* /e', 'GET,OPTIONS /f',
  ], [
    ['HEAD /a', 'GET /a'],
    ['HEAD /b', 'GET /b'],
    ['OPTIONS /a', '-'],
    ['OPTIONS /b', 'OPTIONS /b'],
    ['HEAD /c', 'HEAD /c'],
    ['GET /c', 'GET /c'],
    ['HEAD /d', '-'],
    ['OPTIONS /e', '* /e'],
    ['PURGE /e', '* /e'],
    ['OPTIONS /f', 'GET,OPTIONS /f'],
  ]],
  ['the first registered route of a pattern answers', ['GET /a/:x', '* /a/:y', 'POST /a/:z'], [
    ['GET /a/1', 'GET /a/:x', '1'],
    ['POST /a/1', '* /a/:y', '1'],
  ]],
  ['percent-encoding', [
    'GET /café', 'GET /a%20b', 'GET /p/:x', 'GET /r/*r', 'GET /a%2Fb', 'GET /a/b/c', 'GET /100%25', 'GET /x/y', 'GET /:x/z',
  ], [
    ['GET /caf%C3%A9', 'GET /café'],
    ['GET /caf%c3%a9/', 'GET /café'],
    ['GET /a%20b', 'GET /a%20b'],
    ['GET /%70/%C3%A9', 'GET /p/:x', 'é'],
    ['GET /p/a%2Fb', 'GET /p/:x', 'a/b'],
    ['GET /p/%2E%2E', 'GET /p/:x', '..'],
    ['GET /p/a+b', 'GET /p/:x', 'a+b'],
    ['GET /p/%2525', 'GET /p/:x', '%25'],
    ['GET /r/a%2Fb/c%20d', 'GET /r/*r', 'a/b/c d'],
    ['GET /a%2Fb', 'GET /a%2Fb'],
    ['GET /a/b', '-'],
    ['GET /a%2Fb/c', '-'],
    ['GET /100%25', 'GET /100%25'],
    ['GET /100%', '-'],
    ['GET /%78/y', 'GET /x/y'],
    ['GET /%zz', '-'],
    ['GET /p/%zz', '400'],
    ['GET /p/%ff', '400'],
    ['GET /p/%C3', '400'],
    ['GET /r/a/%', '400'],
    ['GET /%zz/z', '400'],
    ['GET /%zz/y', '-'],
  ]],
]

for (const [name, routes, requests] of tables) {
  test(`finds: ${name}`, () => {
    const list = routes.map((text) => route(text))
    const registry = registryOf(list)
    for (const [request, expected, ...values] of requests) {
      const [method = '', path = ''] = request.split(' ')
      const answer = answerOf(registry, method, path)
      const shown = answer === undefined ? ['-'] : answer === 'bad encoding' ? ['400'] : [answer.name, ...answer.values]
      assert.deepEqual(shown, [expected, ...values], request)
      if (path.startsWith('/')) assert.deepEqual(answer, referenceFind(list, method, path), `reference: ${request}`)
    }
  })
}

test('names the parameter with a malformed encoding, with 400 bad_path_encoding', () => {
  const registry = registryOf([route('GET /a/:x')])
  assert.throws(() => registry.find('GET', '/a/%zz'), (error) => {
    assert.ok(error instanceof HttpError)
    assert.deepEqual([error.status, error.code], [400, 'bad_path_encoding'])
    assert.match(error.message, /"%zz"/)
    return true
  })
  assert.deepEqual(registry.allowed('/a/%zz'), ['GET', 'HEAD', 'OPTIONS'])
})

for (const [alphabet, count] of [['few segments', 30], ['many segments with the same prefix', 10]] as const) {
  test(`agrees with the reference on random tables and paths of ${alphabet}, while routes change`, () => {
    checkAgainstReference(alphabet, count)
  })
}

for (const how of ['one by one', 'at once']) {
  test(`finds routes among many literals and static paths, and after removing most: added ${how}`, () => {
    const registry = new Registry<string>()
    const urls = Array.from({ length: 3_000 }, (_, index) => [`/n${index}`, `/n${index}/:id`, `/x${index}/list`]).flat()
    const routes = urls.map((url) => route(`GET ${url}`, url))
    if (how === 'at once') registry.replaceApplication(routes)
    else for (const one of routes) registry.add(one)
    const check = (url: string, there: boolean): void => {
      const path = url.replace(':id', '5')
      assert.equal(registry.find('GET', path)?.route.target, there ? url : undefined, url)
    }
    for (const url of urls) check(url, true)
    const kept = urls.filter((_, index) => index % 100 === 0)
    registry.replaceApplication(routes.filter(({ target }) => kept.includes(target)))
    for (const url of urls) check(url, kept.includes(url))
    registry.replaceApplication([])
    for (const url of urls) check(url, false)
    registry.add(route('GET /n5', 'again'))
    assert.equal(registry.find('GET', '/n5')?.route.target, 'again')
  })
}

/** In processor time, so that other work of the machine does not count. */
const maxMicroseconds = 200_000

test('is fast with very deep and very long paths', () => {
  const deepest = Array.from({ length: maxSegments }, (_, index) => `/:p${index}`).join('')
  const registry = registryOf([route('GET /:a/:b/:c'), route('GET /a/*r'), route(`GET ${deepest}`)])
  const deep = ['/a', '/b', '/%41', '//'].map((part) => part.repeat(10_000))
  const paths = [...deep, '/'.repeat(100_000), `/${'a'.repeat(100_000)}`]
  for (const path of paths) {
    const begin = process.cpuUsage().user
    registry.find('GET', path)
    registry.find('POST', path)
    registry.allowed(path)
    assert.ok(process.cpuUsage().user - begin < maxMicroseconds, `${path.slice(0, 20)}... of ${path.length}`)
  }
  assert.equal(registry.find('GET', '/a'.repeat(10_000))?.values[0]?.length, 19_997)
  assert.equal(registry.find('GET', '/b'.repeat(maxSegments))?.values.length, maxSegments)
})

test('visits a node once, however much a table and a path force backtracking', () => {
  const registry = new Registry<string>()
  const depth = 12
  for (let bits = 0; bits < 2 ** depth; bits += 1) {
    const segments = Array.from({ length: depth }, (_, level) => (bits & (1 << level) ? `:p${level}` : 'a'))
    registry.add(route(`GET /${segments.join('/')}/end`, String(bits)))
  }
  const begin = process.cpuUsage().user
  assert.equal(registry.find('GET', `${'/a'.repeat(depth)}/nowhere`), undefined)
  assert.equal(registry.find('GET', `${'/a'.repeat(60)}`), undefined)
  assert.ok(process.cpuUsage().user - begin < maxMicroseconds)
  assert.equal(registry.find('GET', `${'/a'.repeat(depth)}/end`)?.route.target, '0')
})

function registryOf(routes: readonly Route<string>[]): Registry<string> {
  const registry = new Registry<string>()
  for (const one of routes) registry.add(one)
  return registry
}
