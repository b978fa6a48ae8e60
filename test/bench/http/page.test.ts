import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pageTemplate, pageText } from './page.ts'

test('the page has 4 KiB and 20 expressions, of which two have something to escape', () => {
  assert.equal(Buffer.byteLength(pageText), 4096)
  assert.equal(pageTemplate('{{', '}}').match(/\{\{ [a-z.]+ \}\}/g)?.length, 20)
  assert.deepEqual(pageText.match(/&\w+;/g), ['&amp;', '&lt;', '&gt;'])
})

test('a template differs from the page in its expressions alone', () => {
  const around = (text: string): string => text.replace(/<li class="line">.*<\/li>/g, '')
  assert.equal(around(pageTemplate('<%=', '%>')), around(pageText))
})
