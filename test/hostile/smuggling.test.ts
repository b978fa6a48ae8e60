/**
 * Request smuggling: a request that a proxy and the server behind it parse differently. Every ambiguous request must be
 * refused, and its connection must end, so that the bytes after it are not served as a request.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import type { TestApplication } from '../support/application.ts'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { serve } from '../support/serve.ts'

/** The bytes sent, the statuses received, and whether the connection is closed afterwards. */
type Row = readonly [what: string, bytes: string, statuses: readonly number[], end: 'closed' | 'open']

const actions = {
  '/ok': "() => 'ok'",
  '/read': '(ctx) => ctx.readBytes().then((bytes) => `read ${bytes.length}`)',
  '/host': '(ctx) => ctx.readBytes().then(() => ctx.host)',
  '/empty': '() => undefined',
  '/smuggled': "() => { throw new Error('smuggled') }",
}
/** A request that must never be served: it is in a body, or where nothing is allowed. */
const inner = requestText('GET /smuggled')
const chunked = 'Transfer-Encoding: chunked'

function post(fields: readonly string[], body = ''): string {
  return requestText('POST /read', fields, body)
}

function get(fields: readonly string[], body = ''): string {
  return requestText('GET /ok', fields, body)
}

const refused = [400] as const

const contentLength: readonly Row[] = [
  ['twice, equal', post(['Content-Length: 3', 'Content-Length: 3'], `abc${inner}`), refused, 'closed'],
  ['twice, different', post(['Content-Length: 0', `Content-Length: ${inner.length}`], inner), refused, 'closed'],
  ['a list of equals', post(['Content-Length: 3, 3'], `abc${inner}`), refused, 'closed'],
  ['a list', post([`Content-Length: 0, ${inner.length}`], inner), refused, 'closed'],
  ['with a plus', post(['Content-Length: +3'], `abc${inner}`), refused, 'closed'],
  ['with a minus', post(['Content-Length: -1'], inner), refused, 'closed'],
  ['hexadecimal', post(['Content-Length: 0x3'], `abc${inner}`), refused, 'closed'],
  ['with a fraction', post(['Content-Length: 3.0'], `abc${inner}`), refused, 'closed'],
  ['with an exponent', post(['Content-Length: 3e0'], `abc${inner}`), refused, 'closed'],
  ['with an underscore', post(['Content-Length: 1_0'], `abc${inner}`), refused, 'closed'],
  ['with a space within', post(['Content-Length: 1 0'], `abc${inner}`), refused, 'closed'],
  ['with spaces around', post(['Content-Length:  3  '], 'abc'), [200], 'open'],
  ['with leading zeros', post(['Content-Length: 0003'], 'abc'), [200], 'open'],
  ['empty', post(['Content-Length:'], inner), refused, 'closed'],
  ['of letters', post(['Content-Length: abc'], inner), refused, 'closed'],
  ['in quotes', post(['Content-Length: "3"'], `abc${inner}`), refused, 'closed'],
  ['above 2^64', post(['Content-Length: 99999999999999999999'], inner), refused, 'closed'],
  ['2^64', post(['Content-Length: 18446744073709551616'], inner), refused, 'closed'],
  ['2^63', post(['Content-Length: 9223372036854775808'], inner), [413], 'closed'],
  ['of other digits', post(['Content-Length: \xd9\xa3'], inner), refused, 'closed'],
  ['with a vertical tab', post(['Content-Length:\x0b3'], `abc${inner}`), refused, 'closed'],
  ['with a form feed', post(['Content-Length: 3\x0c'], `abc${inner}`), refused, 'closed'],
  ['with a no-break space', post(['Content-Length:\xa03'], `abc${inner}`), refused, 'closed'],
]

const transferEncoding: readonly Row[] = [
  ['chunked', post([chunked], '3\r\nabc\r\n0\r\n\r\n'), [200], 'open'],
  ['in upper case', post(['Transfer-Encoding: CHUNKED'], '3\r\nabc\r\n0\r\n\r\n'), [200], 'open'],
  ['CL.TE', post(['Content-Length: 4', chunked], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['TE.CL', post([chunked, 'Content-Length: 4'], `5c\r\n${inner}\r\n0\r\n\r\n`), refused, 'closed'],
  ['chunked and identity', post([chunked, 'Transfer-Encoding: identity'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['identity and chunked', post(['Transfer-Encoding: identity', chunked], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['gzip and chunked', post(['Transfer-Encoding: gzip, chunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['chunked twice', post(['Transfer-Encoding: chunked, chunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['chunked twice, in two fields', post([chunked, chunked], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['chunked, identity in one field', post(['Transfer-Encoding: chunked, identity'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['xchunked', post(['Transfer-Encoding: xchunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['chunkedx', post(['Transfer-Encoding: chunkedx'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['identity', post(['Transfer-Encoding: identity'], inner), refused, 'closed'],
  ['gzip', post(['Transfer-Encoding: gzip'], inner), refused, 'closed'],
  ['empty', post(['Transfer-Encoding:'], inner), refused, 'closed'],
  ['in quotes', post(['Transfer-Encoding: "chunked"'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['with a comma before', post(['Transfer-Encoding: ,chunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['with a vertical tab', post(['Transfer-Encoding:\x0bchunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['with a NUL', post(['Transfer-Encoding: chunked\0'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['with a no-break space', post(['Transfer-Encoding: chunked\xa0'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['a space before the colon', post(['Transfer-Encoding : chunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['a tab before the colon', post(['Transfer-Encoding\t: chunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['a space before the name', post([' Transfer-Encoding: chunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['a line fold in it', post(['Transfer-Encoding:\r\n chunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['a bare CR before it', post(['A: b\rTransfer-Encoding: chunked'], `0\r\n\r\n${inner}`), refused, 'closed'],
  ['an underscore in its name', post(['Transfer_Encoding: chunked', 'Content-Length: 3'], 'abc'), [200], 'open'],
  ['in HTTP/1.0', `POST /read HTTP/1.0\r\nHost: h\r\n${chunked}\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n${inner}`, refused, 'closed'],
]

const chunks: readonly Row[] = [
  ['a size with leading zeros', post([chunked], '0003\r\nabc\r\n0\r\n\r\n'), [200], 'open'],
  ['an extension', post([chunked], '3;a=b\r\nabc\r\n0;c\r\n\r\n'), [200], 'open'],
  ['a quoted extension', post([chunked], '3;a="b;c"\r\nabc\r\n0\r\n\r\n'), [200], 'open'],
  ['a line end in a quoted extension', post([chunked], `3;a="\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a bare LF in an extension', post([chunked], `3;a\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a size with 0x', post([chunked], `0x3\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a size with a plus', post([chunked], `+3\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a size with a minus', post([chunked], `-3\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a size with a space before it', post([chunked], ` 3\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a size with a space behind it', post([chunked], `3 \r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['an empty size', post([chunked], `\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a size of letters', post([chunked], `xyz\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a size above 2^64', post([chunked], `10000000000000003\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a size that is too small', post([chunked], `2\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a size that is too large', post([chunked], `4\r\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a bare LF behind the size', post([chunked], `3\nabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a bare CR behind the size', post([chunked], `3\rabc\r\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['a bare LF behind the data', post([chunked], `3\r\nabc\n0\r\n\r\n${inner}`), refused, 'closed'],
  ['no line end behind the data', post([chunked], `3\r\nabc0\r\n\r\n${inner}`), refused, 'closed'],
  ['a bare LF at the end', post([chunked], `0\r\n\n${inner}`), refused, 'closed'],
  ['a trailer', post([chunked], '3\r\nabc\r\n0\r\nA: b\r\n\r\n'), [200], 'open'],
  ['Content-Length as a trailer', post([chunked], `0\r\nContent-Length: ${inner.length}\r\n\r\n`), refused, 'closed'],
  ['Transfer-Encoding as a trailer', post([chunked], `0\r\nTransfer-Encoding: chunked\r\n\r\n${inner}`), refused, 'closed'],
  ['Host as a trailer', requestText('POST /host', [chunked], '0\r\nHost: evil.example\r\n\r\n'), [200], 'open'],
  ['a trailer with a space before the colon', post([chunked], `0\r\nA : b\r\n\r\n${inner}`), refused, 'closed'],
]

const lines: readonly Row[] = [
  ['LF instead of CRLF', `GET /ok HTTP/1.1\nHost: h\n\n${inner}`, refused, 'closed'],
  ['a bare LF behind the request line', `GET /ok HTTP/1.1\nHost: h\r\n\r\n${inner}`, refused, 'closed'],
  ['a bare LF behind a field', `GET /ok HTTP/1.1\r\nHost: h\nA: b\r\n\r\n${inner}`, refused, 'closed'],
  ['a bare LF at the end', `GET /ok HTTP/1.1\r\nHost: h\r\n\n${inner}`, refused, 'closed'],
  ['a bare CR in a value', get([`A: b\r${inner}`]), refused, 'closed'],
  ['a request behind bare line feeds in a value', get([`A: b\n\n${inner}`]), refused, 'closed'],
  ['a line fold', get(['A: b\r\n c', 'D: e']), refused, 'closed'],
  ['a space before the first field', `GET /ok HTTP/1.1\r\n Host: h\r\n\r\n`, refused, 'closed'],
  ['a space before a colon', get(['A : b']), refused, 'closed'],
  ['a field without a colon', get(['A']), refused, 'closed'],
  ['a field without a name', get([': b']), refused, 'closed'],
  ['a NUL in a value', get(['A: b\0c']), refused, 'closed'],
  ['a NUL in a name', get(['A\0: b']), refused, 'closed'],
  ['a NUL in the target', requestText('GET /ok\0'), refused, 'closed'],
  ['a space in the target', requestText('GET /ok /smuggled'), refused, 'closed'],
  ['a tab in the target', requestText('GET /o\tk'), refused, 'closed'],
  ['two spaces', requestText('GET  /ok'), [200], 'open'],
  ['a tab for a space', requestText('GET\t/ok'), refused, 'closed'],
  ['an unknown method', requestText('SMUGGLE /ok'), refused, 'closed'],
  ['a method in lower case', requestText('get /ok'), refused, 'closed'],
  ['an empty line before it', `\r\n${get([])}`, [200], 'open'],
  ['a header section of more than 16 KiB', get([`A: ${'x'.repeat(20_000)}`]), [431], 'closed'],
]

const versions: readonly Row[] = [
  ['HTTP/0.9', `GET /ok\r\n\r\n${inner}`, refused, 'closed'],
  ['HTTP/0.9 in so many words', 'GET /ok HTTP/0.9\r\n\r\n', refused, 'closed'],
  ['HTTP/1.0', 'GET /ok HTTP/1.0\r\n\r\n', [200], 'closed'],
  ['HTTP/1.0 that goes on', 'GET /ok HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', [200], 'open'],
  ['HTTP/1.1 without Host', 'GET /ok HTTP/1.1\r\n\r\n', refused, 'open'],
  ['HTTP/1.2', 'GET /ok HTTP/1.2\r\nHost: h\r\n\r\n', refused, 'closed'],
  ['HTTP/2.0', `GET /ok HTTP/2.0\r\nHost: h\r\n\r\n`, refused, 'closed'],
  ['HTTP/11', 'GET /ok HTTP/11\r\nHost: h\r\n\r\n', refused, 'closed'],
  ['HTTP/1.01', 'GET /ok HTTP/1.01\r\nHost: h\r\n\r\n', refused, 'closed'],
  ['http in lower case', 'GET /ok http/1.1\r\nHost: h\r\n\r\n', refused, 'closed'],
  ['the preface of HTTP/2', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${inner}`, refused, 'closed'],
  ['ICE instead of HTTP', 'GET /ok ICE/1.1\r\nHost: h\r\n\r\n', refused, 'closed'],
]

const hosts: readonly Row[] = [
  ['twice', requestText('GET /host', ['Host: evil.example']), refused, 'open'],
  ['a list', 'GET /host HTTP/1.1\r\nHost: h, evil.example\r\n\r\n', refused, 'open'],
  ['with a user', 'GET /host HTTP/1.1\r\nHost: a@h\r\n\r\n', refused, 'open'],
  ['with a path', 'GET /host HTTP/1.1\r\nHost: h/x\r\n\r\n', refused, 'open'],
  ['with a wrong port', 'GET /host HTTP/1.1\r\nHost: h:99999\r\n\r\n', refused, 'open'],
  ['another one in the target', requestText('GET http://other/host'), [200], 'open'],
  ['a target without a host', requestText('GET http:///host'), refused, 'open'],
  ['a target with a user', requestText('GET http://a@other/host'), refused, 'open'],
  ['a target of another scheme', requestText('GET ftp://h/ok'), refused, 'open'],
  ['a target that is a name', requestText('GET h:80'), refused, 'closed'],
]

const bodies: readonly Row[] = [
  ['of a GET that nobody reads', get([`Content-Length: ${inner.length}`], inner), [200], 'open'],
  ['of a GET in chunks', get([chunked], `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`), [200], 'closed'],
  ['of a HEAD', requestText('HEAD /empty', [`Content-Length: ${inner.length}`], inner), [204], 'open'],
  ['of an OPTIONS', requestText('OPTIONS /ok', [`Content-Length: ${inner.length}`], inner), [200], 'open'],
  ['of a path that is not there', requestText('POST /none', [`Content-Length: ${inner.length}`], inner), [404], 'open'],
  ['of a Host that is refused', `POST /read HTTP/1.1\r\nHost: a@b\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`, refused, 'open'],
  ['of a Host that is refused, in chunks, with a request behind it', `POST /read HTTP/1.1\r\nHost: a@b\r\n${chunked}\r\n\r\n3\r\nabc\r\n0\r\n\r\n${inner}`, refused, 'closed'],
  ['that is too large, in chunks, with a request behind it', post([chunked], `200000\r\n${'x'.repeat(2 ** 21)}\r\n0\r\n\r\n${inner}`), [413], 'closed'],
  ['after 100-continue', post(['Expect: 100-continue', `Content-Length: ${inner.length}`], inner), [100, 200], 'open'],
  ['of nothing after 100-continue, nowhere', requestText('POST /none', ['Expect: 100-continue', 'Content-Length: 0'], inner), [404], 'closed'],
  ['after an unknown Expect', post(['Expect: 200-ok', `Content-Length: ${inner.length}`], inner), [417], 'open'],
  ['after 100-continue of a path that is not there', requestText('POST /none', ['Expect: 100-continue', `Content-Length: ${inner.length}`], inner), [404], 'closed'],
  ['that is too large', post([`Content-Length: ${2 ** 21}`], inner), [413], 'closed'],
]

const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: c2FtcGxlIG5vbmNlIDEyMw==']
const upgrades: readonly Row[] = [
  ['to WebSocket where there is none', get(upgrade, requestText('GET /empty')), [200, 204], 'open'],
  ['to WebSocket with a wrong version', get([...upgrade.slice(0, 2), 'Sec-WebSocket-Version: 7'], requestText('GET /empty')), [200, 204], 'open'],
  ['to WebSocket with a body', get([...upgrade, `Content-Length: ${inner.length}`], inner), [200], 'open'],
  ['to WebSocket with a body in chunks', get([...upgrade, chunked], `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`), [200], 'closed'],
  ['to h2c', get(['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']), [200], 'open'],
  ['to h2c with a body', post(['Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 3'], 'abc'), [200], 'open'],
  ['CONNECT', requestText('CONNECT h:80', [], inner), [405], 'closed'],
]

const tables: readonly (readonly [string, readonly Row[]])[] = [
  ['Content-Length', contentLength],
  ['Transfer-Encoding', transferEncoding],
  ['chunks', chunks],
  ['lines', lines],
  ['versions', versions],
  ['Host', hosts],
  ['a body', bodies],
  ['an upgrade', upgrades],
]

/** Sends a row followed by a valid request. Returns every status. */
async function send(t: TestContext, { port }: TestApplication, bytes: string): Promise<readonly number[]> {
  const client = new Connection(t, port)
  await client.send(Buffer.from(bytes + requestText('GET /ok', ['Connection: close']), 'latin1'))
  return splitAnswers(await client.closed()).map(({ status }) => status)
}

describe('request smuggling', () => {
  let application: TestApplication
  const cleanings: (() => unknown)[] = []
  before(async () => {
    application = await serve({ after: (clean: () => unknown) => void cleanings.push(clean) }, actions)
  })
  after(async () => {
    for (const clean of cleanings.reverse()) await clean()
  })
  for (const [name, rows] of tables) {
    describe(name, () => {
      for (const [what, bytes, statuses, end] of rows) {
        it(`${what}: ${statuses.join(', ')}, ${end}`, async (t) => {
          const alreadyServed = application.lines('access.log').filter((line) => line.includes('smuggled')).length
          const expected = end === 'open' ? [...statuses, 200] : statuses
          assert.deepEqual(await send(t, application, bytes), expected, JSON.stringify(bytes))
          const served = application.lines('access.log').filter((line) => line.includes('smuggled')).length
          assert.equal(served, alreadyServed, 'what was hidden in it was served')
        })
      }
    })
  }

  it('continues after a declined upgrade', async (t) => {
    const client = new Connection(t, application.port)
    for (let count = 1; count <= 3; count += 1) {
      await client.send(get(['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']))
      const answers = await client.answers(count)
      assert.equal(answers.at(-1)?.headers['connection'], 'keep-alive')
    }
  })
})
