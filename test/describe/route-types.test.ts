// The text of svc.routes.d.ts, and how `dev` keeps it up to date.
import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import { loadConfig } from '../../lib/config/load.ts'
import { isCurrent, routeTypesOf, writeRouteTypes } from '../../lib/describe/route-types.ts'
import { startDev } from '../dev/dev-support.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { writeFiles, type Files } from '../support/application.ts'
import { until } from '../support/until.ts'

const typesOf = (files: Files) => routeTypesOf(loadConfig(join(applicationFolder(files), 'svc.json')))

describe('the types of the routes', () => {
  it('have the path, the parameters and the methods of each name', () => {
    const rows: readonly (readonly [record: object, type: string])[] = [
      [{ name: 'home', url: '/' }, '"home": { readonly path: `/`; readonly params: {  }; readonly methods: string }'],
      [{ name: 'note', url: '/notes/:id', method: 'GET' }, '"note": { readonly path: `/notes/${string}`; readonly params: { readonly "id": string }; readonly methods: "GET" }'],
      [{ name: 'file', url: '/:user/files/*path', method: 'get, put' }, '"file": { readonly path: `/${string}/files/${string}`; readonly params: { readonly "user": string; readonly "path": string }; readonly methods: "GET" | "PUT" }'],
      [{ name: 'a"b\\c`${d}*/', url: '/a%60$/%7B' }, '"a\\"b\\\\c`${d}*/": { readonly path: `/a%60$/%7B`; readonly params: {  }; readonly methods: string }'],
      [{ name: '__proto__', url: '/ä' }, '"__proto__": { readonly path: `/%C3%A4`; readonly params: {  }; readonly methods: string }'],
    ]
    for (const [record, type] of rows) {
      const { text, problems } = typesOf({ 'routes/home.json': [{ action: 'home.mjs', ...record }] })
      assert.deepEqual(problems, [])
      assert.equal(text.split('\n')[3], `    readonly ${type}`)
    }
  })

  it('load no module and no middleware', () => {
    const { text, problems } = typesOf({
      'routes/home.json': [{ name: 'home', url: '/', action: 'missing.mjs', middleware: 'nobody, knows' }],
    })
    assert.match(text, /"home"/)
    assert.deepEqual(problems, [])
  })

  it('report the problems of route files', () => {
    const { problems } = typesOf({ 'routes/b.json': [{ name: 'b', url: 'b', action: 'home.mjs' }], 'routes/c.json': '[' })
    assert.deepEqual(problems.map(({ file }) => file), ['b.json', 'c.json'])
  })

  it('are current only as written', () => {
    const types = typesOf({})
    assert.equal(isCurrent(types), undefined)
    writeRouteTypes(types)
    assert.equal(isCurrent(types), true)
    assert.equal(isCurrent({ ...types, text: `${types.text} ` }), false)
  })
})

test('dev updates the types that exist when route files change, keeps them while a file is wrong, and makes no others', async (t) => {
  const route = (name: string) => ({ name, url: `/${name}`, action: 'a.mjs' })
  const home = { 'routes/r.json': [route('one')], 'a.mjs': "export default () => 'a'" }
  const server = await startDev(t, { ...home, 'svc.routes.d.ts': '// old' })
  const file = join(server.folder, 'svc.routes.d.ts')
  const names = (): string[] => [...readFileSync(file, 'utf8').matchAll(/^    readonly "(\w+)"/gm)].map(([, name = '']) => name)
  assert.deepEqual(names(), ['one'])
  server.write({ 'routes/r.json': [route('one'), route('two')] })
  await until(() => names().length === 2)
  writeFiles(server.folder, { 'routes/r.json': '[' })
  await until(() => server.lines().some((line) => line.includes('Cannot reload')))
  assert.deepEqual(names(), ['one', 'two'])
  rmSync(file)
  server.write({ 'routes/r.json': [route('three')] })
  await until(async () => (await fetch(`${server.url}/three`)).status === 200)
  assert.throws(names, { code: 'ENOENT' })
})
