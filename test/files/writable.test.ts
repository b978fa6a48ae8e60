import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { problemOfFolder, type FolderAccess } from '../../lib/files/writable.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const failure = (code: string): Promise<never> => Promise.reject(Object.assign(new Error(`${code}: it failed`), { code }))

/** A file system with these folders; the ones in `closed` cannot be written. */
function system(folders: readonly string[], closed: Readonly<Record<string, string>> = {}): FolderAccess {
  return {
    stat: async (path) => (folders.includes(path) ? { isDirectory: () => true } : failure('ENOENT')),
    access: async (path) => (closed[path] === undefined ? undefined : failure(closed[path])),
  }
}

describe('a folder that a process must write to', () => {
  const rows: readonly (readonly [name: string, system: FolderAccess, problem: object | undefined])[] = [
    ['is there', system(['/', '/a', '/a/b']), undefined],
    ['can be made, with those above it', system(['/']), undefined],
    ['belongs to another user', system(['/', '/a', '/a/b'], { '/a/b': 'EACCES' }), { isMissing: false, reason: 'EACCES: it failed' }],
    ['is on a read-only file system', system(['/', '/a', '/a/b'], { '/a/b': 'EROFS' }), { isMissing: false, reason: 'EROFS: it failed' }],
    ['does not exist and cannot be created', system(['/', '/a'], { '/a': 'EACCES' }), {
      isMissing: true,
      reason: 'it does not exist and cannot be created: EACCES: it failed',
    }],
    ['is below what the permission model does not show', { ...system(['/']), stat: () => failure('ERR_ACCESS_DENIED') }, undefined],
  ]
  for (const [name, fake, problem] of rows) {
    it(`${problem === undefined ? 'has no problem when it' : 'has one when it'} ${name}`, async () => {
      assert.deepEqual(await problemOfFolder('/a/b', undefined, fake), problem)
    })
  }

  it('is not a folder when a file is in the way', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'file'), '')
    assert.deepEqual(await problemOfFolder(join(folder, 'file')), { isMissing: false, reason: `${join(folder, 'file')} is not a folder` })
    assert.match((await problemOfFolder(join(folder, 'file', 'more')))?.reason ?? '', /ENOTDIR/)
    assert.equal(await problemOfFolder(join(folder, 'new', 'newer')), undefined)
  })
})
