// `file.moveTo`: where an uploaded file ends, and what happens when it cannot get there.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createFileMover } from '../../lib/files/move-file.ts'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const content = 'x'.repeat(100_000)

/** A folder on another file system than the temporary folders. */
function elsewhere(t: TestContext): string {
  const folder = mkdtempSync('/dev/shm/svc-move-')
  t.after(() => rmSync(folder, { recursive: true }))
  assert.notEqual(statSync(folder).dev, statSync(temporaryFolder()).dev)
  return folder
}

/** Makes an upload on disk, and one in memory. */
function uploads(): { readonly onDisk: { path: string }; readonly inMemory: { bytes: Buffer } } {
  const path = join(temporaryFolder(), 'upload')
  writeFileSync(path, content, { mode: 0o600 })
  return { onDisk: { path }, inMemory: { bytes: Buffer.from(content) } }
}

describe('moveTo', () => {
  it('moves a file from disk or memory, here and to another file system', async (t) => {
    const here = temporaryFolder()
    const mask = process.umask(0o077)
    t.after(() => process.umask(mask))
    for (const folder of [here, elsewhere(t)]) {
      const { onDisk, inMemory } = uploads()
      const move = createFileMover(folder)
      await move(onDisk, 'pictures/2026/a.png')
      await move(inMemory, join(folder, 'b.png'))
      for (const name of ['pictures/2026/a.png', 'b.png']) {
        assert.equal(readFileSync(join(folder, name), 'utf8'), content)
        assert.equal(statSync(join(folder, name)).mode & 0o777, 0o640)
      }
      assert.equal(existsSync(onDisk.path), false)
      assert.deepEqual(readdirSync(folder).sort(), ['b.png', 'pictures'])
      assert.deepEqual(readdirSync(join(folder, 'pictures/2026')), ['a.png'])
    }
  })

  it('refuses an existing file unless it replaces it, and keeps the upload for another name', async (t) => {
    for (const folder of [temporaryFolder(), elsewhere(t)]) {
      for (const upload of Object.values(uploads())) {
        const move = createFileMover(folder)
        const target = join(folder, 'a.png')
        writeFileSync(target, 'old')
        const message = `Cannot move an uploaded file to ${target}: it exists: choose another name, or pass { replace: true }`
        await assert.rejects(move(upload, 'a.png'), { code: 'EEXIST', message })
        assert.equal(readFileSync(target, 'utf8'), 'old')
        await move(upload, 'a.png', { replace: true })
        assert.equal(readFileSync(target, 'utf8'), content)
        assert.deepEqual(readdirSync(folder), ['a.png'])
      }
    }
  })

  it('moves a file once, also when it is called twice at once', async () => {
    const folder = temporaryFolder()
    const move = createFileMover(folder)
    for (const [name, upload] of Object.entries(uploads())) {
      const first = join(folder, `${name}1`)
      const outcomes = await Promise.allSettled([move(upload, first), move(upload, `${name}2`)])
      assert.deepEqual(outcomes.map(({ status }) => status), ['fulfilled', 'rejected'])
      await assert.rejects(move(upload, `${name}3`), { message: `Cannot move an uploaded file to ${folder}/${name}3: it has already been moved to ${first}` })
      assert.deepEqual(readdirSync(folder).filter((one) => one.startsWith(name)), [`${name}1`])
    }
  })

  it('explains why a file cannot be moved, and leaves nothing behind', async (t) => {
    for (const folder of [temporaryFolder(), elsewhere(t)]) {
      mkdirSync(join(folder, 'folder/full'), { recursive: true })
      writeFileSync(join(folder, 'file'), '')
      symlinkSync('nowhere/at-all', join(folder, 'link'))
      const before = readdirSync(folder, { recursive: true }).sort()
      const rows: [string, { replace?: boolean }, RegExp][] = [
        ['folder', { replace: true }, /: it is a folder: name a file in it$/],
        ['folder', {}, /: it exists: choose another name, or pass \{ replace: true \}$/],
        ['file/a.png', {}, /: (?:.*\/file is not a folder|ENOTDIR.*)$/],
        ['link', {}, /: it exists/],
        [`${'x'.repeat(300)}`, {}, /: ENAMETOOLONG/],
      ]
      for (const [path, options, message] of rows) {
        for (const upload of Object.values(uploads())) {
          await assert.rejects(createFileMover(folder)(upload, path, options), { name: 'Error', message })
          if ('path' in upload) assert.equal(readFileSync(upload.path, 'utf8'), content)
        }
      }
      assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), before)
    }
    const { inMemory } = uploads()
    const wrong: [unknown, object][] = [['', {}], [undefined, {}], ['a\0b', {}], ['a', { overwrite: true }]]
    for (const [path, options] of wrong) {
      await assert.rejects(createFileMover('/')(inMemory, path as string, options), TypeError)
    }
  })

  it('is a member of the files of a form, below paths.root', async (t) => {
    const { url, folder } = await startApplication(t, {
      'routes/r.json': [{ name: 'r', url: '/', method: 'POST', scope: '', action: 'a.mjs' }],
      'a.mjs': `export default async (ctx) => {
        const { files } = await ctx.readForm()
        await Promise.all(files.map((file, at) => file.moveTo('kept/' + at)))
        return ctx.json(files.map((file) => Object.keys(file)))
      }`,
    })
    const part = (name: string, text: string): string =>
      `--b\r\nContent-Disposition: form-data; name="${name}"; filename="../x"\r\n\r\n${text}\r\n`
    const body = `${part('small', 'small')}${part('large', content)}--b--\r\n`
    const answer = await request(url, { body, headers: { 'content-type': 'multipart/form-data; boundary=b' } })
    assert.deepEqual(answer.json(), [['name', 'filename', 'type', 'size', 'bytes'], ['name', 'filename', 'type', 'size', 'path']])
    assert.deepEqual(readdirSync(join(folder, 'kept')), ['0', '1'])
    assert.equal(readFileSync(join(folder, 'kept/1'), 'utf8'), content)
  })
})
