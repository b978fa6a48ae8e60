import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkChangedBytes, fill, page } from './disk-cache-support.ts'
import { asOrdinaryUser, makeViews, writeFiles } from './make-views.ts'

test('loads a compiled view from disk in a later process', () => {
  const { later } = fill()
  const { views, problems } = later()
  assert.equal(views.render('sub/v.html', { title: 'T' }, {}), page)
  assert.equal(views.render('sub/v.html', { title: 'T' }, {}), page)
  assert.deepEqual([views.hits, views.misses, problems], [2, 0, []])
})

test('reports file and line of an error in a view from disk', () => {
  const { later } = fill()
  assert.throws(() => later().views.render('sub/v.html', {}, {}), { message: 'sub/v.html:1: unknown name "title"' })
})

test('loads from disk each time when nothing is kept in memory', () => {
  const { later } = fill()
  const { views } = later({ ram: false })
  for (let round = 0; round < 3; round++) assert.equal(views.render('sub/v.html', { title: 'T' }, {}), page)
  assert.deepEqual([views.hits, views.misses], [3, 0])
})

test('writes a checksum, a readable header and the source, for this user only', () => {
  const { root, entry } = fill()
  const text = readFileSync(entry, 'utf8')
  const [, line = '', ...source] = text.split('\n')
  const header = JSON.parse(line) as Record<string, unknown>
  assert.equal(header['version'], `1.0.0 (Node ${process.version})`)
  assert.deepEqual(header['files'], ['sub/v.html', 'i.html'])
  assert.deepEqual(header['absent'], ['sub/i.html'])
  assert.match(source.join('\n'), /^svc\$at = 0;\nsvc\$out \+= svc\$escape\(\(title\)\);/)
  assert.equal(statSync(entry).mode & 0o777, 0o600)
  for (const folder of ['.cached', '.cached/views', '.cached/views/sub']) {
    assert.equal(statSync(join(root, folder)).mode & 0o777, 0o700)
  }
  assert.deepEqual(readdirSync(join(root, '.cached/views/sub')), ['v.hrb'])
})

test('writes the readable source only on request', () => {
  const { root } = fill({ readable: true })
  const text = readFileSync(join(root, '.cached/views/sub/__v.prg'), 'utf8')
  assert.match(text, /^\/\/ sub\/v\.html, i\.html\n\/\/ names: title\n/)
  assert.match(text, /^\/\/ {3}1 = i\.html:1$/m)
  assert.match(text, /svc\$escape\(\(title\)\);/)
})

const changes: readonly (readonly [what: string, change: (root: string) => void, page: string])[] = [
  ['the view', (root) => writeFiles(root, { 'sub/v.html': 'new\n' }), 'new\n'],
  ['an included view', (root) => writeFiles(root, { 'i.html': 'j {{ title }}\n' }), 'T\nj T\n'],
  ['which file is included', (root) => writeFiles(root, { 'sub/i.html': 'nearer\n' }), 'T\nnearer\n'],
]

for (const [what, change, expected] of changes) {
  test(`recompiles, and writes, after a change in ${what}`, () => {
    const { root, later } = fill()
    change(root)
    const second = later()
    assert.equal(second.views.render('sub/v.html', { title: 'T' }, {}), expected)
    assert.deepEqual([second.views.hits, second.views.misses, second.problems], [0, 1, []])
    const third = later()
    assert.equal(third.views.render('sub/v.html', { title: 'T' }, {}), expected)
    assert.deepEqual([third.views.hits, third.views.misses, third.problems], [1, 0, []])
  })
}

test('recompiles for another version of the server', () => {
  const { later } = fill()
  const { views, problems } = later({ version: '1.0.1' })
  assert.equal(views.render('sub/v.html', { title: 'T' }, {}), page)
  assert.deepEqual([views.hits, views.misses, problems], [0, 1, []])
})

test('detects that an included view is missing although the entry has it', () => {
  const { root, later } = fill()
  writeFiles(root, { 'sub/w.html': "@view 'only.html'\n", 'only.html': 'x' })
  later().views.check('sub/w.html')
  writeFiles(root, { 'only.html': 'y' })
  assert.equal(later().views.render('sub/w.html', {}, {}), 'y')
  rmSync(join(root, 'only.html'))
  assert.throws(() => later().views.check('sub/w.html'), { message: /^sub\/w\.html:1: there is no view "only\.html"/ })
})

/** Damages an entry; each damage must be detected, reported and repaired. */
const damages: readonly (readonly [what: string, damage: (text: string) => string | Buffer])[] = [
  ['empty', () => ''],
  ['cut in the header', (text) => text.slice(0, 40)],
  ['cut in the source', (text) => text.slice(0, -10)],
  ['longer', (text) => `${text}\nsvc$out += 'x'`],
  ['of other source', (text) => text.replace('svc$out += "\\n', 'svc$out += "\\t')],
  ['of other places', (text) => text.replace('[[0,1]', '[[0,2]')],
  ['without header', (text) => text.slice(text.indexOf('\n') + 1)],
  ['of no text', () => Buffer.from([0, 255, 254, 10, 128])],
]

for (const [what, damage] of damages) {
  test(`repairs an entry that is ${what}`, () => {
    const { entry, later } = fill()
    const before = readFileSync(entry, 'utf8')
    const damaged = damage(before)
    assert.notEqual(damaged, before)
    writeFileSync(entry, damaged)
    const { views, problems } = later()
    assert.equal(views.render('sub/v.html', { title: 'T' }, {}), page)
    assert.deepEqual([views.hits, views.misses, problems.length], [0, 1, 1])
    assert.match(problems[0] ?? '', /^Cannot use the compiled view .*\.hrb: .*; it is compiled again$/)
    assert.equal(readFileSync(entry, 'utf8'), before)
  })
}

test('does not use the entry of another view', () => {
  const { root, entry, later } = fill()
  writeFiles(root, { 'other.html': 'other' })
  later().views.check('other.html')
  writeFileSync(entry, readFileSync(join(root, '.cached/views/other.hrb')))
  const { views, problems } = later()
  assert.equal(views.render('sub/v.html', { title: 'T' }, {}), page)
  assert.match(problems.join(), /it belongs to other\.html/)
})

test('uses no entry that another user can write', () => {
  const { entry, later } = fill()
  chmodSync(entry, 0o622)
  const { views, problems } = later()
  assert.equal(views.render('sub/v.html', { title: 'T' }, {}), page)
  assert.match(problems.join(), /other users can write it/)
  assert.equal(statSync(entry).mode & 0o777, 0o600)
})

test('survives each single byte changed at random', () => checkChangedBytes(60))

test('reports once that the folder cannot be written, and renders', () => {
  const { views, root, problems } = makeViews({ 'a.html': 'a', 'b.html': 'b', '.cached': 'a file' }, { disk: true })
  assert.equal(views.render('a.html', {}, {}) + views.render('b.html', {}, {}), 'ab')
  const told = problems.filter((message) => message.startsWith('Cannot write compiled views to '))
  assert.equal(told.length, 1)
  assert.match(told[0] ?? '', new RegExp(`^Cannot write compiled views to ${root}/\\.cached/views: .*memory only$`))
})

test('renders with a folder that it cannot write', () => {
  const { views, root, problems } = makeViews({ 'a.html': 'a' }, { disk: true })
  chmodSync(root, 0o555)
  asOrdinaryUser(() => assert.equal(views.render('a.html', {}, {}), 'a'))
  chmodSync(root, 0o700)
  assert.equal(problems.length, 1)
  assert.match(problems[0] ?? '', /^Cannot write compiled views to .*EACCES/)
})

test('leaves no half-written file when an entry cannot be renamed', () => {
  const { views, root, problems } = makeViews({ 'a.html': 'a', '.cached/views/a.hrb/x': '' }, { disk: true })
  assert.equal(views.render('a.html', {}, {}), 'a')
  assert.match(problems.join('\n'), /^Cannot use the compiled view .*EISDIR.*\nCannot write compiled views to /)
  assert.deepEqual(readdirSync(join(root, '.cached/views')), ['a.hrb'])
})

test('clears what it wrote, at every depth, and nothing else', () => {
  const { root, later } = fill({ readable: true })
  const { views } = later()
  writeFiles(root, { 'a.html': 'a' })
  assert.equal(views.render('a.html', {}, {}), 'a')
  const folder = join(root, '.cached/views')
  writeFiles(folder, { 'keep.txt': '', 'sub/keep.prg': '', '__keep.prg.bak': '' })
  writeFiles(folder, { 'x/y/old.hrb': '', 'x/y/__old.prg': '' })
  mkdirSync(join(folder, 'folder.hrb'))
  assert.deepEqual(views.clear(), { deleted: 6, path: folder })
  assert.deepEqual(views.clear(), { deleted: 0, path: folder })
  const left = readdirSync(folder, { recursive: true }).map(String).sort()
  assert.deepEqual(left, ['__keep.prg.bak', 'folder.hrb', 'keep.txt', 'sub', 'sub/keep.prg', 'x', 'x/y'])
  const { hits } = views
  assert.equal(views.render('a.html', {}, {}), 'a')
  assert.equal(views.hits, hits + 1)
  assert.ok(!existsSync(join(folder, 'a.hrb')))
})

test('clears a missing folder', () => {
  const { views, root, problems } = makeViews({}, { disk: true })
  assert.deepEqual(views.clear(), { deleted: 0, path: join(root, '.cached/views') })
  assert.deepEqual(problems, [])
})

test('reports what it could not clear', () => {
  const { root, later } = fill()
  const { views, problems } = later()
  const folder = join(root, '.cached/views')
  for (const path of [root, join(root, '.cached'), folder]) chmodSync(path, 0o755)
  chmodSync(join(folder, 'sub'), 0o555)
  asOrdinaryUser(() => assert.deepEqual(views.clear(), { deleted: 0, path: folder }))
  chmodSync(join(folder, 'sub'), 0o700)
  assert.match(problems.join(), /^Cannot delete compiled views in .*\/sub: EACCES/)
})
