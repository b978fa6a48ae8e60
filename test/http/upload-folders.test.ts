import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { sweepUploads } from '../../lib/composition/left-uploads.ts'
import { makeUploadFolder } from '../../lib/http/multipart-form.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('an upload folder has the process and the host in its name, and is private to this user', async () => {
  const parent = join(temporaryFolder(), 'not', 'there')
  const folder = await makeUploadFolder(parent)
  assert.ok(basename(folder).startsWith(`svc-upload-${process.pid}-${hostname()}-`))
  assert.equal(statSync(folder).mode & 0o777, 0o700)
})

test('leftovers of ended processes on this host are removed, and of other hosts after a day', async (t) => {
  const parent = temporaryFolder()
  const living = spawn('sleep', ['60'])
  t.after(() => living.kill())
  const gone = spawnSync('true').pid
  const host = hostname()
  const stays = [`svc-upload-${living.pid}-${host}-abcdef`, `svc-upload-1-${host}-abcdef`, 'svc-upload-1-elsewhere-new123', 'svc-upload-x', 'other']
  const goes = [`svc-upload-${gone}-abcdef`, `svc-upload-${gone}-${host}-abcdef`, `svc-upload-${process.pid}-${host}-abcdef`, 'svc-upload-1-elsewhere-old123']
  for (const name of [...stays, ...goes]) {
    mkdirSync(join(parent, name))
    writeFileSync(join(parent, name, '0'), 'x')
  }
  const old = Date.now() / 1000 - 86_401
  utimesSync(join(parent, 'svc-upload-1-elsewhere-old123'), old, old)
  assert.equal(await sweepUploads(parent), goes.length)
  assert.deepEqual(readdirSync(parent).sort(), stays.sort())
  assert.equal(await sweepUploads(join(parent, 'not there')), 0)
})

test('a folder of another user is left alone, and reported', async (t) => {
  const parent = temporaryFolder()
  const folder = join(parent, `svc-upload-${spawnSync('true').pid}-${hostname()}-abcdef`)
  mkdirSync(folder)
  const { geteuid } = process
  const restore = (): unknown => Object.assign(process, { geteuid })
  t.after(restore)
  process.geteuid = () => statSync(folder).uid + 1
  const message = `${folder} belongs to another user: remove it, unless it is in use`
  await assert.rejects(sweepUploads(parent), { message })
  restore()
  assert.equal(await sweepUploads(parent), 1)
})
