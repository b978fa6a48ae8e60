import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { acceptsGzip, compressAboveBytes, gzipLevel, gzipReply, isCompressible } from '../../lib/http/compress.ts'
import { Seeded } from '../support/seeded.ts'

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
    assert.equal(acceptsGzip(header), yes))
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

test('reads any Accept-Encoding without harm', () => {
  const random = new Seeded(4)
  const parts = ['gzip', '*', ',', ';', 'q=', '0', '.', '1', ' ', '=', 'identity', '\u00ff', '"']
  let yes = 0
  for (let round = 0; round < 5000; round += 1) {
    const text = Array.from({ length: random.integer(8) }, () => random.pick(parts)).join('')
    if (acceptsGzip(text)) yes += 1
  }
  assert.ok(yes > 100 && yes < 4900)
})

test('compresses small bodies at once and large ones in the thread pool, to the same text', async () => {
  const text = 'Grüße, '.repeat(400)
  const small = gzipReply(text)
  assert.ok(small instanceof Uint8Array && small.length < text.length)
  assert.equal(gunzipSync(small).toString(), text)
  const large = gzipReply(Buffer.from(text.repeat(100)))
  assert.ok(large instanceof Promise)
  assert.equal(gunzipSync(await large).toString(), text.repeat(100))
  assert.deepEqual([compressAboveBytes, gzipLevel], [2048, 1])
})
