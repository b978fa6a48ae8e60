// The types of the routes as a compiler sees them, in the application that `init --ts` makes.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { initApplication, typeScriptFiles } from '../../lib/commands/init.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { routeTypesOf, writeRouteTypes } from '../../lib/describe/route-types.ts'
import { writeFiles } from '../support/application.ts'
import { root } from '../support/launch.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A line for each place that names a route or its parameter; `declare` and imports aside. */
const uses = `import type { Action, App, Context, RoutePath, TestApp, WebSocketHandlers } from 'svc'
declare const ctx: Context
declare const app: App
declare const test: TestApp
ctx.url('note', { id: 7 })
ctx.redirect({ route: 'note', params: { id: 'a' } }, 303)
app.url('note', { id: 7 })
await test.client().get(test.url('note', { id: 7 }))
export const show: Action<'note'> = ({ params }) => params.id
export const titleOf = (one: Context<'note'>): string => one.params.id
export const websocket: WebSocketHandlers<'note'> = { open: (ws, { params }) => ws.send(params.id) }
export const path: RoutePath<'note'> = \`/notes/\${7}\`
`
const others = `import type { Action, Context, RouteMethod, RouteName } from 'svc'
declare const ctx: Context
ctx.url('home')
ctx.url('home', {})
ctx.url('a "quoted" name')
ctx.url('files', { path: 'a/b' })
ctx.redirect({ route: 'home' })
ctx.redirect('/anywhere', 307)
export const plain: Action = ({ params }) => params.anything
export const byPattern: Action<'/any/:thing'> = ({ params }) => params.thing
export const method: RouteMethod<'files'> = 'PUT'
export const open = (one: Context): string | undefined => one.params.anything
export const name = (one: RouteName): string => one
// @ts-expect-error There is no such route.
ctx.url('hom')
// @ts-expect-error The parameter is missing.
ctx.url('note')
// @ts-expect-error The parameter is missing.
ctx.url('note', {})
// @ts-expect-error The route has no such parameter.
ctx.url('note', { id: 7, page: 2 })
// @ts-expect-error The route has no parameters.
ctx.url('home', { id: 7 })
// @ts-expect-error There is no such route.
ctx.redirect({ route: 'hom' })
// @ts-expect-error The parameter is missing.
ctx.redirect({ route: 'note' })
// @ts-expect-error There is no such route.
export const wrong: Action<'hom'> = () => ''
// @ts-expect-error The route has no such parameter.
export const other: Action<'note'> = ({ params }) => params.key
// @ts-expect-error The route has no such method.
export const post: RouteMethod<'files'> = 'POST'
`

describe('svc.routes.d.ts', () => {
  const folder = join(temporaryFolder(), 'app')
  before(() => {
    initApplication(folder, typeScriptFiles)
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    writeFiles(folder, { 'uses.ts': uses, 'others.ts': others })
  })

  /** Writes the types of these routes and of the page, and returns the lines of a file that do not compile. */
  function wrongLines(file: string, note: object): number[] {
    const routes = [
      { name: 'home', url: '/' },
      { name: 'a "quoted" name', url: '/quoted' },
      { name: 'files', url: '/files/*path', method: 'GET,PUT' },
      note,
    ]
    writeFiles(folder, { 'routes/app.json': routes.map((route) => ({ action: 'routes/home.ts', ...route })) })
    writeRouteTypes(routeTypesOf(loadConfig(join(folder, 'svc.json'))))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const { stdout } = spawnSync(process.execPath, [compiler], { cwd: folder, encoding: 'utf8' })
    return [...new Set([...stdout.matchAll(new RegExp(`^${file}\\((\\d+),`, 'gm'))].map(([, line]) => Number(line)))]
  }

  it('makes the compiler accept the routes that exist, and no others', () => {
    const note = { name: 'note', url: '/notes/:id' }
    assert.deepEqual([wrongLines('uses.ts', note), wrongLines('others.ts', note)], [[], []])
  })

  it('makes each use of a renamed route fail', () => {
    assert.deepEqual(wrongLines('uses.ts', { name: 'memo', url: '/notes/:id' }), [5, 6, 7, 8, 9, 10, 11, 12])
  })

  it('makes each use of a renamed parameter fail', () => {
    assert.deepEqual(wrongLines('uses.ts', { name: 'note', url: '/notes/:key' }), [5, 6, 7, 8, 9, 10, 11])
  })

  it('makes the use of a changed path fail', () => {
    assert.deepEqual(wrongLines('uses.ts', { name: 'note', url: '/memos/:id' }), [12])
  })
})
