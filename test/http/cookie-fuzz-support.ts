// The seeded checks of cookies, for any number of inputs.
import assert from 'node:assert/strict'
import { parseCookies, readCookie, readCookies, serializeCookie } from '../../lib/http/cookie.ts'
import { Seeded } from '../support/seeded.ts'

const sessionId = 'k3Jr0vYw9LZ_x-2bq7H1cT5nE8sDfG4uMaPiOyRtWvQ'
const headers = [
  `SVCSID=${sessionId}`,
  `theme=dark; SVCSID=${sessionId}; lang=de`,
  `a="quoted"; SVCSID="${sessionId}"; b=%C3%A9`,
  `SVCSID=; SVCSID=${sessionId}`,
  'svc_admin=1700000000:0cc175b9c0f1b6a831c399e269772661',
  '__proto__=1; constructor=2; toString=3',
]
const wellKnown = ['SVCSID', 'svc_admin', 'theme', 'a', '__proto__', 'S']
const characters = [';', '=', '"', '%', ' ', '\t', '\0', '\xc3\xa9', ',']
const pieces = [...characters, '; ', '==', '%41', '%ff', '%C3%A9', '__proto__=', 'SVCSID=']

/** Reads valid and invalid Cookie headers: none throws, and no cookie is returned that was not sent. */
export function checkCookieHeaders(inputs: number): void {
  const seeded = new Seeded(6)
  let sessions = 0
  for (let round = 0; round < inputs; round += 1) {
    const header = makeHeader(seeded)
    const cookies = parseCookies(header)
    assert.equal(Object.getPrototypeOf(cookies), null)
    const sent = header.split(';').filter((piece) => piece.includes('='))
    for (const [name, value] of Object.entries(cookies)) {
      const first = sent.find((piece) => trim(piece.slice(0, piece.indexOf('='))) === name)
      assert.ok(first !== undefined && name !== '', shown(header))
      assert.ok(readings(trim(first.slice(first.indexOf('=') + 1))).includes(value), shown(header))
    }
    const names = new Set(sent.map((piece) => trim(piece.slice(0, piece.indexOf('=')))).filter((name) => name !== ''))
    assert.equal(Object.keys(cookies).length, names.size, shown(header))
    for (const name of [...names, ...wellKnown]) {
      assert.equal(readCookie(header, name), cookies[name], shown(header))
      const ofName = sent.filter((piece) => trim(piece.slice(0, piece.indexOf('='))) === name)
      const alone = ofName.map((piece) => readCookie(piece, name))
      assert.deepEqual(readCookies(header, name), alone, shown(header))
    }
    if (cookies['SVCSID'] === sessionId) sessions += 1
  }
  assert.ok(sessions > inputs / 100 && sessions < inputs, `${sessions} had the session's id`)
}

/** Sets values and reads them back. */
export function checkCookieValues(inputs: number): void {
  const seeded = new Seeded(7)
  const characters = [...pieces, 'a', 'é', '☃', '😀', '\n', '\x7f', '\\', '+', '/']
  for (let round = 0; round < inputs; round += 1) {
    const value = Array.from({ length: seeded.integer(8) }, () => seeded.pick(characters)).join('')
    const [pair] = serializeCookie('name', value, {}, { secure: false }).split(';', 1)
    assert.equal(parseCookies(pair)['name'], value)
  }
}

/** Returns a header as browsers send it, changed in a few places; or random bytes. */
function makeHeader(seeded: Seeded): string {
  if (seeded.integer(10) === 0) return seeded.bytes(seeded.integer(60)).toString('latin1')
  let header = seeded.pick(headers)
  for (let change = seeded.integer(4); change > 0; change -= 1) {
    const at = seeded.integer(header.length + 1)
    const piece = seeded.integer(4) === 0 ? String.fromCharCode(seeded.integer(256)) : seeded.pick(pieces)
    header = header.slice(0, at) + piece + header.slice(at + seeded.integer(3))
  }
  return header
}

/** The possible results for a cookie's value. */
function readings(raw: string): string[] {
  const inner = /^".*"$/s.test(raw) && raw.length >= 2 ? raw.slice(1, -1) : raw
  const bytes = inner.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return [inner, Buffer.from(bytes, 'latin1').toString()]
}

function trim(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '')
}

function shown(header: string): string {
  return JSON.stringify(header)
}
