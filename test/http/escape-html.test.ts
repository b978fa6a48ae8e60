import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { escapeHtml } from '../../lib/http/escape-html.ts'
import { Seeded } from '../support/seeded.ts'

describe('escapeHtml', () => {
  it('writes the five special characters as references', () => {
    const rows: [string, string][] = [
      ['', ''],
      ['plain text', 'plain text'],
      ['&', '&amp;'],
      ['<a href="x">\'&\'</a>', '&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;'],
      ['a&lt;b', 'a&amp;lt;b'],
      ['end>', 'end&gt;'],
      ['<start', '&lt;start'],
      ['é 😀 \0 <', 'é 😀 \0 &lt;'],
    ]
    for (const [text, escaped] of rows) assert.equal(escapeHtml(text), escaped)
  })

  it('equals five replacements, on generated texts', () => {
    const seeded = new Seeded(11)
    const alphabet = ['&', '<', '>', '"', "'", 'a', ' ', 'é', '\ud83d', ';', '#']
    for (let round = 0; round < 2000; round++) {
      const text = Array.from({ length: seeded.integer(20) }, () => seeded.pick(alphabet)).join('')
      const expected = text
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll('>', '&gt;')
        .replaceAll('"', '&quot;')
        .replaceAll("'", '&#39;')
      assert.equal(escapeHtml(text), expected)
    }
  })
})
