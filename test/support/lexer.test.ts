import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { growthOf, isLinear } from '../hostile/growth-support.ts'
import { JavaScriptSyntaxError, tokenize } from './lexer.ts'
import { Seeded } from './seeded.ts'

const letters = {
  n: 'name',
  k: 'keyword',
  d: 'number',
  s: 'string',
  t: 'template',
  r: 'regex',
  p: 'punctuator',
  c: 'comment',
}

/** Each token as the letter of its kind and its text. */
function read(source: string, start?: number): string[] {
  const letterOf = new Map(Object.entries(letters).map(([letter, kind]) => [kind, letter]))
  return [...tokenize(source, start)].map(({ kind, text }) => `${letterOf.get(kind)} ${text}`)
}

const rows: readonly (readonly [source: string, tokens: readonly string[]])[] = [
  ['', []],
  [' \t\n\r\v\f\u00a0\ufeff\u2028\u2029\u3000', []],
  ['a $b _c é 𝒳1 \\u0061b \\u{62}c', ['n a', 'n $b', 'n _c', 'n é', 'n 𝒳1', 'n \\u0061b', 'n \\u{62}c']],
  ['#x in this', ['n #x', 'k in', 'k this']],
  ['a.class.if?.new', ['n a', 'p .', 'n class', 'p .', 'n if', 'p ?.', 'n new']],
  ['...new X', ['p ...', 'k new', 'n X']],
  ['let of async get from', ['n let', 'n of', 'n async', 'n get', 'n from']],
  ['0 1_000 1.5 .5 5. 1e3 1E-3 1e+3', ['d 0', 'd 1_000', 'd 1.5', 'd .5', 'd 5.', 'd 1e3', 'd 1E-3', 'd 1e+3']],
  ['0xFFn 0b1_0 0O17 12n', ['d 0xFFn', 'd 0b1_0', 'd 0O17', 'd 12n']],
  ['1..x 1.5.toFixed() 1e5.x 2n.x', 'd 1.|p .|n x|d 1.5|p .|n toFixed|p (|p )|d 1e5|p .|n x|d 2n|p .|n x'.split('|')],
  ['1-2 1e-x', ['d 1', 'p -', 'd 2', 'd 1', 'n e', 'p -', 'n x']],
  ['a?.5:b', ['n a', 'p ?', 'd .5', 'p :', 'n b']],
  [`'a' "b" 'it\\'s' "\\\\" ''`, [`s 'a'`, 's "b"', `s 'it\\'s'`, 's "\\\\"', `s ''`]],
  [`'a\\\r\nb' 'c\\\nd' '\u2028'`, [`s 'a\\\r\nb'`, `s 'c\\\nd'`, `s '\u2028'`]],
  ['// a\nb /* c\n * d */ e', ['c // a', 'n b', 'c /* c\n * d */', 'n e']],
  ['#!/usr/bin/env node\nx', ['c #!/usr/bin/env node', 'n x']],
  ['`a`', ['t `a`']],
  ['`a${b}c${d}e`', ['t `a${', 'n b', 't }c${', 'n d', 't }e`']],
  ['`${`${{a: 1}.a}`}`', ['t `${', 't `${', 'p {', 'n a', 'p :', 'd 1', 'p }', 'p .', 'n a', 't }`', 't }`']],
  ['`\\`\\${$a{}}`', ['t `\\`\\${$a{}}`']],
  ['`a\nb`', ['t `a\nb`']],
  ['a>>>=b>>>c>>d>e', ['n a', 'p >>>=', 'n b', 'p >>>', 'n c', 'p >>', 'n d', 'p >', 'n e']],
  ['a??=b||=c&&=d**=e', ['n a', 'p ??=', 'n b', 'p ||=', 'n c', 'p &&=', 'n d', 'p **=', 'n e']],
  ['a=>b!==c', ['n a', 'p =>', 'n b', 'p !==', 'n c']],
  ['@x class{}', ['p @', 'n x', 'k class', 'p {', 'p }']],
  // Division or regular expression
  ['/a/g', ['r /a/g']],
  ['/[/\\]]\\//u.test(x)', ['r /[/\\]]\\//u', 'p .', 'n test', 'p (', 'n x', 'p )']],
  ['a / b / c', ['n a', 'p /', 'n b', 'p /', 'n c']],
  ['a /= 2', ['n a', 'p /=', 'd 2']],
  ['x = /=/', ['n x', 'p =', 'r /=/']],
  ['(a) / b / c', ['p (', 'n a', 'p )', 'p /', 'n b', 'p /', 'n c']],
  ['a[0] / b / c', ['n a', 'p [', 'd 0', 'p ]', 'p /', 'n b', 'p /', 'n c']],
  ['if (a) /b/.test(c)', ['k if', 'p (', 'n a', 'p )', 'r /b/', 'p .', 'n test', 'p (', 'n c', 'p )']],
  ['a.if(b) / c / d', ['n a', 'p .', 'n if', 'p (', 'n b', 'p )', 'p /', 'n c', 'p /', 'n d']],
  ['return /a/', ['k return', 'r /a/']],
  ['this / a / b', ['k this', 'p /', 'n a', 'p /', 'n b']],
  ['"a" / 1 / 2', ['s "a"', 'p /', 'd 1', 'p /', 'd 2']],
  ['`a` / 1 / 2', ['t `a`', 'p /', 'd 1', 'p /', 'd 2']],
  ['`${/}/}` / 1', ['t `${', 'r /}/', 't }`', 'p /', 'd 1']],
  ['a++ / b / c', ['n a', 'p ++', 'p /', 'n b', 'p /', 'n c']],
  ['a! / b / c', ['n a', 'p !', 'p /', 'n b', 'p /', 'n c']],
  ['a\n!/b/', ['n a', 'p !', 'r /b/']],
  ['!/a/', ['p !', 'r /a/']],
  ['if (a) {} /b/', ['k if', 'p (', 'n a', 'p )', 'p {', 'p }', 'r /b/']],
  ['else {} /b/', ['k else', 'p {', 'p }', 'r /b/']],
  ['; {} /b/', ['p ;', 'p {', 'p }', 'r /b/']],
  ['class A {} /b/', ['k class', 'n A', 'p {', 'p }', 'r /b/']],
  ['x = {} / b / c', ['n x', 'p =', 'p {', 'p }', 'p /', 'n b', 'p /', 'n c']],
  ['({}) / b / c', ['p (', 'p {', 'p }', 'p )', 'p /', 'n b', 'p /', 'n c']],
  ['a /* c */ / b / d', ['n a', 'c /* c */', 'p /', 'n b', 'p /', 'n d']],
  // Brackets that close nothing
  [') ] } / a / b', ['p )', 'p ]', 'p }', 'p /', 'n a', 'p /', 'n b']],
  ['(}', ['p (', 'p }']],
]

for (const [source, expected] of rows) {
  test(`reads ${JSON.stringify(source)}`, () => assert.deepEqual(read(source), expected))
}

const errors: readonly (readonly [source: string, message: string, offset: number])[] = [
  [`a 'b`, 'A string has no closing quote', 2],
  [`"a\nb"`, 'A string has no closing quote', 0],
  [`"a\\`, 'A string has no closing quote', 0],
  ['`a', 'A template literal has no closing backtick', 0],
  ['`a${b}c', 'A template literal has no closing backtick', 5],
  ['x = /a\n/', 'A regular expression has no closing slash', 4],
  ['/a\\\n/', 'A regular expression has no closing slash', 0],
  ['/[/', 'A regular expression has no closing slash', 0],
  ['a /* b', 'A comment has no closing */', 2],
  ['a \u0000', 'Unexpected character "\\u0000"', 2],
  ['💥', 'Unexpected character "💥"', 0],
  ['a #1', 'Unexpected character "#"', 2],
  ['a #!b', 'Unexpected character "#"', 2],
  ['\\x', 'Unexpected character "\\\\"', 0],
]

for (const [source, message, offset] of errors) {
  test(`refuses ${JSON.stringify(source)}`, () => {
    assert.throws(() => read(source), { name: 'JavaScriptSyntaxError', message, offset })
  })
}

test('a template that ends within an expression is not an error of the lexer', () => {
  assert.deepEqual(read('`a${b'), ['t `a${', 'n b'])
})

test('begins at the start offset, and reads no further than requested', () => {
  const source = "<p>{{ a / b }} it's"
  const texts: string[] = []
  for (const { text, start, end } of tokenize(source, 5)) {
    assert.equal(source.slice(start, end), text)
    texts.push(text)
    if (texts.at(-2) === '}' && text === '}') break
  }
  assert.deepEqual(texts, ['a', '/', 'b', '}', '}'])
})

test('reads any text to its end or to a JavaScriptSyntaxError, in order and without gaps', () => {
  const random = new Seeded(20)
  const punctuators = '/ * // ` ${ { } ( ) [ ] " \' \\ \\u . => ! # ? ++ < = & @'.split(' ')
  const pieces = [...punctuators, 'a', '1', ' ', '\n', 'if', 'return', '0x', 'e', 'é', '😀', '\ud800', '\u2028', '\0']
  let complete = 0
  for (let round = 0; round < 20_000; round++) {
    const source = Array.from({ length: random.integer(24) }, () => random.pick(pieces)).join('')
    let end = 0
    try {
      for (const token of tokenize(source)) {
        assert.match(source.slice(end, token.start), /^[\s\ufeff]*$/)
        assert.ok(token.end > token.start)
        assert.equal(token.text, source.slice(token.start, token.end))
        end = token.end
      }
      assert.match(source.slice(end), /^[\s\ufeff]*$/)
      complete++
    } catch (error) {
      if (!(error instanceof JavaScriptSyntaxError)) throw error
      assert.ok(error.offset >= 0 && error.offset < source.length)
    }
  }
  assert.ok(complete > 1000)
})

test('reads real programs, and each of their regular expressions is one', () => {
  const packages = ['tsx', 'typescript/lib', 'c8', 'yargs'].map((name) => join('node_modules', name))
  const folders = [...packages, 'lib', 'test']
  let files = 0
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      // Which packages are installed below test/ depends on the tests that were run.
      const isOther = folder === 'test' && entry.parentPath.includes('node_modules')
      if (isOther || !entry.isFile() || !/\.[cm]?[jt]s$/.test(entry.name)) continue
      const file = join(entry.parentPath, entry.name)
      for (const token of tokenize(readFileSync(file, 'utf8'))) {
        if (token.kind === 'regex') assert.doesNotThrow(() => toRegExp(token.text), `${file}:${token.start}`)
      }
      files++
    }
  }
  assert.ok(files > 100)
})

function toRegExp(text: string): RegExp {
  const end = text.lastIndexOf('/')
  return new RegExp(text.slice(1, end), text.slice(end + 1))
}

const shapes = ['a ', '((((', '`${', '"\\n" ', '/* */x ', '{ } ', '\\u0061', '1_0', '/a/;', '. . ', '}}}}']
for (const name of shapes) {
  test(`takes linear time: ${JSON.stringify(name)}`, async () => {
    const growth = await growthOf({
      name,
      size: 100_000,
      prepare: (size) => {
        const source = name.repeat(size / name.length)
        return () => tokens(source)
      },
    })
    assert.ok(isLinear(growth), `${growth.toFixed(1)} times the work for 64 times the length`)
  })
}

/** Reads the tokens of a source, or those before its first error. */
function tokens(source: string): void {
  let count = 0
  try {
    for (const _token of tokenize(source)) count += 1
  } catch (error) {
    if (!(error instanceof JavaScriptSyntaxError)) throw error
  }
  assert.ok(count > 0)
}
