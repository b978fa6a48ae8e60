import assert from 'node:assert/strict'
import { test } from 'node:test'
import { safeNext } from '../../lib/access/next-path.ts'
import { nextOf } from '../../lib/chain/settings.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import { Seeded } from '../support/seeded.ts'
import { makePort } from './support.ts'

const { port, registry } = makePort()
const routes = [
  ['svc.index', 'GET', '/svc-index'],
  ['svc.stop', 'GET', '/svc-stop'],
  ['svc.reload', 'GET', '/svc-routes/reload'],
  ['svc.add', 'POST', '/svc-routes/add'],
  ['app.item', 'GET', '/item/:id'],
  ['app.stop', 'GET', '/stop'],
] as const
for (const [name, method, url] of routes) {
  registry.add({
    record: { name, url, method, action: '', middleware: '', scope: '' },
    pattern: parsePattern(url),
    system: name.startsWith('svc.'),
    target: () => assert.fail('no route here'),
  })
}
const changes = (url: string): boolean => ['/svc-stop', '/svc-routes/reload', '/stop'].includes(url)

const rows: [next: string | undefined, path: string | undefined][] = [
  [undefined, undefined],
  ['', undefined],
  ['/svc-index', '/svc-index'],
  ['/svc-index/', '/svc-index/'],
  ['/svc-index?format=json', '/svc-index'],
  ['/svc-index#top', '/svc-index'],
  ['/', '/'],
  ['/a page.html', '/a%20page.html'],
  ['/caf\u00e9', '/caf%C3%A9'],
  ['/item/5', '/item/5'],
  ['/stop', '/stop'],
  ['/item/%ff', undefined],
  ['svc-index', undefined],
  ['//evil.example', undefined],
  ['/\\evil.example', undefined],
  ['\\\\evil.example', undefined],
  ['http://evil.example/', undefined],
  ['javascript:alert(1)', undefined],
  ['/\t/evil.example', undefined],
  ['/\n/evil.example', undefined],
  ['\t//evil.example', undefined],
  [' //evil.example', undefined],
  ['/a\r\nSet-Cookie: a=b', undefined],
  ['/a\u0085b', undefined],
  ['/a\u0000b', undefined],
  ['/.//evil.example', undefined],
  ['/x/..//evil.example', undefined],
  ['/x/..\\\\evil.example', undefined],
  ['/%2e//evil.example', undefined],
  ['/svc-stop', undefined],
  ['/svc-stop/', undefined],
  ['/svc-stop?x', undefined],
  ['/svc%2Dstop', undefined],
  ['/x/../svc-stop', undefined],
  ['/x/%2e%2E/svc-stop', undefined],
  ['\\svc-stop', undefined],
  ['/svc-routes\\reload', undefined],
  ['/svc-routes/add', undefined],
]

for (const [next, path] of rows) {
  test(`${JSON.stringify(next)} redirects to ${path ?? 'the default'}`, () => {
    assert.equal(safeNext(next, { withoutPrefix: (path) => path }, port, changes), path)
  })
}

test('whatever next is, a browser stays on this host and on the checked path', () => {
  const seeded = new Seeded(11)
  const parts = ['/', '\\', '.', '..', '%2e', '%2f', ':', '@', '?', '#', ' ', '\t', 'svc-stop', 'x', '//', 'http:', 'é']
  for (let round = 0; round < 20_000; round++) {
    const next = `/${Array.from({ length: 1 + seeded.integer(7) }, () => seeded.pick(parts)).join('')}`
    const path = safeNext(next, { withoutPrefix: (path) => path }, port, changes)
    if (path === undefined) continue
    const { host, pathname, search, hash } = new URL(path, 'https://here.example/svc-login')
    assert.deepEqual([host, pathname, search, hash], ['here.example', path, '', ''], next)
    assert.match(path, /^[\x21-\x7e]+$/)
    assert.doesNotMatch(decodeURIComponent(path.replace(/%2f/gi, '_')), /^\/svc-stop\/?$/)
  }
})

test('a path is percent-encoded except its slashes, and is restored completely', () => {
  assert.equal(nextOf('/svc-routes/list'), '/svc-routes/list')
  assert.equal(nextOf('/a%20b&c=d+e'), '/a%2520b%26c%3Dd%2Be')
  const path = '/x y/é?&=+%/"\''
  assert.equal(new URLSearchParams(`next=${nextOf(path)}`).get('next'), path)
})
