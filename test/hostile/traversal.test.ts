/**
 * Path traversal: no path, in any encoding, leads out of its folder, be it that of static files, views or actions. A
 * rest parameter gets the path decoded once, so an application that uses it as a file name must check it; the rows here
 * show what it gets.
 */
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parseRecord } from '../../lib/application/record.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { ask, checkUpwards, start, treasure } from './traversal-support.ts'

describe('static files', () => {
  it('cannot be escaped upwards in any spelling', (t) => checkUpwards(t, 1))

  it('are not served by absolute, hidden or alternative paths', async (t) => {
    const { port, folder } = await start(t)
    const targets = [
      `${folder}/secret.txt`, `/${folder}/secret.txt`, `/%2f${folder}/secret.txt`, `file://${folder}/secret.txt`, '/C:/secret.txt', '/%5c%5chost%5cshare',
      '/.secret.txt', '/%2esecret.txt', '/.hidden/secret.txt', '/%2ehidden/secret.txt', '/folder/.secret.txt', '/folder/%2Esecret.txt', '/./.secret.txt',
      '/plain.txt%00', '/plain.txt%00.html', '/plain.txt/', '/plain.txt/.', '/plain.txt%20', '/plain.txt.', '/plain.txt::$DATA', '/PLAIN~1.TXT',
      '//plain.txt', '/./plain.txt', '/folder//plain.txt', '/folder%2fplain.txt', '/folder%5cplain.txt', '/folder\\plain.txt', '/folder/../plain.txt',
      '/%70lain.tx%', '/%', '/%zz', '/%c3', '/%ed%a0%80', '/public/plain.txt', '/../public/plain.txt',
    ]
    for (const target of targets) {
      const answer = await ask(t, port, target)
      assert.match(answer, /^HTTP\/1\.1 (400|404) /, target)
      assert.ok(!answer.includes(treasure) && !answer.endsWith('plain'), target)
    }
    for (const target of ['/plain.txt', '/%70lain.txt', '/plain%2Etxt', '/folder/plain.txt', '/plain.txt?../../secret.txt', 'http://h/plain.txt']) {
      assert.ok((await ask(t, port, target)).endsWith('\r\n\r\nplain'), target)
    }
  })

  it('do not follow a link out of the folder, also when the link is made later', async (t) => {
    const { port, folder } = await start(t)
    const inPublic = (name: string): string => join(folder, 'public', name)
    symlinkSync(join(folder, 'secret.txt'), inPublic('file-out'))
    symlinkSync('../secret.txt', inPublic('relative-out'))
    symlinkSync(folder, inPublic('folder-out'))
    symlinkSync('/', inPublic('root-out'))
    symlinkSync(inPublic('.hidden'), inPublic('to-hidden'))
    symlinkSync(inPublic('loop'), inPublic('loop'))
    symlinkSync(inPublic('plain.txt'), inPublic('in'))
    mkdirSync(inPublic('deep'))
    symlinkSync('../../secret.txt', inPublic('deep/out'))
    const outside = ['/file-out', '/relative-out', '/folder-out/secret.txt', '/folder-out/svc.json', '/root-out/etc/passwd', '/to-hidden/secret.txt', '/deep/out']
    for (const target of [...outside, '/folder-out', '/folder-out/', '/loop']) {
      const answer = await ask(t, port, target)
      assert.match(answer, /^HTTP\/1\.1 (404|500) /, target)
      assert.ok(!answer.includes(treasure), target)
    }
    assert.ok((await ask(t, port, '/in')).endsWith('plain'))
  })
})

describe('a rest parameter', () => {
  it('is decoded once, and refused if it is not UTF-8', async (t) => {
    const { port } = await start(t)
    const rows: readonly (readonly [sent: string, rest: string | 400])[] = [
      ['../x', '../x'],
      ['%2e%2e/x', '../x'],
      ['..%2fx', '../x'],
      ['%252e%252e%252fx', '%2e%2e%2fx'],
      ['%25252e', '%252e'],
      ['..%5cx', '..\\x'],
      ['a%00b', 'a\0b'],
      ['//etc/passwd', '//etc/passwd'],
      ['%2fetc/passwd', '/etc/passwd'],
      ['%c0%ae%c0%ae/x', 400],
      ['%e0%80%ae/x', 400],
      ['%ed%a0%80', 400],
      ['%ff', 400],
      ['%u002e', 400],
      ['%', 400],
      ['%2', 400],
      ['%ef%bc%8e%ef%bc%8e/x', '\uff0e\uff0e/x'],
    ]
    for (const [sent, rest] of rows) {
      const answer = await ask(t, port, `/rest/${sent}`)
      if (rest === 400) assert.match(answer, /^HTTP\/1\.1 400 /, sent)
      else assert.deepEqual(JSON.parse(Buffer.from(answer.slice(answer.indexOf('\r\n\r\n') + 4), 'latin1').toString()), { rest }, sent)
    }
  })

  it('does not reach the routes beside it', async (t) => {
    const { port } = await start(t)
    for (const target of ['/rest/../view', '/rest/%2e%2e/view', '/rest/..;/view']) {
      assert.match(await ask(t, port, target), /"rest":"\.\./, target)
    }
  })
})

describe('views', () => {
  it('are below the root, whatever their name', async (t) => {
    const { url, folder } = await serve(t, { '/view': '(ctx) => ctx.view(ctx.query.get("file"))' }, { 'paths.root': 'app' }, {
      'app/actions.mjs': 'export const r0 = (ctx) => ctx.view(ctx.query.get("file"))\n',
      'app/good.html': 'good',
      'secret.html': treasure,
    })
    writeFileSync(join(folder, 'app/include.html'), "@view '../secret.html'\n")
    writeFileSync(join(folder, 'app/layout.html'), "@layout '../secret.html'\n@section a\n@endsection\n")
    const names = [
      '../secret.html', './../secret.html', 'x/../../secret.html', join(folder, 'secret.html'), `/${join(folder, 'secret.html')}`, '..\\secret.html',
      'include.html', 'layout.html', '../secret.html\0', '%2e%2e/secret.html', '', '.', '..', '/', 'file:///etc/passwd', '....//secret.html',
    ]
    for (const name of names) {
      const answer = await request(`${url}/view?file=${encodeURIComponent(name)}`)
      assert.equal(answer.status, 500, name)
      assert.ok(!answer.text.includes(treasure), name)
    }
    assert.equal((await request(`${url}/view?file=good.html`)).text, 'good')
  })
})

describe('actions', () => {
  it('are below the root, whatever a route record contains', () => {
    const rules = { root: '/srv/app', middlewareKnown: () => true }
    const read = (action: string): ReturnType<typeof parseRecord> => parseRecord({ name: 'n', url: '/', action }, rules)
    const outside = [
      '../x.js', 'a/../../x.js', '/etc/passwd', '/srv/app/../x.js', '..', '.', './', 'a/..', '../app-other/x.js', '//x.js', 'a.js\0', 'a\0/../../x.js', '../x.js@y',
      'a/./../../x.html', '....//../../x.js', '\n../x.js', 'a/../../app/../x.js',
    ]
    for (const action of outside) assert.ok('problems' in read(action), action)
    for (const action of ['a.js', 'a/b.mjs', './a.js', 'a/../b.js', '..a/b.js', 'a.js@b', '%2e%2e/x.js', '..\\x.js']) {
      assert.ok('record' in read(action), action)
    }
  })
})
