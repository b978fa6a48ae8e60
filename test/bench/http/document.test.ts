import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeFigures } from './document.ts'

test('says when the document has no place for figures', () => {
  const options = { conditions: '', sections: [], order: [] }
  assert.throws(() => writeFigures('# Page\n', options), /Cannot write the figures: the marks/)
})
