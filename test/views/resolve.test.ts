import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { aroundOpen } from '../support/around-open.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { asOrdinaryUser, makeViews, writeFiles } from './make-views.ts'

test('searches for a view in the root first, then beside the action', () => {
  const { views, root } = makeViews({ 'a.html': 'root a', 'sub/a.html': 'sub a', 'sub/b.html': 'sub b' })
  assert.equal(views.render('a.html', {}, {}, 'sub/action.js'), 'root a')
  assert.equal(views.render('b.html', {}, {}, 'sub/action.js'), 'sub b')
  assert.equal(views.render('b.html', {}, {}, join(root, 'sub/action.js')), 'sub b')
  assert.equal(views.render('sub/b.html', {}, {}), 'sub b')
  assert.equal(views.render(join(root, 'sub/b.html'), {}, {}), 'sub b')
  assert.throws(() => views.render('c.html', {}, {}, 'sub/action.js'), {
    message: 'c.html: there is no view "c.html": looked for c.html, sub/c.html',
  })
})

test('searches for an included view and a layout beside the file first, then in the root', () => {
  const { views } = makeViews({
    'sub/v.html': "@view 'a.html'\n@view 'b.html'\n@view '../c.html'\n",
    'sub/a.html': 'sub a\n',
    'a.html': 'root a\n',
    'b.html': 'root b\n',
    'c.html': 'root c\n',
    'sub/w.html': "@layout 'sub/l.html'\n@section x\nw\n@endsection\n",
    'sub/l.html': '@yield x\n',
  })
  assert.equal(views.render('sub/v.html', {}, {}), 'sub a\nroot b\nroot c\n')
  assert.equal(views.render('sub/w.html', {}, {}), 'w\n')
})

test('names the line that uses a missing view', () => {
  const { views } = makeViews({ 'sub/v.html': "\n@view 'a.html'\n", 'w.html': "@layout 'a.html'\n" })
  const message = 'sub/v.html:2: there is no view "a.html": looked for sub/a.html, a.html'
  assert.throws(() => views.check('sub/v.html'), { name: 'ViewError', message })
  assert.throws(() => views.check('w.html'), { message: 'w.html:1: there is no view "a.html": looked for a.html' })
})

const refused: readonly (readonly [name: string, reason: RegExp])[] = [
  ['../secret.html', /is outside the application's root/],
  ['a/../../secret.html', /is outside the application's root/],
  ['/etc/secret.html', /is outside the application's root/],
  ['..', /must end in "\.html"/],
  ['v.txt', /must end in "\.html": it is "v\.txt"/],
  ['', /must end in "\.html"/],
  ['v\0.html', /zero byte/],
  ['folder.html', /there is no view/],
  ['v.html/x.html', /there is no view/],
  [`${'x'.repeat(5000)}.html`, /there is no view/],
  ['loop.html', /there is no view/],
  ['link.html', /a link that leads outside/],
  ['link/secret.html', /a link that leads outside/],
]

test('reads nothing outside the root, and nothing but views', () => {
  const outer = temporaryFolder()
  const root = join(outer, 'app')
  writeFiles(outer, { 'secret.html': 'secret', 'app/v.html': 'v' })
  mkdirSync(join(root, 'folder.html'))
  symlinkSync(join(outer, 'secret.html'), join(root, 'link.html'))
  symlinkSync(outer, join(root, 'link'))
  symlinkSync('loop.html', join(root, 'loop.html'))
  const { views } = makeViews({}, { root })
  for (const [name, reason] of refused) {
    assert.throws(() => views.render(name, {}, {}), { name: 'ViewError', message: reason }, name)
    assert.throws(() => views.render(name, {}, {}, '../action.js'), { name: 'ViewError', message: reason }, name)
    if (name === '' || name.includes('\0')) continue
    writeFiles(root, { 'w.html': `\n@view '${name}'\n` })
    assert.throws(() => views.render('w.html', {}, {}), { name: 'ViewError', message: reason, line: 2 }, name)
  }
})

for (const back of [false, true]) {
  test(`reads nothing through a folder that is swapped for a link before it is opened${back ? ', and back' : ''}`, (t) => {
    const outer = temporaryFolder()
    const root = join(outer, 'app')
    const [folder, moved] = [join(root, 'sub'), join(root, 'moved')]
    writeFiles(outer, { 'secret/v.html': 'secret', 'app/sub/v.html': 'v', 'app/w.html': "@view 'sub/v.html'\n" })
    const { views } = makeViews({}, { root })
    const swap = (): void => {
      if (isSwapped) return
      isSwapped = true
      renameSync(folder, moved)
      symlinkSync(join(outer, 'secret'), folder)
    }
    const swapBack = (): void => {
      if (!isSwapped) return
      isSwapped = false
      rmSync(folder)
      renameSync(moved, folder)
    }
    let isSwapped = false
    aroundOpen(t, swap, back ? swapBack : undefined)
    for (const view of ['sub/v.html', 'w.html']) {
      for (let round = 0; round < 2; round += 1) {
        const reason = new RegExp(`cannot read the view: it is outside ${root}$|is a link that leads outside`)
        assert.throws(() => views.render(view, {}, {}), { name: 'ViewError', message: reason })
      }
      swapBack()
    }
  })
}

test('follows a link within the root, and a root that is a link', () => {
  const outer = temporaryFolder()
  writeFiles(outer, { 'app/v.html': 'v' })
  symlinkSync('v.html', join(outer, 'app', 'link.html'))
  symlinkSync('app', join(outer, 'current'))
  const { views } = makeViews({}, { root: join(outer, 'current') })
  assert.equal(views.render('link.html', {}, {}), 'v')
})

test('refuses a kept view once its folder leads outside', () => {
  const outer = temporaryFolder()
  writeFiles(outer, { 'app/sub/v.html': 'inside', 'other/v.html': 'secret' })
  const { views, root } = makeViews({}, { root: join(outer, 'app') })
  assert.equal(views.render('sub/v.html', {}, {}), 'inside')
  rmSync(join(root, 'sub'), { recursive: true })
  symlinkSync(join(outer, 'other'), join(root, 'sub'))
  assert.throws(() => views.render('sub/v.html', {}, {}), { message: /a link that leads outside/ })
})

test('reports that a view contains itself, with the path', () => {
  const { views } = makeViews({
    'a.html': "x\n@view 'b.html'\n",
    'b.html': "@view 'c.html'\n",
    'c.html': "\n@view 'b.html'\n",
    'self.html': "@layout 'self.html'\n",
    'l.html': "@yield x\n@view 'm.html'\n",
    'm.html': "@layout 'l.html'\n@section x\n@endsection\n",
    's.html': "@layout 'frame.html'\n@section x\n@view 's.html'\n@endsection\n",
    'frame.html': '@yield x\n',
  })
  const rows = [
    ['a.html', 'c.html:2: a view cannot contain itself: b.html -> c.html -> b.html'],
    ['self.html', 'self.html:1: a view cannot contain itself: self.html -> self.html'],
    ['m.html', 'l.html:2: a view cannot contain itself: m.html -> l.html -> m.html'],
    ['s.html', 's.html:3: a view cannot contain itself: s.html -> frame.html -> s.html'],
  ] as const
  for (const [file, message] of rows) assert.throws(() => views.check(file), { name: 'ViewError', message })
})

test('reports that a folder or a view cannot be read', () => {
  const { views, root } = makeViews({ 'sub/v.html': 'v', 'w.html': 'w' })
  chmodSync(root, 0o755)
  chmodSync(join(root, 'sub'), 0)
  chmodSync(join(root, 'w.html'), 0)
  asOrdinaryUser(() => {
    assert.throws(() => views.check('sub/v.html'), { message: /^sub\/v\.html: cannot access sub\/v\.html: EACCES/ })
    assert.throws(() => views.check('w.html'), { message: /^w\.html: cannot read the view: EACCES/ })
  })
  chmodSync(join(root, 'sub'), 0o700)
})
