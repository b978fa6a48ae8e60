import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as zlib from 'node:zlib'
import { codingFor, compressAboveBytes, compressReply, isCompressible, replyCodings } from '../../lib/http/compress.ts'
import type { Coding } from '../../lib/http/compress.ts'
import { Seeded } from '../support/seeded.ts'

const all = ['zstd', 'br', 'gzip'] as const
/** Whether gzip is selected if it is the only offered coding. */
const accepted: [string | undefined, boolean][] = [
  [undefined, false],
  ['', false],
  ['gzip', true],
  ['x-gzip', true],
  ['GZIP', true],
  ['gzip, deflate, br, zstd', true],
  ['br,gzip', true],
  ['br', false],
  ['identity', false],
  ['*', true],
  ['*;q=0', false],
  ['gzip;q=0', false],
  ['gzip;q=0.0', false],
  ['gzip;q=0.000', false],
  ['gzip;q=0.001', true],
  ['gzip ; q=1', true],
  ['gzip;Q=1.000', true],
  ['gzip;q=0, *', false],
  ['*, gzip;q=0', false],
  ['*;q=0, gzip', true],
  ['br, *;q=0.5', true],
  ['gzip;q=0.5, identity', false],
  ['gzip;q=0.5, identity;q=0.4', true],
  ['identity;q=0', false],
  ['identity;q=0, *', true],
  ['gzip, identity;q=0', true],
  ['gzip;q=0, x-gzip', true],
  ['gzip;q=2', false],
  ['gzip;q=1.001', false],
  ['gzip;q=0.0001', false],
  ['gzip;q=', false],
  ['gzip;q', false],
  ['gzip;level=9', false],
  ['gzipped', false],
  ['not-gzip', false],
  [',,gzip,,', true],
  [';', false],
]
for (const [header, yes] of accepted) {
  test(`${yes ? 'sends' : 'does not send'} gzip for ${JSON.stringify(header)}`, () =>
    assert.equal(codingFor(header, ['gzip']), yes ? 'gzip' : undefined))
}

const chosen: [string, readonly Coding[], Coding | undefined][] = [
  ['gzip, deflate, br, zstd', all, 'zstd'],
  ['gzip, deflate, br', all, 'br'],
  ['gzip, deflate', all, 'gzip'],
  ['gzip, deflate, br, zstd', ['br', 'gzip'], 'br'],
  ['gzip;q=1.0, br;q=0.9, zstd;q=0.8', all, 'gzip'],
  ['gzip;q=0.5, br;q=0.9, zstd;q=0.9', all, 'zstd'],
  ['zstd;q=0, *', all, 'br'],
  ['*;q=0.5, gzip', all, 'gzip'],
  ['br;q=0.5, identity;q=0.6', all, undefined],
  ['ZSTD', all, 'zstd'],
  ['BR;q=0.1', all, 'br'],
  ['gzip', [], undefined],
]
for (const [header, offered, coding] of chosen) {
  test(`chooses ${coding ?? 'no coding'} for ${header}, of ${offered.join(' ')}`, () =>
    assert.equal(codingFor(header, offered), coding))
}

const types: [string, boolean][] = [
  ['text/html', true],
  ['text/html; charset=utf-8', true],
  ['TEXT/Plain', true],
  ['text/event-stream', false],
  ['text/event-stream; charset=utf-8', false],
  ['text/event-streams', true],
  ['application/json', true],
  ['application/json;charset=utf-8', true],
  ['application/problem+json', true],
  ['application/atom+xml ; a=b', true],
  ['image/svg+xml', true],
  ['application/xml', true],
  ['application/javascript', true],
  ['application/wasm', true],
  ['application/jsonp', false],
  ['application/octet-stream', false],
  ['application/zip', false],
  ['image/png', false],
  ['image/png; x=a+json', false],
  ['video/mp4', false],
  ['', false],
]
for (const [type, yes] of types) {
  test(`${yes ? 'compresses' : 'does not compress'} ${JSON.stringify(type)}`, () => assert.equal(isCompressible(type),
    yes))
}

test('handles any Accept-Encoding', () => {
  const random = new Seeded(4)
  const parts = ['gzip', '*', ',', ';', 'q=', '0', '.', '1', ' ', '=', 'identity', '\u00ff', '"']
  let yes = 0
  for (let round = 0; round < 5000; round += 1) {
    const text = Array.from({ length: random.integer(8) }, () => random.pick(parts)).join('')
    if (codingFor(text, ['gzip']) !== undefined) yes += 1
  }
  assert.ok(yes > 100 && yes < 4900)
})

const decoders: Readonly<Record<Coding, (bytes: Uint8Array) => Uint8Array>> = {
  br: zlib.brotliDecompressSync,
  gzip: zlib.gunzipSync,
  zstd: (bytes) => (zlib as unknown as { zstdDecompressSync(of: Uint8Array): Uint8Array }).zstdDecompressSync(bytes),
}
for (const coding of replyCodings) {
  test(`compresses small bodies synchronously and large ones in the thread pool, with equal output: ${coding}`, async () => {
    const text = Buffer.from('Grüße, '.repeat(400))
    const small = compressReply(text, coding)
    assert.ok(small instanceof Uint8Array && small.length < text.length)
    assert.deepEqual(Buffer.from(decoders[coding](small)), text)
    const long = Buffer.alloc(65_537, text)
    const large = compressReply(long, coding)
    assert.ok(large instanceof Promise)
    assert.deepEqual(Buffer.from(decoders[coding](await large)), long)
    assert.ok(compressReply(long.subarray(1), coding) instanceof Uint8Array)
  })
}

test('prefers zstd if Node supports it', () => {
  assert.deepEqual(replyCodings, 'zstdCompress' in zlib ? all : ['br', 'gzip'])
  assert.equal(compressAboveBytes, 2048)
})
