import assert from 'node:assert/strict'
import fs, { chmodSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { asOrdinaryUser, makeViews, writeFiles } from './make-views.ts'

test('compiles a view once and counts', () => {
  const { views } = makeViews({ 'v.html': '{{ a }}' })
  for (let a = 0; a < 3; a++) assert.equal(views.render('v.html', { a }, {}), String(a))
  views.check('v.html')
  assert.deepEqual([views.hits, views.misses], [3, 1])
})

test('compiles a view each time with no cache', () => {
  const { views, root } = makeViews({ 'v.html': 'a' }, { ram: false })
  assert.equal(views.render('v.html', {}, {}), 'a')
  writeFiles(root, { 'v.html': 'b' })
  assert.equal(views.render('v.html', {}, {}), 'b')
  assert.deepEqual([views.hits, views.misses], [0, 2])
})

test('detects a change of the view, its includes and its layout at once', () => {
  const { views, root } = makeViews({
    'v.html': "@layout 'l.html'\n@section x\nv1\n@view 'i.html'\n@endsection\n",
    'l.html': 'l1\n@yield x\n',
    'i.html': 'i1\n',
  })
  assert.equal(views.render('v.html', {}, {}), 'l1\nv1\ni1\n')
  writeFiles(root, { 'i.html': 'i2\n' })
  assert.equal(views.render('v.html', {}, {}), 'l1\nv1\ni2\n')
  writeFiles(root, { 'l.html': 'l2\n@yield x\n' })
  assert.equal(views.render('v.html', {}, {}), 'l2\nv1\ni2\n')
  writeFiles(root, { 'v.html': 'plain\n' })
  assert.equal(views.render('v.html', {}, {}), 'plain\n')
})

test('detects each of many changes of the same length, however fast', () => {
  const { views, root } = makeViews({ 'v.html': 'start' })
  for (let round = 100; round < 400; round++) {
    writeFileSync(join(root, 'v.html'), `#${round}#`)
    assert.equal(views.render('v.html', {}, {}), `#${round}#`)
  }
})

test('detects a change that keeps length and modification time', async () => {
  const { views, root } = makeViews({ 'v.html': 'one', 'w.html': 'two' })
  const path = join(root, 'v.html')
  const time = new Date('2020-01-01T00:00:00Z')
  utimesSync(path, time, time)
  await delay(150)
  for (let round = 0; round < 3; round++) assert.equal(views.render('v.html', {}, {}), 'one')
  writeFileSync(path, 'ONE')
  utimesSync(path, time, time)
  await nextTurn()
  assert.equal(views.render('v.html', {}, {}), 'ONE')
  await delay(150)
  for (let round = 0; round < 3; round++) assert.equal(views.render('v.html', {}, {}), 'ONE')
  utimesSync(join(root, 'w.html'), time, time)
  renameSync(join(root, 'w.html'), path)
  await nextTurn()
  assert.equal(views.render('v.html', {}, {}), 'two')
})

test('stops reading the files once their timestamps are old', async (t) => {
  const { views } = makeViews({ 'v.html': 'text' })
  await delay(150)
  for (let round = 0; round < 2; round++) views.check('v.html')
  const read = spyOn(t, 'readFileSync')
  for (let round = 0; round < 5; round++) assert.equal(views.render('v.html', {}, {}), 'text')
  assert.equal(read.callCount(), 0)
  views.check('./v.html')
  assert.equal(read.callCount(), 1)
})

test('uses a file that appears earlier in the order', () => {
  const { views, root } = makeViews({ 'sub/v.html': "sub v\n@view 'i.html'\n", 'i.html': 'root i\n' })
  assert.equal(views.render('v.html', {}, {}, 'sub/a.js'), 'sub v\nroot i\n')
  writeFiles(root, { 'sub/i.html': 'sub i\n' })
  assert.equal(views.render('v.html', {}, {}, 'sub/a.js'), 'sub v\nsub i\n')
  writeFiles(root, { 'v.html': 'root v\n' })
  assert.equal(views.render('v.html', {}, {}, 'sub/a.js'), 'root v\n')
  rmSync(join(root, 'v.html'))
  rmSync(join(root, 'sub/i.html'))
  assert.equal(views.render('v.html', {}, {}, 'sub/a.js'), 'sub v\nroot i\n')
})

test('reports a removed view, and uses it again when it is back', () => {
  const { views, root } = makeViews({ 'v.html': "@view 'i.html'\n", 'i.html': 'i' })
  assert.equal(views.render('v.html', {}, {}), 'i')
  rmSync(join(root, 'i.html'))
  assert.throws(() => views.render('v.html', {}, {}), { message: /^v\.html:1: there is no view "i\.html"/ })
  writeFiles(root, { 'i.html': 'again' })
  assert.equal(views.render('v.html', {}, {}), 'again')
  rmSync(join(root, 'v.html'))
  assert.throws(() => views.render('v.html', {}, {}), { message: /^v\.html: there is no view "v\.html"/ })
})

test('reports a mistake on every render, and renders once it is fixed', () => {
  const { views, root } = makeViews({ 'v.html': '{{ a' })
  for (let round = 0; round < 2; round++) assert.throws(() => views.render('v.html', {}, {}), { name: 'ViewError' })
  writeFiles(root, { 'v.html': 'fine' })
  assert.equal(views.render('v.html', {}, {}), 'fine')
})

test('detects a link that is pointed elsewhere', () => {
  const { views, root } = makeViews({ 'a.html': 'a', 'b.html': 'b' })
  symlinkSync('a.html', join(root, 'v.html'))
  assert.equal(views.render('v.html', {}, {}), 'a')
  rmSync(join(root, 'v.html'))
  symlinkSync('b.html', join(root, 'v.html'))
  assert.equal(views.render('v.html', {}, {}), 'b')
})

test('keeps a bounded number of views, however their names are written', () => {
  const { views } = makeViews({ 'v.html': 'v' })
  for (let round = 0; round < 1001; round++) views.check(`${'./'.repeat(round)}v.html`)
  assert.deepEqual([views.hits, views.misses], [0, 1001])
  views.check(`${'./'.repeat(1000)}v.html`)
  assert.deepEqual([views.hits, views.misses], [1, 1001])
  views.check('v.html')
  assert.deepEqual([views.hits, views.misses], [1, 1002])
})

test('renders a change of several files that other views share', () => {
  const files = { 'a.html': "a\n@view 'i.html'\n", 'b.html': "b\n@view 'i.html'\n", 'i.html': '1\n' }
  const { views, root } = makeViews(files)
  assert.equal(views.render('a.html', {}, {}) + views.render('b.html', {}, {}), 'a\n1\nb\n1\n')
  writeFiles(root, { 'i.html': '2\n' })
  assert.equal(views.render('a.html', {}, {}) + views.render('b.html', {}, {}), 'a\n2\nb\n2\n')
})

test('keeps two sets of views in one process apart', () => {
  const one = makeViews({ 'v.html': 'one' })
  const two = makeViews({ 'v.html': 'two' })
  assert.equal(one.views.render('v.html', {}, {}) + two.views.render('v.html', {}, {}), 'onetwo')
  assert.deepEqual([one.views.misses, two.views.misses], [1, 1])
})

test('reports that a kept view is no longer reachable', () => {
  const { views, root } = makeViews({ 'sub/v.html': 'v' })
  chmodSync(root, 0o755)
  assert.equal(views.render('sub/v.html', {}, {}), 'v')
  chmodSync(join(root, 'sub'), 0)
  asOrdinaryUser(() => assert.throws(() => views.check('sub/v.html'), { name: 'ViewError', message: /EACCES/ }))
  chmodSync(join(root, 'sub'), 0o755)
  assert.equal(views.render('sub/v.html', {}, {}), 'v')
})

test('checks the files of a view once per turn of the event loop, however often it is rendered', async (t) => {
  const { views, root } = makeViews({ 'v.html': 'one' })
  await delay(150)
  for (let round = 0; round < 2; round++) views.check('v.html')
  const look = spyOn(t, 'statSync')
  await nextTurn()
  for (let round = 0; round < 5; round++) assert.equal(views.render('v.html', {}, {}), 'one')
  assert.equal(look.callCount(), 1)
  writeFileSync(join(root, 'v.html'), 'two')
  await nextTurn()
  assert.equal(views.render('v.html', {}, {}), 'two')
})

/** Counts the calls of a function of node:fs, also by modules that imported it earlier. */
function spyOn(t: TestContext, name: 'readFileSync' | 'statSync'): { callCount(): number } {
  const { mock } = t.mock.method(fs, name)
  syncBuiltinESMExports()
  t.after(() => {
    mock.restore()
    syncBuiltinESMExports()
  })
  return mock
}
