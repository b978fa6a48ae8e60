import assert from 'node:assert/strict'
import { test } from 'node:test'

import { maxPartHeaderBytes, maxParts, MultipartParser } from '../../lib/http/multipart.ts'
import { MultipartForm } from '../../lib/http/multipart-form.ts'
import { parsePartHeader } from '../../lib/http/part-header.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { noMove } from '../support/form-file.ts'
import { assertNoLeftovers, multipart } from './body-support.ts'
import { checkDamagedForms, contentOf, cut } from './multipart-support.ts'

/** Assembles the parts as header and data from the events of the given chunks. */
function parts(boundary: string, chunks: readonly Buffer[]): Array<[string, string]> {
  const parser = new MultipartParser(boundary)
  const found: Array<[string, string]> = []
  let open: [string, string] | undefined
  for (const chunk of chunks) {
    for (const event of parser.push(chunk)) {
      if (event.kind === 'part') {
        assert.equal(open, undefined)
        open = [event.header.toString('latin1'), '']
      } else if (open === undefined) {
        assert.fail('data outside a part')
      } else if (event.kind === 'data') {
        assert.ok(event.bytes.length > 0)
        open[1] += event.bytes.toString('latin1')
      } else {
        found.push(open)
        open = undefined
      }
    }
  }
  parser.end()
  return found
}

test('splits a body into parts, however it is framed', () => {
  const rows: Array<[string, Array<[string, string]>]> = [
    ['--b\r\nA: 1\r\n\r\nx\r\n--b--\r\n', [['A: 1', 'x']]],
    ['--b\r\nA: 1\r\n\r\nx\r\n--b--', [['A: 1', 'x']]],
    ['--b--', []],
    ['--b--\r\n', []],
    ['preamble\r\n--b\r\nA: 1\r\n\r\nx\r\n--b--epilogue\r\n--b\r\n', [['A: 1', 'x']]],
    ['x--b\r\n--c\r\n\r\n--b \t \r\nA: 1\r\n\r\n\r\n--b-- ', [['A: 1', '']]],
    [
      '--b\r\nA: 1\r\nB: 2\r\n\r\nx\r\n\r\n--b\r\nC: 3\r\n\r\n--b\r\n--b--',
      [['A: 1\r\nB: 2', 'x\r\n'], ['C: 3', '--b']],
    ],
    ['--b\r\nA: 1\r\n\r\n\r\r\n-\r\n--\r\n--c\n--b\r\n--b--', [['A: 1', '\r\r\n-\r\n--\r\n--c\n--b']]],
  ]
  for (const [text, expected] of rows) {
    const body = Buffer.from(text)
    assert.deepEqual(parts('b', [body]), expected, JSON.stringify(text))
    assert.deepEqual(parts('b', [...body].map((byte) => Buffer.from([byte]))), expected, JSON.stringify(text))
    for (let at = 0; at <= body.length; at += 1) {
      const halves = [body.subarray(0, at), body.subarray(at)]
      assert.deepEqual(parts('b', halves), expected, `${JSON.stringify(text)} at ${at}`)
    }
  }
})

test('refuses invalid framing and reports the problem', () => {
  const ends = 'it ends before its closing delimiter'
  const delimiter = 'a delimiter must be followed by a line end, or by "--" after the last part'
  const rows: Array<[string, string]> = [
    ['', 'its boundary does not occur in it'],
    ['nothing of the kind', 'its boundary does not occur in it'],
    ['x--b\r\n', 'its boundary does not occur in it'],
    ['--b', ends],
    ['--b-', ends],
    ['--b\r\n', ends],
    ['--b\r\nA: 1\r\n', ends],
    ['--b\r\nA: 1\r\n\r\nx', ends],
    ['--b\r\nA: 1\r\n\r\nx\r\n--b', ends],
    ['--b\r\nA: 1\r\n\r\nx\r\n--b\r\n', ends],
    ['--bx\r\n', delimiter],
    ['--b-x', delimiter],
    ['--b\n', delimiter],
    ['--b\rx', delimiter],
    ['--b -- ', delimiter],
    ['--b\r\nA: 1\r\n\r\nx\r\n--by\r\n--b--', delimiter],
  ]
  for (const [text, reason] of rows) {
    const message = `Cannot read the multipart form: ${reason}`
    const body = Buffer.from(text)
    assert.throws(() => parts('b', [body]), { status: 400, code: 'bad_form', message }, text)
    assert.throws(() => parts('b', [...body].map((byte) => Buffer.from([byte]))), { message }, text)
  }
})

test('accepts a boundary of 1 to 70 characters', () => {
  for (const boundary of ['a', 'x'.repeat(70), "'()+_,-./:=?", 'a b', '----WebKitFormBoundary7MA4YWxkTrZu0gW', '--']) {
    assert.deepEqual(parts(boundary, [multipart(boundary, [['A: 1', 'x']])]), [['A: 1', 'x']], boundary)
  }
  for (const boundary of ['', 'x'.repeat(71), 'a ', 'é', 'a\r\n', 'a\0']) {
    assert.throws(() => new MultipartParser(boundary), { status: 400, code: 'bad_form', message: /1 to 70 printable/ })
  }
})

test('limits the size of a part header, in one chunk or in many', () => {
  for (const [length, chunkBytes] of [[0, 65_536], [0, 100], [1, 65_536], [1, 100]] as const) {
    const header = 'A: '.padEnd(maxPartHeaderBytes + length, 'x')
    const body = multipart('b', [['A: 1', 'first'], [header, 'x'.repeat(20_000)]])
    const chunks: Buffer[] = []
    for (let at = 0; at < body.length; at += chunkBytes) chunks.push(body.subarray(at, at + chunkBytes))
    const message = /the header of part 2 is longer than 8192 bytes/
    if (length === 0) assert.deepEqual(parts('b', chunks)[1], [header, 'x'.repeat(20_000)])
    else assert.throws(() => parts('b', chunks), { code: 'bad_form', message })
  }
})

test('limits the number of parts', () => {
  const part = ['A: 1', ''] as const
  assert.equal(parts('b', [multipart('b', Array.from({ length: maxParts }, () => part))]).length, maxParts)
  const many = multipart('b', Array.from({ length: maxParts + 1 }, () => part))
  assert.throws(() => parts('b', [many]), { code: 'bad_form', message: /more than 1000 parts/ })
})

test('reads the header of a part', () => {
  const header = (filename: string): string => `Content-Disposition: form-data; name="n"; filename="${filename}"`
  const name = (text: string): string => parsePartHeader(Buffer.from(`Content-Disposition: form-data; ${text}`)).name
  const names: Array<[string, string]> = [
    ['name="a"', 'a'],
    ['name=a', 'a'],
    ['NAME="a" ; other=b', 'a'],
    ['name=""', ''],
    ['name="a\\"b\\\\c"', 'a"b\\c'],
    ['name="a%22b%0D%0Ac%41"', 'a"b\r\nc%41'],
    ['name="é;x=y"', 'é;x=y'],
    ['name="__proto__"', '__proto__'],
    ['name=a;', 'a'],
  ]
  for (const [text, expected] of names) assert.equal(name(text), expected, text)
  assert.equal(parsePartHeader(Buffer.from('content-disposition:FORM-DATA;name=a')).filename, undefined)
  const extended: Array<[string, string | undefined]> = [
    ["filename*=utf-8''x", 'x'],
    ["filename*=UTF-8'en'%e2%82%ac%20rates.txt", '\u20ac rates.txt'],
    ["filename=\"EURO.txt\"; filename*=UTF-8''%e2%82%ac.txt", '\u20ac.txt'],
    ["filename*=UTF-8''..%2F..%2Fetc%2Fpasswd%00", 'passwd'],
    ["filename*=iso-8859-1''%e9", undefined],
    ["filename=\"plain\"; filename*=iso-8859-1''%e9", 'plain'],
    ["filename=\"plain\"; filename*=UTF-8''%ff", 'plain'],
    ['filename="plain"; filename*=x', 'plain'],
  ]
  for (const [text, expected] of extended) {
    const part = parsePartHeader(Buffer.from(`Content-Disposition: form-data; name=a; ${text}`))
    assert.equal(part.filename, expected, text)
  }

  const filenames: Array<[string, string]> = [
    ['', ''],
    ['a.txt', 'a.txt'],
    ['a b é.txt', 'a b é.txt'],
    ['C:\\Users\\me\\a.txt', 'a.txt'],
    ['C:\\\\a.txt', 'a.txt'],
    ['../../etc/passwd', 'passwd'],
    ['..', ''],
    ['a/.', ''],
    ['a/', ''],
    ['.\u0085.\u2028', ''],
    ['a\tb\u007f\u0001c', 'abc'],
    ['say %22hi%22%0d%0a.txt', 'say "hi".txt'],
    ['%2e%2e%2fa', '%2e%2e%2fa'],
    ['...', '...'],
  ]
  for (const [text, expected] of filenames) {
    assert.equal(parsePartHeader(Buffer.from(header(text))).filename, expected, JSON.stringify(text))
  }

  const types: Array<[string, string]> = [
    ['', 'application/octet-stream'],
    ['\r\nContent-Type: Image/PNG', 'image/png'],
    ['\r\nContent-Type: text/plain; charset=x', 'text/plain'],
    ['\r\nContent-Type: text', 'application/octet-stream'],
    ['\r\nContent-Type: <script>', 'application/octet-stream'],
    ['\r\nContent-Transfer-Encoding: 8BIT', 'application/octet-stream'],
  ]
  for (const [line, expected] of types) {
    assert.equal(parsePartHeader(Buffer.from(header('a') + line)).type, expected, line)
  }
})

test('refuses a part header that is malformed or not a form field', () => {
  const good = 'Content-Disposition: form-data; name="a"'
  const rows: Array<[string | Buffer, RegExp]> = [
    ['', /a line of its header is malformed/],
    ['A: 1', /no well-formed Content-Disposition: form-data/],
    ['Content-Disposition: attachment; name="a"', /no well-formed/],
    ['Content-Disposition: form-data; name="a', /no well-formed/],
    ['Content-Disposition: form-data; name=a b', /no well-formed/],
    ['Content-Disposition: form-data; name="a"; name="b"', /no well-formed/],
    ['Content-Disposition: form-data; name="a"; filename="b"; filename="c"', /no well-formed/],
    ['Content-Disposition: form-data', /has no name/],
    ['Content-Disposition: form-data; filename="a"', /has no name/],
    [`${good}\r\n${good}`, /content-disposition twice/],
    [`${good}; filename="a\0"`, /a line of its header is malformed/],
    [`${good}\r\n folded`, /a line of its header is malformed/],
    [`${good}\nB: 1`, /a line of its header is malformed/],
    [`${good}\r\nB : 1`, /a line of its header is malformed/],
    [`${good}\r\nContent-Transfer-Encoding: base64`, /must be binary, 8bit or 7bit/],
    [Buffer.from([0x41, 0x3a, 0xff]), /its header is not UTF-8/],
  ]
  for (const [text, message] of rows) {
    assert.throws(() => parsePartHeader(Buffer.from(text)), { status: 400, code: 'bad_form', message }, String(text))
  }
  const charset = `${good}\r\nContent-Type: text/plain; charset=utf-16`
  assert.throws(() => parsePartHeader(Buffer.from(charset)), { status: 415, code: 'unsupported_media_type' })
})

test('returns the same form however the bytes are split', async () => {
  const folder = temporaryFolder()
  const seeded = new Seeded(23)
  const alphabet = ['\r', '\n', '\r\n', '-', '--', '\r\n--', '--bound', '\r\n--boun', 'bound', 'a', '\0', '\xff']
  for (let round = 0; round < 60; round += 1) {
    const data = Array.from({ length: 1 + seeded.integer(6) }, () => {
      const text = Array.from({ length: seeded.integer(40) }, () => seeded.pick(alphabet)).join('')
      const grown = round % 6 === 0 ? text.repeat(1 + seeded.integer(4000)) : text
      return Buffer.from(grown.replaceAll('\r\n--boundary', ''), 'latin1')
    })
    const body = multipart('boundary', data.map((bytes, index) => {
      return [`Content-Disposition: form-data; name="f${index}"; filename="${index}"`, bytes] as const
    }))
    const longest = Math.max(seeded.pick([1, 3, 20, 5000, 100_000]), body.length > 20_000 ? 500 : 1)
    const upload = new MultipartForm('boundary', folder, noMove)
    for (const chunk of cut(body, seeded, longest)) await upload.write(chunk)
    const { files } = upload.end()
    assert.deepEqual(files.map((file) => file.size), data.map((bytes) => bytes.length))
    for (const [index, file] of files.entries()) {
      assert.equal(file.path !== undefined, file.size > 65_536)
      assert.ok(contentOf(file).equals(data[index] ?? Buffer.alloc(0)))
    }
    await upload.discard()
    await upload.discard()
    assertNoLeftovers(folder)
  }
})

test('throws only HttpError on damaged bytes, and leaves no file', () => checkDamagedForms(80))

test('handles one-byte chunks without a promise for each', () => {
  const upload = new MultipartForm('boundary', temporaryFolder(), noMove)
  const body = multipart('boundary', [['Content-Disposition: form-data; name="a"', 'x'.repeat(20_000)]])
  for (const byte of body) assert.equal(upload.write(Buffer.of(byte)), undefined)
  assert.equal(upload.end().get('a')?.length, 20_000)
})
