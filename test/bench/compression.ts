/**
 * `npm run bench -- compression`: what each content coding costs and saves, for JSON as it is answered and for text files as
 * they are compressed once. Times are of the thread that calls; rounds alternate over codings and levels.
 */
import * as zlib from 'node:zlib'
import { parseArgs } from 'node:util'
import { readFileSync } from 'node:fs'
import { rowsOf } from './http/rows.ts'
import { median } from './support/statistics.ts'

type Compress = (bytes: Buffer) => Buffer

/** What Node has from 22.15 on; older ones print no rows for it. */
const { zstdCompressSync, constants } = zlib as typeof zlib & {
  readonly zstdCompressSync?: (bytes: Buffer, options: object) => Buffer
  readonly constants: Readonly<Record<string, number>>
}
const rounds = 9
const { BROTLI_PARAM_QUALITY: brotliQuality = 0, ZSTD_c_compressionLevel: zstdLevel = 0 } = constants
const gzip = (level: number): Compress => (bytes) => zlib.gzipSync(bytes, { level })
const brotli = (quality: number): Compress => (bytes) => zlib.brotliCompressSync(bytes, { params: { [brotliQuality]: quality } })
const zstd = (level: number): Compress => (bytes) => {
  return zstdCompressSync?.(bytes, { params: { [zstdLevel]: level } }) ?? bytes
}
const hasZstd = zstdCompressSync !== undefined
const replies = new Map([
  ['gzip 1', gzip(1)],
  ['gzip 6', gzip(6)],
  ['br 1', brotli(1)],
  ['br 4', brotli(4)],
  ...(hasZstd ? ([['zstd 1', zstd(1)], ['zstd 3', zstd(3)]] as const) : []),
])
const files = new Map([
  ['gzip 6', gzip(6)],
  ['gzip 9', gzip(9)],
  ['br 6', brotli(6)],
  ['br 9', brotli(9)],
  ['br 11', brotli(11)],
  ...(hasZstd ? ([['zstd 9', zstd(9)], ['zstd 19', zstd(19)]] as const) : []),
])

const { positionals } = parseArgs({ allowPositionals: true })
console.log(`Node ${process.versions.node}\n\n| body | coding | bytes | us |\n| --- | --- | --- | --- |`)
if (positionals.length > 0) {
  for (const file of positionals) compare(file.replace(/^.*\//, ''), readFileSync(file), files)
} else {
  for (const length of [3000, 6000, 16_000, 64_000]) compare('JSON', Buffer.from(JSON.stringify(rowsOf(length))), replies)
}

function compare(name: string, bytes: Buffer, compressors: ReadonlyMap<string, Compress>): void {
  const times = new Map([...compressors.keys()].map((coding) => [coding, [] as number[]]))
  const repeats = Math.max(1, Math.floor(1_000_000 / bytes.length))
  for (let round = 0; round <= rounds; round += 1) {
    for (const [coding, compress] of compressors) {
      const from = performance.now()
      for (let time = 0; time < repeats; time += 1) compress(bytes)
      if (round > 0) times.get(coding)?.push(((performance.now() - from) * 1000) / repeats) // The first one warms up.
    }
  }
  for (const [coding, compress] of compressors) {
    const us = median(times.get(coding) ?? [])
    console.log(`| ${name} of ${bytes.length} | ${coding} | ${compress(bytes).length} | ${us.toFixed(1)} |`)
  }
}
