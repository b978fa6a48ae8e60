import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressCalls } from '../../lib/commands/address-calls.ts'
import { Seeded } from '../support/seeded.ts'

/** A call in short: its offset, its route, and its parameters; `?` if they are not known. */
function found(source: string): string[] {
  return addressCalls(source).map(({ offset, route, params }) => `${offset} ${route} ${params?.join(',') ?? '?'}`)
}

const calls: readonly [source: string, ...calls: string[]][] = [
  ["ctx.url('a')", '4 a '],
  ['context.url("a")', '8 a '],
  ['c?.url(`a`)', '3 a '],
  ["ctx!.url('a')", '5 a '],
  ["app . url ( 'a' , )", '6 a '],
  ["ctx // the context\n  .url /* here */ ('a')", '22 a '],
  ["({ url, json }: Context) => json(url('a'))", '33 a '],
  ["const { url } = ctx\nurl('a')", '20 a '],
  ["[...ctx.url('a')]", '8 a '],
  ["return url('a') / url('b') / 2", '7 a ', '18 b '],
  // Escapes
  [String.raw`url('\x61\u0062\u{63}\'\d\
e')`, "0 abc'de "],
  [String.raw`url('a\n')`, '0 a\n '],
  [String.raw`url('\u{ffffff}')`, '0 \u{10ffff} '],
  // Parameters
  ["url('a', {})", '0 a '],
  ["url('a', { id: note.id, 'b-c': [1, 2], \"d\": f({ x: 1 }), })", '0 a id,b-c,d'],
  ["url('a', { id, run() { return 1, 2 }, key: (x, y) => { x, y } })", '0 a id,run,key'],
  ["url('a', { id: `${b}, c: ${d}` })", '0 a id'],
  ["url('a', { id: /[,}]/.source, b: c / 2 })", '0 a id,b'],
  ["url('a', params)", '0 a ?'],
  ["url('a', { ...params })", '0 a ?'],
  ["url('a', { [key]: 1 })", '0 a ?'],
  ["url('a', { get id() { return 1 } })", '0 a ?'],
  ["url('a', { __proto__: base })", '0 a ?'],
  ["url('a', { id: 1 }.b)", '0 a ?'],
  ["url('a', { id } as Params)", '0 a ?'],
  ["url('a', { id: 1 } satisfies Params)", '0 a ?'],
  ["url('a', { id: f<A, B>(1) })", '0 a ?'],
  ["url('a', ...rest)", '0 a ?'],
  ["url('a', url('b', { id: url('c') }))", '0 a ?', '9 b id', '24 c '],
  // Redirects
  ["ctx.redirect({ route: 'a' })", '4 a '],
  ["redirect({ params: { id }, 'route': `a` }, 303)", '0 a id'],
  ["redirect({ route: 'a', params })", '0 a ?'],
  ["redirect({ route: 'a', params: p, query: { q } })", '0 a ?'],
  // Literals and slashes
  ["html`<a href=\"${url('a')}\">${'}'}${url('b')} url('c')</a>`", '16 a ', '35 b '],
  ["`${`${url('a')}`}${{ b: 1 }.b}` + url('b')", '6 a ', '34 b '],
  ["if (a) /url('b')/.test(c); url('d')", '27 d '],
  ["x = (a) / url('b') / c", '10 b '],
  ["a++ / url('b')", '6 b '],
  ["a! / url('b')", '5 b '],
  ["!/[/'\"`]\\//g.test(a) && url('b')", '24 b '],
  ["x.return / url('b') / 1", '11 b '],
  ["'don\\'t' + url('a')", '11 a '],
  ["'not closed\nurl('a')", '12 a '],
  ["#!/usr/bin/env url('x')\nurl('a')", '24 a '],
  ["import { url as address } from 'x'\nurl('a')", '35 a '],
  ["import x from 'url'\nurl('a')", '20 a '],
  ["import.meta.url\nurl('a')", '16 a '],
  ["await import('url'), url('a')", '21 a '],
]

const others: readonly string[] = [
  "url(name)",
  "url('a' + b)",
  "url('a' as Name)",
  "url(`note.${id}`)",
  "url`a`",
  "url",
  "url()",
  "redirect('/notes')",
  "redirect({ route: name })",
  "redirect({ route })",
  "redirect({ route: 'a' + b })",
  "redirect({ route: 'a', ...rest })",
  "// url('a')",
  "/* url('a')\nurl('b') */",
  "'url(\"a\")' + \"url('b')\"",
  "`background: url('a.png')`",
  "/url('a')/",
  "x = /[/]url('a')/i",
  "z.string().url('must be an address')",
  "v.url('must be an address')",
  "fields.url({ max: 5 })",
  "this.#url('a')",
  "other.ctx.url('a')",
  "$url('a'); url_('b'); curl('c')",
  "import { url } from 'valibot'\nurl('a')",
  "import type x, { a as url, 'b' as c } from 'valibot'; url('a')",
  "import url from './url.js'\nurl('a')",
  "import * as url from './url.js'; url('a')",
  "import * as c from 'valibot'\nc.url('a')",
  "const { url } = require('valibot'); url('a')",
  "const { pipe, url } = await import('valibot'); url('a')",
  "function url(name) {}\nurl('a')",
  "export async function* redirect(to) {}\nredirect({ route: 'a' })",
  "class url {}\nurl('a')",
  "const url = (path) => path; url('a')",
  "let url: Make = make(); url('a')",
  "var url; url('a')",
]

test('finds the calls that name a route, where they are, and what is known of their parameters', () => {
  for (const [source, ...expected] of calls) assert.deepEqual(found(source), expected, source)
})

test('finds nothing else', () => {
  for (const source of others) assert.deepEqual(found(source), [], source)
})

test('takes any text, and finds only what is in it', () => {
  const seeded = new Seeded(7)
  const parts = ['url', 'redirect', '(', ')', '{', '}', '[', ']', "'", '"', '`', '${', '\\', '/', '*', '//', '\n', ',', ':', '.', ' ', 'a', 'ctx', 'route', 'params', 'import', 'from', 'const', '=', '\\u{', '#', '🙂', '\ud800']
  for (let round = 0; round < 20_000; round += 1) {
    const source = round % 4 === 0
      ? `url${seeded.bytes(seeded.integer(60)).toString('latin1')}`
      : Array.from({ length: seeded.integer(40) }, () => seeded.pick(parts)).join('')
    for (const { callee, offset } of addressCalls(source)) assert.ok(source.startsWith(callee, offset), source)
  }
})

test('takes literals, comments and nesting of any length', () => {
  const long = 'a'.repeat(12_000_000)
  assert.equal(found(`x = '${long}' + url('b')`).length, 1)
  for (const start of ["'", '`', '/', '/*', '//', '[/[']) assert.deepEqual(found(`url('b');${start}${long}`), ['0 b '], start)
  assert.equal(found(`${'`${'.repeat(100_000)}url('b')`).length, 1)
  assert.equal(found("url('b', { id: ".repeat(50_000) + '1' + '})'.repeat(50_000)).length, 50_000)
})
