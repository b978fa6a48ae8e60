import assert from 'node:assert/strict'
import { test } from 'node:test'
import { importSpecifiers } from '../../lib/modules/import-specifiers.ts'

const rows: readonly (readonly [source: string, specifiers: readonly string[]])[] = [
  ['', []],
  [`import './a.js'`, ['./a.js']],
  [`import a from "./a.js"; import * as b from './b.js'`, ['./a.js', './b.js']],
  [`import c, { d as e } from './c.js'`, ['./c.js']],
  [`export { a } from './a.js'\nexport * from './b.js'\nexport * as c from './c.js'`, ['./a.js', './b.js', './c.js']],
  [`import data from './a.json' with { type: 'json' }`, ['./a.json']],
  ['await import("./a.js", {}); import(`./b.js`)', ['./a.js', './b.js']],
  ['await import(\n  // heavy\n  /* it is */ "./a.js"\n)', ['./a.js']],
  [`const a = require('./a.cjs'), b = module.require('./b.cjs'); require(c)`, ['./a.cjs', './b.cjs']],
  [`import type { A } from './a.ts'`, ['./a.ts']],
  [`load('./a.cjs')`, []],
  [`const load = createRequire(import.meta.url); load('./a.cjs'); load( /* b */ './b.cjs')`, ['./a.cjs', './b.cjs']],
  [`for (const m of /'/g[Symbol.matchAll](t)) {}\nexport { a } from './a.js'`, ['./a.js']],
  // It errs on the side of too many.
  [`// import './a.js'\n/* import './b.js' */ const text = "import './c.js'"`, ['./a.js', './b.js', './c.js']],
  [`const re = /import '.\\/a.js'/; import /* x */ './b.js'`, ['.\\/a.js', './b.js']],
  ['import(`./${c}.js`)', ['./${c}.js']],
  ["const html = `import './a.js' ${await import('./b.js')}`", ['./a.js', './b.js']],
  [`view('./a.html'); import.meta.resolve('./b.js')`, []],
  [`import './a.js'; import './b.js'; let s = '`, ['./a.js', './b.js']],
]

for (const [source, expected] of rows) {
  test(`finds ${expected.length} in ${JSON.stringify(source)}`, () => {
    const found = importSpecifiers(source)
    assert.deepEqual(found.map((one) => one.specifier), expected)
    for (const { specifier, offset } of found) assert.ok(source.startsWith(specifier, offset + 1))
  })
}
