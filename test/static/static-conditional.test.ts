import assert from 'node:assert/strict'
import { utimesSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { evaluatePreconditions, httpDate, requestedRange } from '../../lib/static/conditional.ts'
import { Seeded } from '../support/seeded.ts'
import { serveStatic } from './static-server.ts'

const modified = 'Tue, 14 Nov 2023 22:13:20 GMT'
const earlier = 'Tue, 14 Nov 2023 22:13:19 GMT'
const later = 'Tue, 14 Nov 2023 22:13:21 GMT'
const etag = '"this"'
const validators = { etag, modifiedMs: Date.parse(modified) }
const weakValidators = { etag: 'W/"this"', modifiedMs: Date.parse(modified) }

const source = (headers: Record<string, string>) => ({ header: (name: string) => headers[name] })

const preconditions: [Record<string, string>, number, number?][] = [
  [{}, 200],
  [{ 'if-none-match': '"this"' }, 304],
  [{ 'if-none-match': 'W/"this"' }, 304],
  [{ 'if-none-match': '"other", W/"this" ,"x"' }, 304],
  [{ 'if-none-match': '*' }, 304],
  [{ 'if-none-match': ' * ' }, 304],
  [{ 'if-none-match': '"other"' }, 200],
  [{ 'if-none-match': 'this' }, 200],
  [{ 'if-none-match': '' }, 200],
  [{ 'if-none-match': '"this' }, 200],
  [{ 'if-none-match': '"other"', 'if-modified-since': later }, 200],
  [{ 'if-modified-since': modified }, 304],
  [{ 'if-modified-since': later }, 304],
  [{ 'if-modified-since': earlier }, 200],
  [{ 'if-modified-since': 'yesterday' }, 200],
  [{ 'if-modified-since': '2023-11-14T22:13:20Z' }, 200],
  [{ 'if-modified-since': 'Tuesday, 14-Nov-23 22:13:20 GMT' }, 304],
  [{ 'if-modified-since': 'Tue Nov 14 22:13:20 2023' }, 304],
  [{ 'if-modified-since': 'Tue Nov 14 22:13:19 2023' }, 200],
  [{ 'if-match': '"this"' }, 200, 412],
  [{ 'if-match': '"x", "this"' }, 200, 412],
  [{ 'if-match': '*' }, 200],
  [{ 'if-match': 'W/"this"' }, 412],
  [{ 'if-match': '"other"' }, 412],
  [{ 'if-match': '"other"', 'if-none-match': '"this"' }, 412],
  [{ 'if-match': '*', 'if-none-match': '"this"' }, 304],
  [{ 'if-match': '*', 'if-unmodified-since': earlier }, 200],
  [{ 'if-unmodified-since': earlier }, 412],
  [{ 'if-unmodified-since': modified }, 200],
  [{ 'if-unmodified-since': 'never' }, 200],
]
for (const [headers, status, weakStatus = status] of preconditions) {
  test(`answers ${status} to ${JSON.stringify(headers)}`, () => {
    assert.equal(evaluatePreconditions(source(headers), validators), status)
    assert.equal(evaluatePreconditions(source(headers), weakValidators), weakStatus)
  })
}

test('ignores date conditions if the date is unknown', () => {
  for (const name of ['if-modified-since', 'if-unmodified-since']) {
    for (const date of [earlier, later]) {
      assert.equal(evaluatePreconditions(source({ [name]: date }), { etag, modifiedMs: undefined }), 200)
    }
  }
})

const dates: [string | undefined, string | undefined][] = [
  [undefined, undefined],
  ['Sun, 06 Nov 1994 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
  ['Sunday, 06-Nov-94 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
  ['Sun Nov  6 08:49:37 1994', '1994-11-06T08:49:37.000Z'],
  ['Sun, 06 Nov 1994 08:49:37 UTC', undefined],
  ['Sun, 06 Nov 1994 08:49:37 +0100', undefined],
  ['Sun, 06 Xyz 1994 08:49:37 GMT', undefined],
  ['Sun, 06 Nov 1994 25:49:37 GMT', undefined],
  ['0', undefined],
  ['', undefined],
]
for (const [text, time] of dates) {
  test(`reads the date ${JSON.stringify(text)}`, () => {
    assert.equal(httpDate(text), time === undefined ? undefined : Date.parse(time))
  })
}

const content = '0123456789'
const ranges: [Record<string, string>, status: number, body: string, contentRange?: string][] = [
  [{ range: 'bytes=0-' }, 206, content, 'bytes 0-9/10'],
  [{ range: 'bytes=0-0' }, 206, '0', 'bytes 0-0/10'],
  [{ range: 'bytes=2-4' }, 206, '234', 'bytes 2-4/10'],
  [{ range: 'BYTES=2-4' }, 206, '234', 'bytes 2-4/10'],
  [{ range: 'bytes=9-' }, 206, '9', 'bytes 9-9/10'],
  [{ range: 'bytes=5-100' }, 206, '56789', 'bytes 5-9/10'],
  [{ range: `bytes=5-${'9'.repeat(400)}` }, 206, '56789', 'bytes 5-9/10'],
  [{ range: 'bytes=-3' }, 206, '789', 'bytes 7-9/10'],
  [{ range: 'bytes=-100' }, 206, content, 'bytes 0-9/10'],
  [{ range: 'bytes=10-' }, 416, '', 'bytes */10'],
  [{ range: 'bytes=10-20' }, 416, '', 'bytes */10'],
  [{ range: `bytes=${'9'.repeat(400)}-` }, 416, '', 'bytes */10'],
  [{ range: 'bytes=-0' }, 416, '', 'bytes */10'],
  [{ range: 'bytes=0-1,3-4' }, 200, content],
  [{ range: 'bytes=4-2' }, 200, content],
  [{ range: 'bytes=-' }, 200, content],
  [{ range: 'bytes=' }, 200, content],
  [{ range: 'bytes' }, 200, content],
  [{ range: 'bytes=a-b' }, 200, content],
  [{ range: 'bytes=0x1-2' }, 200, content],
  [{ range: 'bytes=1.5-2' }, 200, content],
  [{ range: 'bytes=--1' }, 200, content],
  [{ range: 'lines=0-1' }, 200, content],
  [{ range: '' }, 200, content],
  [{ range: 'bytes=0-1', 'if-range': modified }, 206, '01', 'bytes 0-1/10'],
  [{ range: 'bytes=0-1', 'if-range': later }, 200, content],
  [{ range: 'bytes=0-1', 'if-range': earlier }, 200, content],
  [{ range: 'bytes=0-1', 'if-range': '"other"' }, 200, content],
  [{ range: 'bytes=0-1', 'if-range': 'ETAG' }, 206, '01', 'bytes 0-1/10'],
  [{ range: 'bytes=0-1', 'if-range': 'W/ETAG' }, 200, content],
  [{ range: 'bytes=10-', 'if-range': '"other"' }, 200, content],
  [{ range: 'bytes=0-1', 'if-none-match': 'ETAG' }, 304, ''],
  [{ range: 'bytes=0-1', 'if-match': '"other"' }, 412, ''],
]
for (const [kind, smallMaxBytes] of [['in memory', 1000], ['from the disk', 5]] as const) {
  test(`sends the requested ranges, ${kind}`, async (t) => {
    const server = await serveStatic(t, { 'a.txt': content, 'empty.txt': '' }, { smallMaxBytes })
    utimesSync(join(server.folder, 'a.txt'), 1_700_000_000.5, 1_700_000_000.5)
    const tag = (await server.ask('/a.txt')).headers.etag ?? ''
    for (const [row, status, body, contentRange] of ranges) {
      const headers = Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value.replace('ETAG', tag)]))
      const answer = await server.ask('/a.txt', headers)
      const what = JSON.stringify(headers)
      assert.equal(answer.status, status, what)
      assert.equal(answer.headers['content-range'], contentRange, what)
      if (status === 416) continue
      assert.equal(answer.body.toString(), body, what)
      assert.equal(answer.headers.etag, tag, what)
      assert.equal(answer.headers['last-modified'], modified, what)
      assert.equal(answer.headers['x-length'], String(body.length), what)
      if (status !== 304) assert.equal(answer.headers['content-length'], String(body.length), what)
      if (status === 206) assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8', what)
      if (status === 304) assert.equal(answer.headers['content-type'], undefined, what)
    }
    for (const range of ['bytes=0-', 'bytes=0-0', 'bytes=0-99', 'bytes=5-', 'bytes=-5', 'bytes=-0']) {
      const { status, headers } = await server.ask('/empty.txt', { range })
      assert.deepEqual([status, headers['content-range'], headers['content-length']], [200, undefined, '0'], range)
    }
    await server.allClosed()
  })
}

test('never sends bytes past the end, whatever the Range', () => {
  const random = new Seeded(6)
  const parts = ['-', '-', '0', '1', '5', '9', ',', ' ', 'x', '\u00ff']
  let parted = 0
  for (let round = 0; round < 20_000; round += 1) {
    const text = `${random.integer(3) === 0 ? '' : 'bytes='}${Array.from({ length: random.integer(5) }, () => random.pick(parts)).join('')}`
    const size = random.integer(12)
    const range = requestedRange(source({ range: text }), validators, size)
    if (range === undefined || range === 'unsatisfiable') continue
    parted += 1
    assert.ok(range.start >= 0 && range.length >= 1 && range.start + range.length <= size, `${text} of ${size}`)
  }
  assert.ok(parted > 300)
})
