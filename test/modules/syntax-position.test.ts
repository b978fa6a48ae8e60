import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { syntaxErrorLine } from '../../lib/modules/import-specifiers.ts'

const rows: readonly (readonly [source: string, message: string, line: number | undefined])[] = [
  [`import a from './a.js'\nimport {\n  b,\n} from './b.js'\nlet x = ;`, `Unexpected token ';'`, 5],
  [`import { a } form './a.js'`, `Unexpected identifier 'form'`, 1],
  ['const a = 1\nexport { b }', `Export 'b' is not defined in module`, 2],
  ['export const a = 1\nconst b = 2\nexport { b as a }', `Duplicate export of 'a'`, 3],
  ['export default () => {\n  await fetch("x")\n}', 'Unexpected reserved word', 2],
  ['export default () => {\n  if (a) {\n}\n', 'Unexpected end of input', 4],
  ['let a = 1\nlet a = 2', `Identifier 'a' has already been declared`, 2],
  ['let x = ;', 'Another message', undefined],
  ['process.exit(3)', `Unexpected token ';'`, undefined],
]

describe('the line of a syntax error', () => {
  for (const [source, message, line] of rows) {
    it(`is ${line ?? 'not known'} for "${message}" in ${JSON.stringify(source)}`, async () => {
      assert.equal(await syntaxErrorLine(source, message), line)
    })
  }

  it('is unknown if no process can be started', async (t) => {
    const { execPath } = process
    t.after(() => (process.execPath = execPath))
    process.execPath = '/nowhere/node'
    assert.equal(await syntaxErrorLine('let x = ;', `Unexpected token ';'`), undefined)
  })
})
