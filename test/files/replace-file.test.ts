import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import * as promises from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { replacedBy, replaceFile, replaceFileSync } from '../../lib/files/replace-file.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Both functions with the same signature. */
const ways: Readonly<Record<string, (path: string, write: (temporary: string) => void) => Promise<unknown>>> = {
  replaceFile: (path, write) => replaceFile(path, async (temporary) => write(temporary)),
  replaceFileSync: async (path, write) => replaceFileSync(path, write),
}

for (const [name, replace] of Object.entries(ways)) {
  describe(name, () => {
    it('creates a file and replaces it, and leaves nothing else in the folder', async () => {
      const folder = temporaryFolder()
      const file = join(folder, 'a.json')
      for (const text of ['first', 'second']) {
        await replace(file, (temporary) => {
          assert.equal(dirname(temporary), folder)
          assert.equal(replacedBy(basename(temporary)), 'a.json')
          assert.equal(existsSync(file), text === 'second')
          writeFileSync(temporary, text)
        })
        assert.equal(readFileSync(file, 'utf8'), text)
      }
      assert.deepEqual(readdirSync(folder), ['a.json'])
    })

    it('keeps the old file when the new one cannot be written, and removes the partial one', async () => {
      const folder = temporaryFolder()
      const file = join(folder, 'a.json')
      writeFileSync(file, 'old')
      const full = (temporary: string): void => {
        writeFileSync(temporary, 'ha')
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
      }
      await assert.rejects(replace(file, full), { code: 'ENOSPC' })
      await assert.rejects(replace(file, () => {}), { code: 'ENOENT' })
      assert.equal(readFileSync(file, 'utf8'), 'old')
      assert.deepEqual(readdirSync(folder), ['a.json'])
    })

    it('removes the temporary file when it cannot be renamed', async () => {
      const folder = temporaryFolder()
      const file = join(folder, 'a.json')
      mkdirSync(file)
      await assert.rejects(replace(file, (temporary) => writeFileSync(temporary, 'new')), { code: 'EISDIR' })
      assert.deepEqual(readdirSync(folder), ['a.json'])
    })
  })
}

describe('replaceFile', () => {
  it('reports the first failure if the temporary file cannot be removed either', async () => {
    const file = join(temporaryFolder(), 'a.json')
    const refuse = (code: string) => async (): Promise<void> => {
      throw Object.assign(new Error(`${code}: refused by the test`), { code })
    }
    const files = { rename: refuse('EIO'), unlink: refuse('EACCES') }
    await assert.rejects(replaceFile(file, (temporary) => promises.writeFile(temporary, 'new'), files), { code: 'EIO' })
    assert.equal(readdirSync(dirname(file)).map(replacedBy)[0], 'a.json')
  })
})

describe('the name of a temporary file', () => {
  it('identifies the file that it was to replace', () => {
    const rows: readonly [name: string, file: string | undefined][] = [
      ['.svc.json.0123456789ab.tmp', 'svc.json'],
      ['svc.json.0123456789ab.tmp', 'svc.json'],
      ['..hidden.0123456789ab.tmp', '.hidden'],
      ['.svc.json.tmp', undefined],
      ['.svc.json.0123456789abc.tmp', undefined],
      ['.svc.json.0123456789AB.tmp', undefined],
      ['.0123456789ab.tmp', undefined],
      ['svc.json', undefined],
    ]
    for (const [name, file] of rows) assert.equal(replacedBy(name), file, name)
  })
})
