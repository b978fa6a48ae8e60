/**
 * `npm run bench -- router`: finding a route, against find-my-way and rou3 (as it is, and compiled), over the same
 * routes and the same paths; then changing and loading a table of 10,000 routes.
 *
 * Surprise: every path is a new string, as on a server. A path looked up twice has its hash ready, and a constant is
 * interned: either flatters a router that looks paths up in a table.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parsePattern } from '../../lib/routing/pattern.ts'
import { Registry } from '../../lib/routing/registry.ts'
import type { Route } from '../../lib/routing/route.ts'
import { readRouteFiles } from '../../lib/application/route-files.ts'
import { Seeded } from '../support/seeded.ts'
import { installPeers, peersFolder, requirePeer, versionOf } from './support/peers.ts'
import { median } from './support/statistics.ts'

interface Peers {
  findMyWay: () => FindMyWay
  createRouter: () => object
  addRoute: (router: object, method: string, pattern: string, data: string) => void
  findRoute: (router: object, method: string, path: string) => Rou3Match | undefined
  compileRouter: (router: object) => (method: string, path: string) => Rou3Match | undefined
}

interface FindMyWay {
  on: (method: string, pattern: string, handler: () => void) => void
  find: (method: string, path: string) => { params: Record<string, string> } | null
}

interface Rou3Match {
  data: string
  params?: Record<string, string>
}

/** One way through a set of paths. Returns the number of found routes and read characters, for all routers the same. */
type Run = (paths: readonly string[]) => number

/**
 * An object without members of its own or inherited. `Object.create(null)` makes one that V8 keeps as a hash table,
 * at thrice the cost.
 */
function NullObject(): void {}
NullObject.prototype = Object.create(null)
const Params = NullObject as unknown as new () => object // a function is a constructor, which its type does not say

const pathsPerRound = 20_000
const rounds = 21
const kinds = ['static', '1 parameter', '3 parameters', 'miss'] as const
type Kind = (typeof kinds)[number]

const seeded = new Seeded(1)
const peers = await loadPeers()

console.log(`Node ${process.version}; ns a find, median of ${rounds} alternating rounds of ${pathsPerRound} paths\n`)
for (const size of [15, 600, 10_000]) compare(size)
measureFewOfMany()
measureChanges()
measureLoading()

function compare(size: number): void {
  const routes = size === 15 ? mixedRoutes() : generatedRoutes(size)
  const runs: Record<string, Run> = {
    svc: ours(routes),
    'svc, names': oursWithNames(routes),
    'find-my-way': findMyWay(routes),
    rou3: rou3(routes),
    'rou3 compiled': rou3Compiled(routes),
  }
  printRow(`${routes.length} routes`, [...Object.keys(runs), '/fmw', '/rou3', '/compiled'])
  for (const kind of kinds) {
    const medians = measure(runs, size, kind)
    const [first = 0, , way = 0, plain = 0, compiled = 0] = medians
    const ratios = [way, plain, compiled].map((other) => `${(other / first).toFixed(2)}x`)
    printRow(kind, [...medians.map((ns) => ns.toFixed(0)), ...ratios])
  }
  console.log()
}

function printRow(name: string, cells: readonly string[]): void {
  console.log(name.padEnd(16) + cells.map((cell) => cell.padStart(14)).join(''))
}

function measure(runs: Record<string, Run>, size: number, kind: Kind): number[] {
  const list = Object.values(runs)
  const times = list.map((): number[] => [])
  for (let round = -5; round < rounds; round += 1) {
    const bytes = Array.from({ length: pathsPerRound }, () => Buffer.from(somePath(size, kind)))
    const sums = new Set<number>()
    for (let turn = 0; turn < list.length; turn += 1) {
      const at = (turn + round + 5) % list.length
      const paths = bytes.map((path) => path.toString('latin1'))
      const begin = process.hrtime.bigint()
      sums.add(list[at]?.(paths) ?? 0)
      const ns = Number(process.hrtime.bigint() - begin)
      if (round >= 0) times[at]?.push(ns / pathsPerRound)
    }
    if (sums.size !== 1) throw new Error(`the routers disagree on ${kind} paths: ${[...sums].join(', ')}`)
  }
  return times.map(median)
}

function ours(routes: readonly (readonly [string, string])[]): Run {
  const registry = registryOf(routes)
  return (paths) => {
    let sum = 0
    for (const path of paths) {
      const match = registry.find('GET', path)
      if (match === undefined) continue
      sum += 1
      for (let index = 0; index < match.values.length; index += 1) sum += (match.values[index] as string).length
    }
    return sum
  }
}

function oursWithNames(routes: readonly (readonly [string, string])[]): Run {
  const registry = registryOf(routes)
  return (paths) => {
    let sum = 0
    for (const path of paths) {
      const match = registry.find('GET', path)
      if (match === undefined) continue
      sum += 1
      if (match.values.length === 0) continue
      const params = new Params() as Record<string, string>
      const { names } = match.route.pattern
      for (let index = 0; index < names.length; index += 1) {
        params[names[index] as string] = match.values[index] as string
      }
      for (const name in params) sum += (params[name] as string).length
    }
    return sum
  }
}

function findMyWay(routes: readonly (readonly [string, string])[]): Run {
  const router = peers.findMyWay()
  for (const [method, pattern] of routes) router.on(method, pattern.replace(/\*\w+$/, '*'), () => {})
  return (paths) => {
    let sum = 0
    for (const path of paths) {
      const match = router.find('GET', path)
      if (match !== null) sum += 1 + lengths(match.params)
    }
    return sum
  }
}

function rou3(routes: readonly (readonly [string, string])[]): Run {
  const router = rou3Router(routes)
  return (paths) => {
    let sum = 0
    for (const path of paths) {
      const match = peers.findRoute(router, 'GET', path)
      if (match !== undefined) sum += 1 + lengths(match.params)
    }
    return sum
  }
}

function rou3Compiled(routes: readonly (readonly [string, string])[]): Run {
  const find = peers.compileRouter(rou3Router(routes))
  return (paths) => {
    let sum = 0
    for (const path of paths) {
      const match = find('GET', path)
      if (match !== undefined) sum += 1 + lengths(match.params)
    }
    return sum
  }
}

function lengths(params: Record<string, string> | undefined): number {
  let sum = 0
  for (const name in params) sum += (params[name] as string).length
  return sum
}

function rou3Router(routes: readonly (readonly [string, string])[]): object {
  const router = peers.createRouter()
  for (const [method, pattern] of routes) peers.addRoute(router, method, pattern.replace(/\*(\w+)$/, '**:$1'), pattern)
  return router
}

function registryOf(routes: readonly (readonly [string, string])[]): Registry<string> {
  const registry = new Registry<string>()
  for (const [index, [method, url]] of routes.entries()) registry.add(routeOf(`bench.${index}`, method, url))
  return registry
}

function routeOf(name: string, method: string, url: string): Route<string> {
  const record = { name, url, method, action: 'bench.js', middleware: '', scope: '' }
  return { record, pattern: parsePattern(url), system: false, target: name }
}

function mixedRoutes(): (readonly [string, string])[] {
  return [
    ['GET', '/'], ['GET', '/health'], ['GET', '/users'], ['POST', '/users'], ['GET', '/users/:id'],
    ['PUT', '/users/:id'], ['DELETE', '/users/:id'], ['GET', '/users/:id/posts'], ['GET', '/users/:id/posts/:post'],
    ['GET', '/users/:id/posts/:post/comments/:comment'], ['GET', '/articles/latest'], ['POST', '/articles'],
    ['GET', '/articles/:slug'], ['GET', '/api/v1/status'], ['GET', '/files/*path'],
  ]
}

function generatedRoutes(size: number): (readonly [string, string])[] {
  return Array.from({ length: size / 5 }, (_, index) => `/api/v1/${resource(index)}`).flatMap((base) => [
    ['GET', base] as const,
    ['POST', base] as const,
    ['GET', `${base}/:id`] as const,
    ['PUT', `${base}/:id`] as const,
    ['GET', `${base}/:id/parts/:part/notes/:note`] as const,
  ])
}

function resource(index: number): string {
  return `${['order', 'customer', 'invoice', 'picture', 'tag'][index % 5] ?? ''}-${index.toString(36)}`
}

function somePath(size: number, kind: Kind): string {
  const [a, b, c] = [seeded.integer(1e6), seeded.integer(1e4), seeded.integer(1e9)]
  if (size === 15) {
    if (kind === 'static') return seeded.pick(['/health', '/users', '/articles/latest', '/api/v1/status'])
    if (kind === '1 parameter') return seeded.pick([`/users/${a}`, `/articles/on-the-matter-of-${b}`])
    if (kind === '3 parameters') return `/users/${a}/posts/${b}/comments/${c}`
    return seeded.pick([`/nothing/${a}`, `/users/${a}/likes`, '/wp-login.php', `/api/v1/${b}`])
  }
  const base = `/api/v1/${resource(seeded.integer(size / 5))}`
  if (kind === 'static') return base
  if (kind === '1 parameter') return `${base}/${a}`
  if (kind === '3 parameters') return `${base}/${a}/parts/${b}/notes/${c}`
  return seeded.pick([`/nothing/${a}`, `${base}/${a}/likes`, '/wp-login.php', `/api/v1/unknown-${b}`])
}

/** A route that is added or deleted makes a new table of all. */
function measureChanges(): void {
  const registry = registryOf(generatedRoutes(10_000))
  const times: number[] = []
  const list = registry.list()
  for (let index = 0; index < 50; index += 1) {
    const begin = process.hrtime.bigint()
    registry.replaceApplication([...list, routeOf(`new.${index}`, 'GET', `/api/v1/new-${index}/:id`)])
    times.push(Number(process.hrtime.bigint() - begin) / 1e6)
  }
  const [middle, worst] = [median(times).toFixed(1), Math.max(...times).toFixed(1)]
  console.log(`a new table of 10,000 routes: median ${middle} ms, worst ${worst} ms`)
}

/**
 * Whether a look-up is flat: the same 5 resources are asked for, in tables of 5, 200 and 3,334 with 3 routes each.
 * A few nanoseconds matter here, and a collection costs hundreds: hence many rounds, and the lower quartile.
 */
function measureFewOfMany(): void {
  const tables = [5, 200, 3_334].map((count) => {
    const urls = (at: number): string[] => [`/res${at}/list`, `/res${at}/:id`, `/res${at}/:a/x/:b/y/:c`]
    return registryOf(Array.from({ length: count }, (_, at) => urls(at).map((url) => ['GET', url] as const)).flat())
  })
  const paths: Readonly<Record<Kind, (index: number) => string>> = {
    static: (index) => `/res${index % 5}/list`,
    '1 parameter': (index) => `/res${index % 5}/${index}`,
    '3 parameters': (index) => `/res${index % 5}/a${index}/x/b/y/c`,
    miss: (index) => `/none${index}/x`,
  }
  const sizes = tables.map((table) => table.list().length).join(', ')
  console.log(`ns a find, lower quartile of ${3 * rounds} rounds, 5 resources asked for in tables of ${sizes} routes`)
  for (const kind of kinds) {
    const times = tables.map((): number[] => [])
    const bytes = Array.from({ length: pathsPerRound }, (_, index) => Buffer.from(paths[kind](index)))
    for (let round = -5; round < 3 * rounds; round += 1) {
      for (let turn = 0; turn < tables.length; turn += 1) {
        const at = (turn + round + 5) % tables.length
        const fresh = bytes.map((each) => each.toString('latin1'))
        const table = tables[at]
        const begin = process.hrtime.bigint()
        let found = 0
        for (const path of fresh) if (table?.find('GET', path) !== undefined) found += 1
        const ns = Number(process.hrtime.bigint() - begin)
        if (round >= 0) times[at]?.push(ns / pathsPerRound)
        if (found !== (kind === 'miss' ? 0 : pathsPerRound)) throw new Error(`${found} paths of ${kind} were found`)
      }
    }
    const quartiles = times.map((list) => list.toSorted((a, b) => a - b)[list.length >> 2] ?? Number.NaN)
    console.log(kind.padEnd(16) + quartiles.map((ns) => ns.toFixed(0).padStart(8)).join(''))
  }
  console.log()
}

function measureLoading(): void {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  try {
    const action = 'bench/show.js@run'
    const routes = generatedRoutes(10_000)
    const records = routes.map(([method, url], index) => ({ name: `bench.${index}`, url, method, action }))
    for (let file = 0; file < 10; file += 1) {
      const part = records.slice(file * 1_000, file * 1_000 + 1_000)
      writeFileSync(join(folder, `${file}.json`), JSON.stringify(part, null, 2))
    }
    const times = Array.from({ length: 7 }, () => {
      const registry = new Registry<string>()
      const begin = process.hrtime.bigint()
      const { files } = readRouteFiles(folder, { root: folder, middlewareKnown: () => true })
      const good = files.flatMap((file) => file.records)
      registry.replaceApplication(good.map((entry) => ({ ...entry, system: false, target: entry.record.name })))
      const { length } = registry.list()
      if (length !== 10_000) throw new Error(`${length} routes were loaded`)
      return Number(process.hrtime.bigint() - begin) / 1e6
    })
    const [first, middle] = [(times[0] ?? 0).toFixed(0), median(times).toFixed(0)]
    console.log(`load 10,000 routes from 10 files: first ${first} ms, median ${middle} ms`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function loadPeers(): Promise<Peers> {
  installPeers('rou3', 'find-my-way')
  const load = async (name: string): Promise<Record<string, unknown>> => import(pathToFileURL(rou3File(name)).href)
  const rou3File = (name: string): string => join(peersFolder, 'node_modules', 'rou3', 'dist', name)
  for (const name of ['find-my-way', 'rou3']) console.log(`${name} ${versionOf(name)}`)
  // The peers are no dependency, so their types are not there to check against.
  return {
    findMyWay: requirePeer('find-my-way') as Peers['findMyWay'],
    ...(await load('index.mjs')),
    ...(await load('compiler.mjs')),
  } as Peers
}
