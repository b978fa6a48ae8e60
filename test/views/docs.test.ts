import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { allowedGlobals } from '../../lib/views/render.ts'
import { startApplication } from '../support/application.ts'
import { readPage, shownFiles, tableBelow } from '../support/markdown.ts'
import { request } from '../support/request.ts'
import { makeViews } from './make-views.ts'

const page = readPage('docs/views.md')
const docs = page.prose
const shown = (part: string): string => page.blocks.find(({ text }) => text.includes(part))?.text ?? assert.fail(part)

test('the example in docs/views.md renders', async (t) => {
  const { url, app } = await startApplication(t, { 'package.json': { type: 'module' }, ...shownFiles(page) })
  assert.deepEqual(app.warnings(), [])
  const expected =
    '<!doctype html>\n<title>\nNotices (1)\n</title>\n<main>\n  <article>\n' +
    '  <h2>Picnic &lt;Sunday&gt;</h2>\n  <p>No picture.</p>\n</article>\n</main>\n'
  assert.equal((await request(`${url}/notices`)).text, expected)
})

test('the pattern and the form in docs/views.md render', () => {
  const { views } = makeViews({ 'rates.html': shown('[currency, {'), 'edit.html': shown('@resource notice.id') })
  const rates = { USD: { rate: 1 }, EUR: { rate: 2, name: 'Euro' } }
  assert.equal(views.render('rates.html', { rates }, {}), '<li>USD: 1</li>\n<li>Euro: 2</li>\n')
  const bag = new Map([['type', 'danger'], ['message', 'No']])
  const helpers = { UFlash: () => bag, UCsrfToHtml: () => '<csrf>', UResourceToHtml: (id: number) => `<id ${id}>` }
  const form = views.render('edit.html', { notice: { id: 7, title: 'Picnic' } }, helpers)
  assert.match(form, /class="danger">No<[^]*<csrf>  <id 7>[^]*value="Picnic"/)
})

test('docs/views.md has a row for every directive', () => {
  const source = readFileSync(new URL('../../lib/views/parse.ts', import.meta.url), 'utf8')
  const words = /const words =\s+'([a-z|]+)'/.exec(source)?.[1]?.split('|') ?? []
  const listed = tableBelow(page, '## Directives').flatMap(([cell = '']) => [...cell.matchAll(/`@(\w+)/g)].map(([, word]) => word))
  assert.deepEqual(listed.sort(), words.sort())
})

test('docs/views.md lists the globals that views have', () => {
  const list = /a global of ECMAScript: `([^`]+)`/.exec(docs)?.[1] ?? ''
  assert.deepEqual(list.split(/\s+/), [...allowedGlobals])
})
