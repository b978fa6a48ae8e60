import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ViewError } from '../../lib/views/template.ts'
import { parse } from '../../lib/views/parse.ts'
import { createRender } from '../../lib/views/render.ts'
import { Seeded } from '../support/seeded.ts'
import { checkAnyText, checkWholeTemplates, compileAlone } from './fuzz-support.ts'

test('any text compiles or is a ViewError within its lines', () => checkAnyText(2_000))

test('any bytes compile or are a ViewError', () => {
  const seeded = new Seeded(2)
  for (let round = 0; round < 500; round++) {
    const text = `{{ ${seeded.bytes(seeded.integer(60)).toString('latin1')} }}`
    try {
      parse(text, 'v.html')
    } catch (error) {
      assert.ok(error instanceof ViewError, `${JSON.stringify(text)}: ${String(error)}`)
    }
  }
})

test('whole templates compile, and render or name a line', () => checkWholeTemplates(300))

test('text without marks is unchanged', () => {
  const seeded = new Seeded(4)
  for (let round = 0; round < 500; round++) {
    const text = seeded.bytes(seeded.integer(200)).toString('latin1').replaceAll('@', '').replaceAll('{', '')
    assert.equal(createRender(compileAlone(text))({}, {}), text)
  }
})

test('data reaches the page escaped and complete', () => {
  const render = createRender(compileAlone('{{ a }}'))
  const seeded = new Seeded(5)
  const characters = ['&', '<', '>', '"', "'", 'a', ' ', '\n', '&lt;', '\u2028', '😀', '\0', '`', '$&', 'é']
  const original = new Map([['&amp;', '&'], ['&lt;', '<'], ['&gt;', '>'], ['&quot;', '"'], ['&#39;', "'"]])
  for (let round = 0; round < 3000; round++) {
    const a = Array.from({ length: seeded.integer(80) }, () => seeded.pick(characters)).join('')
    const page = render({ a: round % 2 === 0 ? a : [a] }, {})
    assert.doesNotMatch(page, /[<>"']/)
    assert.doesNotMatch(page, /&(?!(?:amp|lt|gt|quot|#39);)/)
    assert.equal(page.replace(/&(?:amp|lt|gt|quot|#39);/g, (reference) => original.get(reference) ?? ''), a)
  }
})
