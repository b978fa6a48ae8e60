import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'

import { parseCookies, serializeCookie, type CookieAttributes } from '../../lib/http/cookie.ts'
import { Seeded } from '../support/seeded.ts'

const plain = { secure: false }
const tls = { secure: true }
const readBack = (setCookie: string): Record<string, string> => parseCookies(setCookie.split(';', 1)[0])

test('parses a Cookie header', () => {
  const rows: Array<[string | undefined, Array<[string, string]>]> = [
    [undefined, []],
    ['', []],
    ['a=1', [['a', '1']]],
    ['a=1; b=2', [['a', '1'], ['b', '2']]],
    ['a=1;b=2;', [['a', '1'], ['b', '2']]],
    [' \ta = 1 \t; ;; b\t=2', [['a', '1'], ['b', '2']]],
    ['a=first; a=second', [['a', 'first']]],
    ['a=; a=second', [['a', '']]],
    ['a=b=c', [['a', 'b=c']]],
    ['novalue; =noname; a=1', [['a', '1']]],
    ['a="quoted"; b="; c="x; d=""', [['a', 'quoted'], ['b', '"'], ['c', '"x'], ['d', '']]],
    ['a=%C3%A9%20%25', [['a', 'é %']]],
    ['a=100%; b=%zz; c=%ff', [['a', '100%'], ['b', '%zz'], ['c', '%ff']]],
    ['a=\xc3\xa9; b=\xe9; c=\xc3\xa0', [['a', 'é'], ['b', '\xe9'], ['c', 'à']]],
    ['1700000000:0cc175b9c0f1b6a831c399e269772661', []],
    ['svc_admin=1700000000:0cc175b9c0f1b6a8', [['svc_admin', '1700000000:0cc175b9c0f1b6a8']]],
    ['__proto__=1; constructor=2; toString=3', [['__proto__', '1'], ['constructor', '2'], ['toString', '3']]],
  ]
  for (const [header, expected] of rows) {
    const cookies = parseCookies(header)
    assert.deepEqual(Object.entries(cookies), expected, header)
    assert.equal(Object.getPrototypeOf(cookies), null)
  }
})

test('never throws on a header, and takes linear time', () => {
  const seeded = new Seeded(17)
  const pieces = [';', '=', ' ', '"', '%', '%41', '%ff', 'a', 'b', '\t', '\xe9', '\0', '__proto__', ',']
  for (let round = 0; round < 5000; round += 1) {
    const header = Array.from({ length: seeded.integer(30) }, () => seeded.pick(pieces)).join('')
    for (const value of Object.values(parseCookies(header))) assert.equal(typeof value, 'string')
  }
  for (const piece of [';', '=', '; =', 'a=%;', ' ', '"', 'a="', '%']) {
    const time = (times: number): number => {
      const begin = process.cpuUsage()
      parseCookies(piece.repeat(times))
      return process.cpuUsage(begin).user / 1000
    }
    assert.ok(time(200_000) < 2000, piece)
  }
})

test('writes a cookie with its defaults and attributes', () => {
  const expires = new Date(Date.UTC(2030, 0, 2, 3, 4, 5))
  const rows: Array<[string, string, CookieAttributes, boolean, string]> = [
    ['a', '1', {}, false, 'a=1; Path=/; HttpOnly; SameSite=Lax'],
    ['a', '1', {}, true, 'a=1; Path=/; HttpOnly; Secure; SameSite=Lax'],
    ['a', '', {}, false, 'a=; Path=/; HttpOnly; SameSite=Lax'],
    ['a', '1', { secure: false }, true, 'a=1; Path=/; HttpOnly; SameSite=Lax'],
    ['a', '1', { httpOnly: false, sameSite: 'Strict', path: '/x' }, false, 'a=1; Path=/x; SameSite=Strict'],
    ['a', '1', { secure: true, sameSite: 'None' }, false, 'a=1; Path=/; HttpOnly; Secure; SameSite=None'],
    ['a', '1', { partitioned: true }, true, 'a=1; Path=/; HttpOnly; Secure; SameSite=Lax; Partitioned'],
    ['a', '1', { partitioned: false }, false, 'a=1; Path=/; HttpOnly; SameSite=Lax'],
    ['a', '1', { sameSite: 'strict' }, false, 'a=1; Path=/; HttpOnly; SameSite=Strict'],
    ['a', '1', { sameSite: 'LAX' as 'Lax' }, false, 'a=1; Path=/; HttpOnly; SameSite=Lax'],
    ['__Host-a', '1', { sameSite: 'none' }, true, '__Host-a=1; Path=/; HttpOnly; Secure; SameSite=None'],
    ['a', '1', { maxAge: 0 }, false, 'a=1; Max-Age=0; Path=/; HttpOnly; SameSite=Lax'],
    ['a', '1', { maxAge: -1 }, false, 'a=1; Max-Age=-1; Path=/; HttpOnly; SameSite=Lax'],
    ['a', '1', { expires }, false, 'a=1; Expires=Wed, 02 Jan 2030 03:04:05 GMT; Path=/; HttpOnly; SameSite=Lax'],
    ['a', '1', { domain: 'example.org' }, false, 'a=1; Domain=example.org; Path=/; HttpOnly; SameSite=Lax'],
    ['__Host-a', '1', {}, true, '__Host-a=1; Path=/; HttpOnly; Secure; SameSite=Lax'],
    ['__Secure-a', '1', { path: '/x', domain: 'a.b' }, true,
      '__Secure-a=1; Domain=a.b; Path=/x; HttpOnly; Secure; SameSite=Lax'],
    ['svc_admin', '17:0cc1', {}, false, 'svc_admin=17:0cc1; Path=/; HttpOnly; SameSite=Lax'],
    ['a', 'x y;"é%', {}, false, 'a=x%20y%3B%22%C3%A9%25; Path=/; HttpOnly; SameSite=Lax'],
  ]
  for (const [name, value, attributes, secure, expected] of rows) {
    assert.equal(serializeCookie(name, value, attributes, { secure }), expected)
  }
  const absent = { maxAge: undefined, path: undefined, secure: undefined } as object // as JavaScript may pass it
  assert.equal(serializeCookie('a', '1', absent, tls), 'a=1; Path=/; HttpOnly; Secure; SameSite=Lax')
})

test('refuses misuse, naming the cookie and what is allowed', () => {
  const rows: Array<[string, unknown, object, RegExp]> = [
    ['', '1', {}, /its name must be a token/],
    ['a b', '1', {}, /its name must be a token \(RFC 9110\): it is "a b"/],
    ['a=b', '1', {}, /its name must be a token/],
    ['é', '1', {}, /its name must be a token/],
    ['a\r\nSet-Cookie: b', '1', {}, /its name must be a token/],
    ['a', 1, {}, /cookie a: its value must be a string: it is 1/],
    ['a', undefined, {}, /its value must be a string: it is undefined/],
    ['a', '\ud800', {}, /well-formed Unicode/],
    ['a', 'x'.repeat(4096), {}, /at most 4096 bytes: they are 4097/],
    ['a', 'é'.repeat(700), {}, /at most 4096 bytes/],
    ['a', '1', { httponly: true }, /one of maxAge, .*, partitioned: it is "httponly"/],
    ['a', '1', { maxAge: 1.5 }, /maxAge must be an integer of seconds: it is 1.5/],
    ['a', '1', { maxAge: Number.NaN }, /maxAge must be an integer/],
    ['a', '1', { maxAge: '60' }, /maxAge must be an integer of seconds: it is "60"/],
    ['a', '1', { expires: 'tomorrow' }, /expires must be a Date/],
    ['a', '1', { expires: new Date(Number.NaN) }, /expires must be a Date from 1601 to 9999: it is Invalid Date/],
    ['a', '1', { expires: new Date(Date.UTC(1600, 0, 1)) }, /expires must be a Date from 1601/],
    ['a', '1', { path: 'x' }, /path must begin with \//],
    ['a', '1', { path: '/;HttpOnly' }, /path must begin with \/ and be printable ASCII without semicolon/],
    ['a', '1', { path: '/\r\n' }, /path must/],
    ['a', '1', { path: 1 }, /path must/],
    ['a', '1', { path: '/'.repeat(1025) }, /path must .*, at most 1024 characters/],
    ['a', '1', { domain: 'a..b' }, /domain must be a host name/],
    ['a', '1', { domain: '' }, /domain must be a host name/],
    ['a', '1', { domain: 'a;b' }, /domain must be a host name/],
    ['a', '1', { domain: `${'a.'.repeat(600)}org` }, /domain must be a host name of at most 1024 bytes/],
    ['a', '1', { httpOnly: 'yes' }, /httpOnly must be true or false: it is "yes"/],
    ['a', '1', { secure: 1 }, /secure must be true or false: it is 1/],
    ['a', '1', { sameSite: 'laxer' }, /sameSite must be Strict, Lax or None: it is "laxer"/],
    ['a', '1', { sameSite: ['Lax'] }, /sameSite must be Strict, Lax or None: it is Lax/],
    ['a', '1', { sameSite: null }, /sameSite must be Strict, Lax or None: it is null/],
    ['a', '1', { sameSite: 'none' }, /sameSite None needs secure: it is false/],
    ['a', '1', { sameSite: 'None' }, /sameSite None needs secure: it is false/],
    ['a', '1', { partitioned: true }, /partitioned needs secure: it is false/],
    ['a', '1', { partitioned: 'yes', secure: true }, /partitioned must be true or false/],
    ['__Host-a', '1', {}, /prefix __Host- needs secure/],
    ['__secure-a', '1', {}, /prefix __secure- needs secure/],
    ['__Host-a', '1', { secure: true, path: '/x' }, /prefix __Host- needs path \//],
    ['__Host-a', '1', { secure: true, domain: 'a.b' }, /prefix __Host- allows no domain/],
  ]
  for (const [name, value, attributes, message] of rows) {
    const set = (): string => serializeCookie(name, value as string, attributes, plain) // as wrong as JavaScript can be
    assert.throws(set, message)
    assert.throws(set, (error) => error instanceof TypeError || error instanceof RangeError)
  }
  const longest = 'x'.repeat(4095)
  assert.equal(serializeCookie('a', longest, {}, plain), `a=${longest}; Path=/; HttpOnly; SameSite=Lax`)
})

test('restores every text that it wrote, and sends plain ones unchanged', () => {
  const seeded = new Seeded(19)
  const marks = ['"', ' ', ';', '=', ',', '%', '\\', '+', '\0', '\n', '\x7f', '\xff']
  const characters = [...marks, 'a', '%41', 'é', '€', '😀']
  for (let round = 0; round < 5000; round += 1) {
    const value = Array.from({ length: seeded.integer(12) }, () => seeded.pick(characters)).join('')
    const written = serializeCookie('name', value, {}, plain)
    assert.match(written, /^[\x21-\x7e]*; Path=\/; HttpOnly; SameSite=Lax$/)
    assert.equal(readBack(written)['name'], value)
  }
  const printable = Array.from({ length: 94 }, (_, index) => String.fromCharCode(0x21 + index)).join('')
  const unescaped = printable.replace(/["%,;\\]/g, '')
  assert.ok(serializeCookie('name', unescaped, {}, plain).startsWith(`name=${unescaped};`))
})

test('survives a round trip over a real connection', async (t) => {
  const value = 'grüße; "100 %"'
  const server = createServer((request, response) => {
    response.setHeader('Set-Cookie', serializeCookie('a', value, {}, plain))
    response.end(JSON.stringify(parseCookies(request.headers.cookie)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/` // a TCP server's address is never a text
  const first = await fetch(url)
  assert.deepEqual(await first.json(), {})
  const cookie = first.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
  assert.deepEqual(await (await fetch(url, { headers: { cookie, connection: 'close' } })).json(), { a: value })
})
