import assert from 'node:assert/strict'
import { test } from 'node:test'
import { syntaxErrorLine } from '../../lib/javascript/syntax-position.ts'

const rows: readonly (readonly [source: string, message: string, line: number | undefined])[] = [
  ['let x = ;', `Unexpected token ';'`, 1],
  [`import a from './a.js'\nimport {\n  b,\n} from './b.js'\nlet x = ;`, `Unexpected token ';'`, 5],
  [`import a from './a.json' with {\n  type: 'json' }\nlet x = ;`, `Unexpected token ';'`, 3],
  [`import './a.js'\nimport d, { e } from './d.js'\nlet x = ;`, `Unexpected token ';'`, 3],
  ['export default () => 1\nexport const a = 1\nlet x = ;', `Unexpected token ';'`, 3],
  ['export default async function list() {}\nlet x = ;', `Unexpected token ';'`, 2],
  [`export { a, b as c }\nexport * from './a.js'\nexport { d } from './d.js'\nlet x = ;`, `Unexpected token ';'`, 4],
  ['const a = 1\nexport { a }\nconst text = "x"\nlet x = ;', `Unexpected token ';'`, 4],
  ['const a = await import.meta.x\nconst b = await import("x")\nlet x = ;', `Unexpected token ';'`, 3],
  ['export default () => {\n}\n}\n', `Unexpected token '}'`, 3],
  ['export default () => {\n  if (a) {\n}\n', 'Unexpected end of input', 4],
  ['await 1\nif (a) {', 'Unexpected end of input', 2],
  ['let a = 1\nlet a = 2', `Identifier 'a' has already been declared`, 2],
  ['function a() {}\nfunction a() {}', `Identifier 'a' has already been declared`, 2],
  ['const s = "a\n"', 'Invalid or unexpected token', 1],
  ['const good = 1', `Unexpected token ';'`, undefined],
  ['let x = ;', 'Another message', undefined],
  ['import', `Cannot use import statement outside a module`, undefined],
]

for (const [source, message, line] of rows) {
  test(`finds line ${line ?? 'none'} of "${message}" in ${JSON.stringify(source)}`, () => {
    assert.equal(syntaxErrorLine(source, message), line)
  })
}
