import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { digestOf, readCode } from '../../lib/proof/code-digest.ts'
import { compare } from '../../lib/proof/compare.ts'
import { makeManifest, ManifestError, parseManifest } from '../../lib/proof/manifest.ts'
import { Seeded } from '../support/seeded.ts'
import { install } from './installation.ts'

const code = readCode(install(), 'lib')
const text = makeManifest('0.9.0', code)
const sha = 'ab'.repeat(32)

interface Document {
  version?: unknown
  files: Record<string, unknown>
  rooms: Record<string, unknown>
  all?: unknown
}

describe('a manifest', () => {
  it('is read as it was made', () => {
    const manifest = parseManifest(Buffer.from(text))
    assert.deepEqual(manifest, { version: '0.9.0', folder: 'lib', files: code.files })
    assert.equal(makeManifest('0.9.0', manifest), text)
  })

  it('has the digest of every file, of the rooms and of all', () => {
    const { version, files, rooms, all } = JSON.parse(text)
    assert.deepEqual([version, files, all], ['0.9.0', Object.fromEntries(code.files), digestOf(code)])
    assert.deepEqual(Object.keys(rooms), ['bin', 'core', 'http', 'jobs', 'panel'])
    assert.equal(rooms.jobs, digestOf(code, (path) => path.startsWith('lib/jobs/')))
  })

  const wrong: readonly (readonly [what: string, change: (document: Document) => unknown, message: RegExp])[] = [
    ['a list', () => [], /^it must be an object with version, files, rooms and all$/],
    ['null', () => null, /^it must be an object/],
    ['without a version', (document) => ({ ...document, version: undefined }), /^version must be like 1\.2\.3: it is missing$/],
    ['with a number as version', (document) => ({ ...document, version: 1 }), /^version must be like 1\.2\.3: it is 1$/],
    ['with a version of two lines', (document) => ({ ...document, version: '1.2.3\n1.2.3' }), /^version must be like/],
    ['without files', ({ files: _files, ...document }) => document, /^files must be an object: it is missing$/],
    ['with a list of files', (document) => ({ ...document, files: [] }), /^files must be an object: it is \[\]$/],
    ['with no files', (document) => ({ ...document, files: {} }), /^files must be in bin\/ and one of lib\/ and dist\/: they are in none$/],
    ['of lib/ and dist/', (document) => withFile(document, 'dist/a.js', sha), /^files must be in bin\/ and one of lib\/ and dist\//],
    ['of another folder', (document) => withFile(document, 'src/a.js', sha), /they are in bin, lib, src$/],
    ['without bin/', () => ({ version: '1.0.0', files: { 'lib/a.ts': sha }, rooms: {}, all: sha }), /they are in lib$/],
    ['with a path upwards', (document) => withFile(document, 'lib/../../a', sha), /^files has "lib\/\.\.\/\.\.\/a", which is no path of a file$/],
    ['with an absolute path', (document) => withFile(document, '/lib/a', sha), /no path of a file/],
    ['with an empty segment', (document) => withFile(document, 'lib//a', sha), /no path of a file/],
    ['with a NUL', (document) => withFile(document, 'lib/a\0', sha), /no path of a file/],
    ['with a short digest', (document) => withFile(document, 'lib/a.ts', sha.slice(1)), /^files\["lib\/a\.ts"\] must be a SHA-256/],
    ['with a digest in capitals', (document) => withFile(document, 'lib/a.ts', sha.toUpperCase()), /must be a SHA-256/],
    ['with a number as digest', (document) => withFile(document, 'lib/a.ts', 1), /must be a SHA-256, 64 hexadecimal digits: it is 1$/],
    ['without rooms', ({ rooms: _rooms, ...document }) => document, /^rooms must be an object: it is missing$/],
    ['with another digest of a room', (document) => ({ ...document, rooms: { ...document.rooms, core: sha } }), /^the digest of the room "core" is not that of its files$/],
    ['with one more room', (document) => ({ ...document, rooms: { ...document.rooms, more: sha } }), /^the digest of the room "more" is not/],
    ['with one room less', (document) => ({ ...document, rooms: { ...document.rooms, core: undefined } }), /^the digest of the room "core" is not/],
    ['with another digest of all', (document) => ({ ...document, all: sha }), /^the digest all is not that of its files$/],
    ['with another file', (document) => withFile(document, 'lib/a.ts', sha), /^the digest all is not that of its files$/],
  ]
  for (const [what, change, message] of wrong) {
    it(`is refused ${what}`, () => {
      const document = change(JSON.parse(text) as Document)
      assert.throws(() => parseManifest(Buffer.from(JSON.stringify(document))), (error) => {
        assert.ok(error instanceof ManifestError)
        assert.match(error.message, message)
        return true
      })
    })
  }

  it('is refused if it is no UTF-8, begins with a byte order mark or is huge', () => {
    const bytes = Buffer.from(text)
    const rows: readonly (readonly [Buffer, RegExp])[] = [
      [Buffer.concat([bytes, Buffer.from([0xff])]), /^it is not JSON: /],
      [Buffer.concat([Buffer.from('\ufeff'), bytes]), /^it is not JSON: /],
      [Buffer.alloc(16 * 1024 * 1024 + 1, 32), /^it has more than 16777216 bytes$/],
    ]
    for (const [damaged, message] of rows) assert.throws(() => parseManifest(damaged), { message })
  })

  it('never fits after damage, but to its white space', () => {
    const random = new Seeded(42)
    let parsed = 0
    for (let run = 0; run < 3000; run++) {
      const damaged = damage(Buffer.from(text), random)
      try {
        const manifest = parseManifest(damaged)
        parsed += 1
        const isSame = makeManifest(manifest.version, manifest) === text.replace('"0.9.0"', `"${manifest.version}"`)
        const { faults } = compare(manifest, '0.9.0', code)
        assert.ok(isSame, `run ${run}`)
        assert.equal(faults.length, manifest.version === '0.9.0' ? 0 : 1)
      } catch (error) {
        assert.ok(error instanceof ManifestError, `run ${run}: ${String(error)}`)
      }
    }
    assert.ok(parsed > 0)
  })
})

function withFile({ files, ...document }: Document, path: string, value: unknown): object {
  return { ...document, files: { ...files, [path]: value } }
}

/** Changes, removes, repeats or truncates some bytes. */
function damage(bytes: Buffer, random: Seeded): Buffer {
  const at = random.integer(bytes.length)
  const length = 1 + random.integer(8)
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at + length)]
  switch (random.integer(5)) {
    case 0: return Buffer.concat([before, after])
    case 1: return Buffer.concat([before, random.bytes(length), after])
    case 2: return Buffer.concat([before, bytes.subarray(at, at + length), bytes.subarray(at)])
    case 3: return before
    default: {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ (1 << random.integer(8))
      return changed
    }
  }
}
