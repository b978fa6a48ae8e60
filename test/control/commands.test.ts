import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ReloadError, describe as describeProblem, describeAll } from '../../lib/control/commands.ts'

describe('a ReloadError', () => {
  it('names every problem with its position', () => {
    const problems = [
      { file: 'a.json', index: null, name: '', error: 'it is empty' },
      { file: 'b.json', index: 2, name: 'b.c', error: 'no url' },
      { file: 'b.json', index: 3, name: '', error: 'no name' },
    ]
    const error = new ReloadError('Cannot reload', problems)
    assert.equal(error.message, 'Cannot reload: a.json: it is empty; b.json[2]: route "b.c": no url; b.json[3]: no name')
    assert.deepEqual(error.problems, problems)
    assert.equal(describeProblem({ file: 'a', index: 0, name: 'n', error: 'e' }), 'a[0]: route "n": e')
    const all = [...'bcdefgh'].map((name, index) => ({ file: 'a', index, name, error: 'the same', line: 2, column: 7 }))
    const [one, whole] = [{ file: 'a', index: 9, name: 'x', error: 'another' }, { file: 'b', index: null, name: '', error: 'the same' }]
    assert.match(describeAll(all, Infinity)[0] ?? '', /routes "b", "c", "d", "e", "f", "g", "h": the same$/)
    assert.deepEqual(describeAll([whole, ...all, one]), [
      'b: the same',
      'a:2:7: routes "b", "c", "d", "e", "f" and 2 others: the same',
      'a[9]: route "x": another',
    ])
  })
})
