/**
 * A disk that is really full: a small tmpfs where this process may mount one (root), else a limit on the size of files,
 * which the system refuses to pass in the same way. Needs `mount` and `prlimit` (Debian: mount, util-linux).
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { backUp, inspectDatabase } from '../../lib/data/inspect.ts'
import { createFileMover } from '../../lib/files/move-file.ts'
import { addJob, jobNames, openTest } from '../data/support.ts'
import { logCounts, numberedLines, readNumbers } from '../durability/numbered-lines.ts'
import { writeFiles } from '../support/application.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

/** Takes the room away and gives it back. */
interface Disk {
  readonly kind: string
  fill(): void
  free(): void
}

const diskMegabytes = 6

test('a full disk and back: written is on disk, the rest is counted, lost is nothing that had room', async (t) => {
  const folder = temporaryFolder()
  const logs = join(folder, '.logs')
  mkdirSync(logs)
  const mounted = mountDisk(t, logs)
  writeFiles(folder, numberedLines)
  const server = launch(t, ['start'], { cwd: folder })
  const url = await server.listening()
  const disk = mounted ?? limitedFiles(Number(server.child.pid), () => statSync(join(logs, 'svc.log')).size)
  t.diagnostic(disk.kind)
  let next = 0
  let singles = 0
  const write = async (count: number): Promise<void> => {
    assert.equal((await request(`${url}/lines?from=${next}&count=${count}`)).status, 200)
    next += count
    assert.equal((await request(`${url}/one/${next}`)).status, 200)
    next += 1
    singles += 1
  }
  await write(4000)
  for (let round = 0; round < 3; round += 1) {
    const before = await logCounts(url)
    assert.deepEqual(before.warnings, [])
    disk.fill()
    await write(4000)
    await write(4000)
    const full = await logCounts(url)
    assert.match(full.warnings.join(), /Cannot write the log \S+svc\.log: (?:ENOSPC|EFBIG)/)
    assert.ok(full.general.lost > before.general.lost, 'nothing was lost on a full disk')
    disk.free()
    await until(async () => (await logCounts(url)).warnings.length === 0)
    const back = await logCounts(url)
    await write(1000)
    const after = await logCounts(url)
    assert.deepEqual([after.general.lost, after.access.lost], [back.general.lost, back.access.lost])
  }
  const { general, access } = await logCounts(url)
  server.child.kill('SIGTERM')
  assert.equal(await server.ended, 0)
  const found = readNumbers(logs, 'general')
  t.diagnostic(`${next} lines: ${found.numbers.length} on disk, ${general.lost} counted as lost`)
  assert.equal(found.numbers.length + general.lost, next)
  assert.equal(readNumbers(logs, 'access').numbers.length + access.lost, singles)
})

test('an upload that does not fit on a disk is refused, leaves nothing there, and can be moved elsewhere', async (t) => {
  const folder = temporaryFolder()
  const full = join(folder, 'full')
  mkdirSync(full)
  const disk = mountDisk(t, full) ?? limitedFiles(process.pid, () => 1000)
  const path = join(folder, 'upload')
  writeFileSync(path, Buffer.alloc(1_000_000))
  const move = createFileMover(folder)
  const onDisk = { path }
  const inMemory = { bytes: Buffer.alloc(60_000) }
  disk.fill()
  const before = readdirSync(full)
  const uploads = before.length > 0 ? [onDisk, inMemory] : [inMemory] // Without another file system a file is not copied.
  for (const upload of uploads) {
    await assert.rejects(move(upload, 'full/a.bin'), /^Error: Cannot move an uploaded file to \S+\/full\/a\.bin: (?:ENOSPC|EFBIG)/)
  }
  assert.deepEqual(readdirSync(full), before)
  disk.free()
  await move(onDisk, 'elsewhere/a.bin')
  await move(inMemory, 'full/a.bin')
  assert.deepEqual([statSync(join(folder, 'elsewhere/a.bin')).size, statSync(join(full, 'a.bin')).size], [1_000_000, 60_000])
})

test('a database on a full disk: all writes of a turn are rejected, what was committed stays, and it goes on after it', async (t) => {
  if (!hasSqlite) return assert.throws(() => openTest(t), /paths\.data needs node:sqlite/)
  const folder = temporaryFolder()
  const data = join(folder, 'data')
  mkdirSync(data)
  const disk = mountDisk(t, data) ?? limitedFiles(process.pid, () => statSync(join(data, 'svc.db-wal')).size)
  const { database, lines } = openTest(t, data)
  let rollbacks = 0
  database.onRollback(() => (rollbacks += 1))
  const add = (name: string): Promise<unknown>[] =>
    Array.from({ length: 20 }, (_, at) => database.write(() => addJob(database, `${name} ${at}`, 'x'.repeat(20_000))))
  await Promise.all(add('before'))
  for (const round of [1, 2]) {
    disk.fill()
    const settled = await Promise.allSettled(add('full'))
    for (const { reason } of settled as PromiseRejectedResult[]) {
      assert.match(String(reason), /^DataError: Cannot write \S+\/svc\.db: the disk (?:is full: free some space|reports an error: check)/)
    }
    assert.deepEqual([rollbacks, jobNames(database).length], [round, round * 20])
    const content = inspectDatabase(data)
    assert.deepEqual([content?.problem, content?.jobsByState.get(0)], [undefined, round * 20])
    assert.throws(() => backUp(data, join(data, 'copy')), /^DataError: Cannot back up \S+ to \S+: the disk (?:is full|reports an error)/)
    assert.equal(existsSync(join(data, 'copy')), false)
    disk.free()
    await Promise.all(add('after'))
  }
  disk.fill()
  database.close()
  const again = openTest(t, data)
  assert.deepEqual([jobNames(again.database).length, again.lines], [60, []])
  disk.free()
  again.database.close()
  assert.deepEqual(lines.map((line) => line.split(' ')[0]).slice(0, 4), ['ERROR', 'INFO', 'ERROR', 'INFO'])
})

/** A small file system at a folder; undefined where it may not be mounted. */
function mountDisk(t: TestContext, folder: string): Disk | undefined {
  const options = `size=${diskMegabytes}m,mode=700,uid=${process.getuid?.()}`
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder])
  if (status !== 0) return undefined
  t.after(() => assert.equal(spawnSync('umount', [folder]).status, 0))
  const filler = join(folder, 'filler')
  return {
    kind: `on a tmpfs of ${diskMegabytes} MB`,
    fill: () => {
      for (const size of [65_536, 1024, 1]) {
        try {
          for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: 'a' })
        } catch (error) {
          assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
        }
      }
    },
    free: () => rmSync(filler),
  }
}

/** The files of a process may not grow any more; a rotation would begin a new one, so the limit is below its size. */
function limitedFiles(pid: number, limitOf: () => number): Disk {
  const limit = (bytes: string): void => {
    const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`])
    assert.equal(status, 0, String(stderr))
  }
  return {
    kind: 'with a limit on the size of files: this process may not mount a file system',
    fill: () => limit(String(limitOf())),
    free: () => limit('unlimited'),
  }
}
