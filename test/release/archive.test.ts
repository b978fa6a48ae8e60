import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { packFiles, type PackedFile } from './archive.ts'

const file = (path: string, text: string | Uint8Array, isExecutable = false): PackedFile => {
  return { path, bytes: Buffer.from(text), isExecutable }
}

describe('the archive of a release', () => {
  it('is unpacked by tar, with the bytes, the modes and the time of npm', () => {
    const long = `${'folder/'.repeat(14)}${'n'.repeat(90)}.txt`
    const files = [
      file('bin/run.js', 'run()\n', true),
      file('empty', ''),
      file('ä.txt', 'ä'),
      file(long, 'long'),
      ...[511, 512, 513, 65_535, 65_536, 200_000].map((size) => file(`size-${size}`, Buffer.alloc(size, 'xyz'))),
    ]
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'a.tgz'), packFiles(files))
    const { status, stderr } = spawnSync('tar', ['-xzf', 'a.tgz'], { cwd: folder, encoding: 'utf8' })
    assert.deepEqual([status, stderr], [0, ''])
    for (const { path, bytes, isExecutable } of files) {
      const at = join(folder, 'package', path)
      assert.deepEqual(readFileSync(at), bytes, path)
      assert.equal((statSync(at).mode & 0o100) !== 0, isExecutable, path)
      assert.equal(statSync(at).mtimeMs, Date.UTC(1985, 9, 26, 8, 15), path)
    }
  })

  it('has the same bytes for the same files in any order, and is not compressed', () => {
    const files = [file('b', '2'), file('a', 'a'.repeat(5000)), file('c/d', '3')]
    const bytes = packFiles(files)
    assert.deepEqual(packFiles(files.toReversed()), bytes)
    assert.ok(gunzipSync(bytes).length <= bytes.length)
  })

  it('refuses a path that a tar file cannot have', () => {
    assert.throws(() => packFiles([file('n'.repeat(101), '')]), { message: /^Cannot pack package\/n+: its name is too long for a tar file$/ })
  })
})
