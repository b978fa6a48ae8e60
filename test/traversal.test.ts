/**
 * Path traversal: no path, in whatever encoding, leads out of the folder that it is for: that of static files, that of
 * views, that of actions. A rest parameter gets the path decoded once, so an application that uses it as a file's name
 * must check it; what it gets is told here row by row.
 */
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { parseRecord } from '../lib/routing/record.ts'
import { Connection, requestText } from './support/connection.ts'
import type { TestApplication } from './support/application.ts'
import { request } from './support/request.ts'
import { serve } from './support/serve.ts'

/** Stands in a file beside every folder that is served, and in hidden ones. */
const treasure = 'the treasure'

/** Ways to write `../`, and its parts. */
const up: readonly (readonly [what: string, text: string])[] = [
  ['as it is', '../'],
  ['dots percent-encoded', '%2e%2e/'],
  ['one dot percent-encoded', '.%2e/'],
  ['in upper case', '%2E%2E/'],
  ['the slash percent-encoded', '..%2f'],
  ['all percent-encoded', '%2e%2e%2f'],
  ['double percent-encoded', '%252e%252e%252f'],
  ['three times percent-encoded', '%25252e%25252e%25252f'],
  ['overlong UTF-8 of two bytes', '%c0%ae%c0%ae%c0%af'],
  ['overlong UTF-8 of three bytes', '%e0%80%ae%e0%80%ae/'],
  ['overlong UTF-8 of four bytes', '%f0%80%80%ae%f0%80%80%ae/'],
  ['as bytes of UTF-16', '%ff%fe.%00.%00/'],
  ['with %u', '%u002e%u002e%u2215'],
  ['with a backslash', '..\\'],
  ['with a percent-encoded backslash', '..%5c'],
  ['with a double percent-encoded backslash', '..%255c'],
  ['with a NUL behind', '..%00/'],
  ['with a NUL before', '%00../'],
  ['with a space behind', '..%20/'],
  ['with a space before', '%20../'],
  ['with a dot more', '.../'],
  ['with two dots more', '..../'],
  ['doubled, so that one is left when one is taken out', '....//'],
  ['with a semicolon', '..;/'],
  ['with a fullwidth stop', '%ef%bc%8e%ef%bc%8e/'],
  ['with a one dot leader', '%e2%80%a4%e2%80%a4/'],
  ['with a division slash', '..%e2%88%95'],
  ['with a fullwidth solidus', '..%ef%bc%8f'],
  ['with a tab', '..%09/'],
  ['with a line end', '..%0d%0a/'],
  ['with a question mark', '..%3f/'],
  ['with a colon and a stream', '..::$DATA/'],
  ['after an empty segment', '/../'],
  ['after a dot', './../'],
  ['after a folder that is there', 'folder/../../'],
  ['after a folder that is not there', 'none/../../'],
]

async function start(t: TestContext): Promise<TestApplication> {
  const rest = '(ctx) => ({ rest: ctx.params.path })'
  const application = await serve(
    t,
    { '/rest/*path': rest, '/view': '(ctx) => ctx.view(ctx.query.get("file") ?? "")' },
    { 'paths.public': 'public' },
    {
      'secret.txt': treasure,
      'secret.html': treasure,
      'public-other/secret.txt': treasure,
      'public/plain.txt': 'plain',
      'public/folder/plain.txt': 'plain',
      'public/.hidden/secret.txt': treasure,
      'public/.secret.txt': treasure,
      'public/folder/.secret.txt': treasure,
    },
  )
  return application
}

/** Sends a target as it is. */
async function ask(t: TestContext, port: number, target: string, fields: readonly string[] = []): Promise<string> {
  const client = new Connection(t, port)
  await client.send(Buffer.from(requestText(`GET ${target}`, [...fields, 'Connection: close']), 'latin1'))
  return client.closed()
}

describe('static files', () => {
  it('are not left upwards, however that is written', async (t) => {
    const { port } = await start(t)
    for (const [what, text] of up) {
      for (const depth of [1, 2, 3, 8]) {
        for (const before of ['/', '/folder/', '/folder', '//', 'http://h/']) {
          for (const end of ['secret.txt', 'public-other/secret.txt', 'svc.json', 'etc/passwd']) {
            const target = before + text.repeat(depth) + end
            const answer = await ask(t, port, target)
            assert.match(answer, /^HTTP\/1\.1 (400|404) /, `${what}: ${target}`)
            assert.ok(!answer.includes(treasure) && !answer.includes('root:'), `${what}: ${target}`)
          }
        }
        if (depth > 1 && what !== 'as it is') break
      }
    }
  })

  it('are not absolute, hidden or written in another way', async (t) => {
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
  it('is decoded once, and what is no UTF-8 is refused', async (t) => {
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
  it('lie below the root, whatever name they are asked for by', async (t) => {
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
  it('lie below the root, whatever a route record says', () => {
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
