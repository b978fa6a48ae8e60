import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { allowedGlobals } from '../../lib/views/render.ts'
import { makeViews } from './make-views.ts'

const docs = readFileSync(new URL('../../docs/views.md', import.meta.url), 'utf8')

test('the example in docs/views.md renders', () => {
  const blocks = [...docs.matchAll(/`(views\/[a-z.]+)`:\n\n```html\n(.*?)```/gs)]
  const files = Object.fromEntries(blocks.map(([, name = '', text = '']) => [name, text]))
  assert.deepEqual(Object.keys(files), ['views/notices.html', 'views/layout.html'])
  const { views } = makeViews(files)
  const page = views.render('views/notices.html', { notices: [{ title: 'Picnic <Sunday>' }] }, {})
  const expected =
    '<!doctype html>\n<title>\nNotices (1)\n</title>\n<main>\n  <article>\n' +
    '  <h2>Picnic &lt;Sunday&gt;</h2>\n  <p>No picture.</p>\n</article>\n</main>\n'
  assert.equal(page, expected)
})

test('docs/views.md lists the globals that views have', () => {
  const list = /a global of ECMAScript: `([^`]+)`/.exec(docs)?.[1] ?? ''
  assert.deepEqual(list.split(/\s+/), [...allowedGlobals])
})
