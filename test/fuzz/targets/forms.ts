/** Cookies, forms and cursors: what clients put into header fields, queries and bodies. */
import assert from 'node:assert/strict'
import { HttpError } from '../../../lib/http/errors.ts'
import { parseCookies, serializeCookie } from '../../../lib/http/cookie.ts'
import { MultipartParser } from '../../../lib/http/multipart.ts'
import { parsePartHeader } from '../../../lib/http/part-header.ts'
import { parseParameters } from '../../../lib/http/parameters.ts'
import { parseUrlencoded } from '../../../lib/http/urlencoded.ts'
import { changed, cutAnywhere, odd, pieces } from '../mutate.ts'
import type { Target } from '../target.ts'

const boundary = 'B'
const delimiter = `\r\n--${boundary}`
const bodyPieces = [delimiter, `--${boundary}`, '\r\n', '\r\n\r\n', '\r', '\n', '--', '-', 'B', 'data', ' ', '\0', '\xff']
const partHeaders = [
  'Content-Disposition: form-data; name="a"',
  'Content-Disposition: form-data; name="f"; filename="x.txt"\r\nContent-Type: text/plain',
  'Content-Disposition: form-data; name="__proto__"',
  'content-disposition:form-data;name=a;filename="C:\\x\\..\\y"',
  'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="\xc3\xa9"',
]

/** A Cookie field, then a value that is set and read back. */
export const cookies: Target = {
  name: 'cookies',
  share: 100,
  make: (seeded) => [
    changed(seeded, pieces(seeded, ['a=b', '; ', ';', 'SVCSID="x"', 'svc_admin=1:2', '__proto__=1', '=', 'é=%C3%A9', ...odd], 8), 2),
    pieces(seeded, [...odd, 'value', '😀', '\u2028'], 6),
  ],
  check([field = '', value = '']) {
    const read = parseCookies(field)
    assert.equal(Object.getPrototypeOf(read), null)
    for (const [name, text] of Object.entries(read)) {
      assert.ok(field.includes(name) && typeof text === 'string' && !/[;=]/.test(name))
    }
    if (value.length > 1000 || !value.isWellFormed()) return
    const line = serializeCookie('c', value, {}, { secure: false })
    assert.match(line, /^c=[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*; Path=\/; HttpOnly; SameSite=Lax$/)
    assert.equal(parseCookies(line.slice(0, line.indexOf(';')))['c'], value)
  },
}

/** A urlencoded body, against `URLSearchParams`, which takes more. */
export const urlencoded: Target = {
  name: 'urlencoded',
  share: 80,
  make: (seeded) => [pieces(seeded, ['a', 'b', '=', '&', '+', '%41', '%C3%A9', '__proto__', 'a=1', ...odd], 10)],
  check([text = '']) {
    const bytes = Buffer.from(text, 'latin1')
    let entries: [string, string][]
    try {
      entries = [...parseUrlencoded(bytes).entries()]
    } catch (error) {
      assert.ok(error instanceof HttpError && error.status === 400 && error.code === 'bad_form', String(error))
      return
    }
    // Node's URLSearchParams spoils characters beyond ASCII beside a stray %, which the URL standard keeps.
    const sent = [...new URLSearchParams(`&${bytes.toString().replace(/%(?![0-9a-f]{2})/gi, '%25')}`)]
    const names = [...new Set(sent.map(([name]) => name))]
    assert.deepEqual(entries, names.flatMap((name) => sent.filter(([other]) => other === name)))
  },
}

/** The pieces in which a multipart body arrives, against a reader that has the whole text and splits it. */
export const multipart: Target = {
  name: 'multipart',
  share: 120,
  make(seeded) {
    let body = seeded.integer(4) === 0 ? 'preamble' : ''
    for (let left = seeded.integer(4); left > 0; left -= 1) {
      const start = body === '' ? delimiter.slice(2) : delimiter
      body += `${start}\r\n${seeded.pick(partHeaders)}\r\n\r\n${pieces(seeded, bodyPieces, 5)}`
    }
    body += `${delimiter}--`
    return cutAnywhere(seeded, seeded.integer(2) === 0 ? body : changed(seeded, body, 1 + seeded.integer(3)), 6)
  },
  check(chunks) {
    const expected = splitMultipart(chunks.join(''))
    const parts: [string, string][] = []
    try {
      const parser = new MultipartParser(boundary)
      for (const chunk of chunks) {
        for (const event of parser.push(Buffer.from(chunk, 'latin1'))) {
          if (event.kind === 'part') parts.push([event.header.toString('latin1'), ''])
          else if (event.kind === 'data') (parts.at(-1) as [string, string])[1] += event.bytes.toString('latin1')
        }
      }
      parser.end()
    } catch (error) {
      assert.ok(error instanceof HttpError && error.status === 400, String(error))
      assert.equal(expected, undefined, 'it was refused')
      return
    }
    assert.deepEqual(parts, expected)
    for (const [header] of parts) checkPartHeader(header)
  },
}

/** A header value with parameters. */
export const parameters: Target = {
  name: 'parameters',
  share: 50,
  make: (seeded) => [changed(seeded, `text/html; ${pieces(seeded, ['charset=utf-8', '; ', 'a="b"', '"\\"', '=', ...odd], 6)}`, 2)],
  check([text = '']) {
    const read = parseParameters(text)
    if (read === undefined) return
    assert.match(read.value, /^[^\s;"/]+(\/[^\s;"/]+)?$/)
    for (const [name, value] of read.parameters) {
      assert.ok(text.toLowerCase().includes(name))
      assert.ok(text.replaceAll('\\\\', '\\').replaceAll('\\"', '"').includes(value) || text.includes(value))
    }
  },
}

function splitMultipart(body: string): [string, string][] | undefined {
  const parts: [string, string][] = []
  let [, ...rest] = split(`\r\n${body}`, delimiter)
  while (rest[0] !== undefined && !rest[0].startsWith('--')) {
    const start = /^[ \t]*\r\n/.exec(rest[0])
    if (start === null) return undefined
    const [header = '', data] = split(rest[0].slice(start[0].length), '\r\n\r\n')
    if (data === undefined || header.length > 8192) return undefined
    const [content = '', next] = split(data, delimiter)
    parts.push([header, content])
    rest = next === undefined ? [] : [next]
  }
  return rest[0] === undefined ? undefined : parts
}

/** A text in two, where a mark stands for the first time. */
function split(text: string, mark: string): string[] {
  const at = text.indexOf(mark)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + mark.length)]
}

function checkPartHeader(header: string): void {
  try {
    const { filename, name } = parsePartHeader(Buffer.from(header, 'latin1'))
    assert.equal(typeof name, 'string')
    if (filename === undefined) return
    assert.doesNotMatch(filename, /[/\\\0-\x1f\x7f-\x9f]/)
    assert.ok(filename !== '.' && filename !== '..')
  } catch (error) {
    assert.ok(error instanceof HttpError && (error.status === 400 || error.status === 415), String(error))
  }
}
