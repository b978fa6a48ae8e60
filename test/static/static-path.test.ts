import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { dirname, join, posix } from 'node:path'
import { test } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import { contentTypeOf, isAbsent } from '../../lib/static/static-file.ts'
import { openForReading, staticPath } from '../../lib/static/static-path.ts'
import { until } from '../support/until.ts'
import { aroundOpen, withoutProc } from '../support/around-open.ts'
import { Seeded } from '../support/seeded.ts'
import { openFilesBelow, serveStatic } from './static-server.ts'

const files = {
  'a.txt': 'a',
  'sub/b.txt': 'b',
  'with space.txt': 'space',
  'caf\u00e9.txt': 'caf\u00e9',
  'percent%41.txt': 'percent',
  'a..b.txt': 'dots',
  '.secret': 'secret',
  '.git/config': 'secret',
  'sub/.env': 'secret',
  '.well-known/acme': 'token',
  '.well-known/.hidden': 'secret',
  'sub/.well-known/x': 'secret',
  'back\\slash.txt': 'secret',
}

const rows: [path: string, result: string | number][] = [
  ['/a.txt', 'a'],
  ['/%61.txt', 'a'],
  ['/sub/b.txt', 'b'],
  ['/with%20space.txt', 'space'],
  ['/caf%C3%A9.txt', 'caf\u00e9'],
  ['/percent%2541.txt', 'percent'],
  ['/percent%41.txt', 404],
  ['/a..b.txt', 'dots'],
  ['/.well-known/acme', 'token'],
  ['/A.TXT', 404],
  ['/none', 404],
  ['/', 404],
  ['//', 404],
  ['//a.txt', 404],
  ['/sub//b.txt', 404],
  ['/a.txt/', 404],
  ['/a.txt/x', 404],
  ['/./a.txt', 404],
  ['/sub/../a.txt', 404],
  ['/sub/%2e%2e/a.txt', 404],
  ['/../outside.txt', 404],
  ['/..', 404],
  ['/../', 404],
  ['/sub/../../outside.txt', 404],
  ['/%2e%2e/outside.txt', 404],
  ['/%2E%2E/outside.txt', 404],
  ['/.%2e/outside.txt', 404],
  ['/%2e./outside.txt', 404],
  ['/..%2foutside.txt', 404],
  ['/..%2Foutside.txt', 404],
  ['/%2e%2e%2foutside.txt', 404],
  ['/sub%2fb.txt', 404],
  ['/%2fa.txt', 404],
  ['/%2fetc/passwd', 404],
  ['/..\\outside.txt', 404],
  ['/..%5coutside.txt', 404],
  ['/sub\\b.txt', 404],
  ['/back%5Cslash.txt', 404],
  ['/%252e%252e/outside.txt', 404],
  ['/%252e%252e%252foutside.txt', 404],
  ['/..;/outside.txt', 404],
  ['/%ef%bc%8e%ef%bc%8e/outside.txt', 404],
  ['/.secret', 404],
  ['/%2esecret', 404],
  ['/.git/config', 404],
  ['/.git', 404],
  ['/sub/.env', 404],
  ['/.well-known', 404],
  ['/.well-known/.hidden', 404],
  ['/.well-known/../.secret', 404],
  ['/.well-known/%2e%2e/a.txt', 404],
  ['/.well-knownx/../a.txt', 404],
  ['/sub/.well-known/x', 404],
  [`/${'a'.repeat(300)}`, 404],
  [`/${'a/'.repeat(3000)}`, 404],
  ['/%', 400],
  ['/%4', 400],
  ['/%zz', 400],
  ['/a%', 400],
  ['/%ff', 400],
  ['/%c0%ae%c0%ae/outside.txt', 400],
  ['/%c0%2e', 400],
  ['/%ed%a0%80', 400],
  ['/%u002e%u002e/outside.txt', 400],
  ['/a.txt%00', 400],
  ['/%00', 400],
  ['/a.txt%00.html', 400],
]

test('serves files in the folder, and nothing else in any encoding', async (t) => {
  const server = await serveStatic(t, files)
  for (const [path, result] of rows) {
    const { status, headers, body } = await server.ask(path)
    if (typeof result === 'string') assert.deepEqual([status, body.toString()], [200, result], path)
    else assert.equal(status, result, path)
    if (result === 400) assert.equal(headers['x-code'], 'bad_path_encoding', path)
  }
  assert.equal(openFilesBelow(server.folder), 0)
})

test('returns a decoded path without a dot segment, or undefined, for any path', () => {
  const random = new Seeded(5)
  const parts = ['/', '.', '..', '%2e', '%2f', '%5c', '\\', '%', '25', '00', 'a', '\u00ff', '%c3%a9', '.well-known',
    '/']
  let taken = 0
  for (let round = 0; round < 20_000; round += 1) {
    const path = `/${Array.from({ length: random.integer(7) }, () => random.pick(parts)).join('')}`
    let decoded: string | undefined
    try {
      decoded = staticPath(path)
    } catch (error) {
      assert.ok(error instanceof HttpError && error.status === 400, path)
      continue
    }
    if (decoded === undefined) continue
    taken += 1
    assert.equal(posix.normalize(decoded), decoded, path)
    const [, first, ...others] = decoded.split('/')
    assert.ok(first === '.well-known' || first?.startsWith('.') === false, path)
    assert.ok(others.every((segment) => !segment.startsWith('.')), path)
  }
  assert.ok(taken > 500)
})

test('serves links that stay in the folder, and no others', async (t) => {
  const server = await serveStatic(t, { ...files, 'sub/index.html': 'index' })
  const parent = dirname(server.folder)
  mkdirSync(join(parent, 'public-2'))
  writeFileSync(join(parent, 'public-2', 'index.html'), 'outside')
  const links: [name: string, target: string, result: string | number][] = [
    ['in.txt', 'sub/b.txt', 'b'],
    ['absolute.txt', join(server.folder, 'a.txt'), 'a'],
    ['folder', 'sub', 301],
    ['out.txt', '../outside.txt', 404],
    ['out-absolute.txt', join(parent, 'outside.txt'), 404],
    ['passwd', '/etc/passwd', 404],
    ['hidden.txt', '.secret', 404],
    ['env.txt', 'sub/.env', 404],
    ['neighbour', '../public-2', 404],
    ['itself', 'itself', 404],
    ['broken', 'nowhere', 404],
    ['chain.txt', 'out.txt', 404],
    ['up', '..', 404],
    ['linked/index.html', '../../outside.txt', 404],
    ['null', '/dev/null', 404],
  ]
  mkdirSync(join(server.folder, 'linked'))
  for (const [name, target] of links) symlinkSync(target, join(server.folder, name))
  for (const [name, , result] of links) {
    const { status, body } = await server.ask(`/${name}`)
    if (typeof result === 'string') assert.deepEqual([status, body.toString()], [200, result], name)
    else assert.equal(status, result, name)
  }
  assert.equal((await server.ask('/folder/')).body.toString(), 'index')
  assert.equal((await server.ask('/linked')).status, 404)
  assert.equal((await server.ask('/folder/b.txt')).body.toString(), 'b')
  for (const path of ['/up/outside.txt', '/neighbour/', '/neighbour/index.html']) {
    assert.equal((await server.ask(path)).status, 404, path)
  }
})

test('stops serving a cached file once a link to the outside replaces it', async (t) => {
  const server = await serveStatic(t, { 'a.txt': 'a' })
  assert.equal((await server.ask('/a.txt')).status, 200)
  execFileSync('ln', ['-sfn', '../outside.txt', join(server.folder, 'a.txt')])
  assert.equal((await server.ask('/a.txt')).status, 404)
})

for (const system of ['with /proc', 'without /proc']) {
  for (const [size, content] of [['small', 'inside'], ['large', 'inside'.repeat(2 ** 18)]] as const) {
    test(`serves nothing through a folder that is swapped for a link between check and opening, ${size}, ${system}`,
      async (t) => {
      const server = await serveStatic(t, { 'sub/a.txt': content })
      if (system === 'without /proc') withoutProc(t)
      const [folder, moved] = [join(server.folder, 'sub'), join(server.folder, 'moved')]
      const secret = join(dirname(server.folder), 'secret')
      mkdirSync(secret)
      writeFileSync(join(secret, 'a.txt'), content.replaceAll('inside', 'secret'))
      const swap = (): void => {
        renameSync(folder, moved)
        symlinkSync(secret, folder)
      }
      const swapBack = (): void => {
        rmSync(folder)
        renameSync(moved, folder)
      }
      await t.test('and left there', async (t) => {
        aroundOpen(t, swap)
        assert.equal((await server.ask('/sub/a.txt')).status, 404)
      })
      assert.equal((await server.ask('/sub/a.txt')).status, 404)
      swapBack()
      await t.test('and swapped back', async (t) => {
        aroundOpen(t, swap, swapBack)
        assert.equal((await server.ask('/sub/a.txt')).status, 404)
      })
      const { status, body } = await server.ask('/sub/a.txt')
      assert.deepEqual([status, body.toString()], [200, content])
      await until(() => openFilesBelow(dirname(server.folder)) === 0)
    })
  }
}

test('serves a file that is replaced or removed just after it was opened', async (t) => {
  const server = await serveStatic(t, { 'a.txt': 'old', 'b.txt': 'b' })
  const file = join(server.folder, 'a.txt')
  await t.test('replaced', async (t) => {
    aroundOpen(t, () => {}, () => {
      writeFileSync(join(server.folder, 'new'), 'new')
      renameSync(join(server.folder, 'new'), file)
    })
    assert.equal((await server.ask('/a.txt')).body.toString(), 'old')
  })
  assert.equal((await server.ask('/a.txt')).body.toString(), 'new')
  await t.test('removed', async (t) => {
    aroundOpen(t, () => {}, () => rmSync(join(server.folder, 'b.txt')))
    assert.equal((await server.ask('/b.txt')).body.toString(), 'b')
  })
})

test('serves no FIFO, no socket and no folder as a file', { timeout: 10_000 }, async (t) => {
  const server = await serveStatic(t, { 'folder.txt/x': '' })
  execFileSync('mkfifo', [join(server.folder, 'fifo')])
  const socket = createServer()
  t.after(() => socket.close())
  await once(socket.listen(join(server.folder, 'socket')), 'listening')
  for (const path of ['/fifo', '/socket', '/folder.txt',
    '/folder.txt/']) assert.equal((await server.ask(path)).status, 404, path)
})

test('opens a FIFO without blocking, and a link not at all, if they replace a file', { timeout: 10_000 },
  async (t) => {
  const server = await serveStatic(t, { 'a.txt': 'a' })
  execFileSync('mkfifo', [join(server.folder, 'fifo')])
  symlinkSync('a.txt', join(server.folder, 'link'))
  const handle = await openForReading(join(server.folder, 'fifo'))
  assert.equal((await handle.stat()).isFile(), false)
  await handle.close()
  await assert.rejects(openForReading(join(server.folder, 'link')), (error) => isAbsent(error))
})

test('answers 500 with the reason for a file that cannot be read', async (t) => {
  const server = await serveStatic(t, { 'a.txt': 'a', 'closed/b.txt': 'b', 'c.txt': 'c' })
  chmodSync(dirname(server.folder), 0o755)
  chmodSync(join(server.folder, 'a.txt'), 0)
  chmodSync(join(server.folder, 'closed'), 0)
  const { geteuid, seteuid } = process
  const privileged = geteuid?.() === 0
  if (privileged) seteuid?.(65_534)
  try {
    for (const path of ['/a.txt', '/closed/b.txt']) {
      const { status, headers, body } = await server.ask(path)
      assert.deepEqual([status, headers['x-code']], [500, 'internal_error'])
      assert.match(body.toString(), new RegExp(`^Cannot serve the file of ${path}: Error: EACCES`))
    }
    assert.equal((await server.ask('/c.txt')).status, 200)
    assert.equal(openFilesBelow(server.folder), 0)
  } finally {
    if (privileged) seteuid?.(0)
    chmodSync(join(server.folder, 'closed'), 0o700)
  }
})

const typeRows: [string, string][] = [
  ['/a.html', 'text/html; charset=utf-8'],
  ['/a.HTML', 'text/html; charset=utf-8'],
  ['/a.js', 'text/javascript; charset=utf-8'],
  ['/a.json', 'application/json'],
  ['/a.svg', 'image/svg+xml'],
  ['/a.tar.gz', 'application/gzip'],
  ['/a.webmanifest', 'application/manifest+json'],
  ['/a', 'application/octet-stream'],
  ['/a.', 'application/octet-stream'],
  ['/a.unknown', 'application/octet-stream'],
  ['/a.constructor', 'application/octet-stream'],
  ['/folder.html/a', 'application/octet-stream'],
]
for (const [name, type] of typeRows) {
  test(`declares ${name} as ${type}`, () => assert.equal(contentTypeOf(name), type))
}
