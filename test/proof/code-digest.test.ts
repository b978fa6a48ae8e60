import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { version } from '../../lib/base/version.ts'
import { digest } from '../../lib/cli/proof.ts'
import { codeDigest, digestOf, readCode } from '../../lib/proof/code-digest.ts'
import { optionalRooms, tierOf, tierOneRooms } from '../../lib/proof/tiers.ts'
import { root } from '../support/launch.ts'
import { readPage, tableBelow } from '../support/markdown.ts'
import { install, installed } from './installation.ts'

const target = process.env['SVC_TEST_TARGET'] === 'dist' ? 'dist' : 'lib'

describe('the digest of the code', () => {
  it('is the SHA-256 of what sha256sum prints for the sorted files', () => {
    const list = `find bin ${target} -type f | LC_ALL=C sort | xargs sha256sum | sha256sum`
    const [expected] = execFileSync('sh', ['-c', list], { cwd: root, encoding: 'utf8' }).split(' ')
    assert.equal(codeDigest().digest, expected)
    const tierOne = `find ${tierOneRooms.map((room) => `${target}/${room}`).join(' ')} -type f | LC_ALL=C sort | xargs sha256sum | sha256sum`
    assert.equal(codeDigest().tier1, execFileSync('sh', ['-c', tierOne], { cwd: root, encoding: 'utf8' }).slice(0, 64))
    assert.deepEqual([codeDigest().version, codeDigest().warnings], [version, []])
  })

  it('depends on paths and bytes alone: not on the folder, times, modes or order of creation', () => {
    const expected = digestOf(readCode(install(), 'lib'))
    const folder = install(Object.fromEntries(Object.entries(installed).reverse()))
    for (const file of Object.keys(installed)) {
      chmodSync(join(folder, file), 0o600)
      utimesSync(join(folder, file), 1, 1)
    }
    mkdirSync(join(folder, 'lib/empty'))
    writeFileSync(join(folder, 'svc.json'), '{}')
    assert.equal(digestOf(readCode(folder, 'lib')), expected)
  })

  const changes: readonly (readonly [what: string, change: (folder: string) => void])[] = [
    ['a byte of a file', (folder) => writeFileSync(join(folder, 'lib/app.ts'), 'export const app = 2\n')],
    ['another file', (folder) => writeFileSync(join(folder, 'lib/core/new.ts'), '')],
    ['a hidden file', (folder) => writeFileSync(join(folder, 'bin/.hidden'), '')],
    ['a removed file', (folder) => rmSync(join(folder, 'lib/http/body.ts'))],
    ['a removed room', (folder) => rmSync(join(folder, 'lib/jobs'), { recursive: true })],
    ['a file that is a link to its own bytes', (folder) => linkAway(folder, 'lib/app.ts')],
    ['a folder that is a link to its own files', (folder) => linkAway(folder, 'lib/jobs')],
    ['the whole of lib/ as a link', (folder) => linkAway(folder, 'lib')],
    ['a link to nothing', (folder) => symlinkSync('/nowhere', join(folder, 'lib/link.ts'))],
  ]
  for (const [what, change] of changes) {
    it(`differs with ${what}`, () => {
      const folder = install()
      change(folder)
      assert.notEqual(digestOf(readCode(folder, 'lib')), digestOf(readCode(install(), 'lib')))
    })
  }

  it('hashes large files, and those of exactly the size of its pieces', () => {
    const sizes = [0, 1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 512 * 1024, 700_001]
    const bytes = (size: number): Buffer => Buffer.alloc(size, 'abc')
    const folder = install()
    for (const size of sizes) writeFileSync(join(folder, `lib/${size}.ts`), bytes(size))
    const { files } = readCode(folder, 'lib')
    for (const size of sizes) {
      assert.equal(files.get(`lib/${size}.ts`), createHash('sha256').update(bytes(size)).digest('hex'), String(size))
    }
  })

  it('names what is not a plain file, and waits for none', () => {
    const folder = install()
    symlinkSync('/etc/hostname', join(folder, 'lib/core/link.ts'))
    spawnSync('mkfifo', [join(folder, 'lib/core/pipe.ts')])
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/lib/x`), Buffer.from([0xff])]), '')
    const { faults } = readCode(folder, 'lib')
    assert.deepEqual([...faults.keys()], ['lib/core/link.ts', 'lib/core/pipe.ts', 'lib/x\ufffd'])
    assert.equal(faults.get('lib/core/link.ts'), 'is a link to /etc/hostname')
    assert.equal(faults.get('lib/core/pipe.ts'), 'is neither a file nor a folder')
    assert.match(faults.get('lib/x\ufffd') ?? '', /^cannot be read: ENOENT/)
  })

  it('is made of nothing without throwing, and says so', () => {
    const folder = install({ 'svc.json': '{}' })
    const { files, faults } = readCode(folder, 'lib')
    assert.deepEqual([files.size, [...faults.keys()]], [0, ['bin', 'lib']])
  })

  it('is not the same for a name that forges a line of another file', () => {
    const honest = install()
    const forged = install()
    const { files } = readCode(honest, 'lib')
    rmSync(join(forged, 'lib/jobs/jobs.ts'))
    rmSync(join(forged, 'lib/jobs/cron.ts'))
    mkdirSync(join(forged, `lib/jobs/cron.ts\n${files.get('lib/jobs/jobs.ts')}  lib/jobs`), { recursive: true })
    writeFileSync(join(forged, `lib/jobs/cron.ts\n${files.get('lib/jobs/jobs.ts')}  lib/jobs/jobs.ts`), installed['lib/jobs/cron.ts'] ?? '')
    assert.notEqual(digestOf(readCode(forged, 'lib')), digestOf(readCode(honest, 'lib')))
    const list = 'find bin lib -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum'
    assert.equal(digestOf(readCode(forged, 'lib')), execFileSync('sh', ['-c', list], { cwd: forged, encoding: 'utf8' }).slice(0, 64))
  })
})

describe('svc digest', () => {
  it('shows each room, each tier and all, and the rooms that were removed', () => {
    const code = readCode(install(), 'lib')
    const { status, out, error } = digest(false, code)
    assert.deepEqual([status, error], [0, ''])
    const digestWhere = (pattern: RegExp): string => digestOf(code, (path) => pattern.test(path))
    const shown = (name: string): string | undefined => [...out.matchAll(/^(\S+|tier \d) +(\S+)$/gm)].find(([, found]) => found === name)?.[2]
    assert.equal(shown('lib/core/'), digestWhere(/^lib\/core\//))
    assert.equal(shown('bin/'), digestWhere(/^bin\//))
    assert.equal(shown('lib/cluster/'), 'removed')
    assert.equal(shown('lib/jobs/'), digestWhere(/^lib\/jobs\//))
    assert.equal(shown('tier 1'), digestWhere(/^lib\/(?:core|http)\//))
    assert.equal(shown('tier 2'), digestWhere(/^bin|^lib\/app|^lib\/panel/))
    assert.equal(shown('tier 3'), digestWhere(/^lib\/jobs/))
    assert.equal(shown('all'), digestOf(code))
  })

  it('fails if something is not a plain file, and then prints no manifest', () => {
    const folder = install()
    linkAway(folder, 'lib/jobs')
    const shown = digest(false, readCode(folder, 'lib'))
    assert.equal(shown.status, 1)
    assert.match(shown.error, /^lib\/jobs is a link to \/.*\n$/)
    assert.doesNotMatch(shown.out, /^lib\/jobs\//m)
    assert.deepEqual(digest(true, readCode(folder, 'lib')), { status: 1, out: '', error: shown.error })
  })
})

describe('the tiers', () => {
  it('name rooms that exist, and those that docs/audit.md lists', () => {
    for (const room of tierOneRooms) assert.ok(existsSync(join(root, 'lib', room)), room)
    const listed = tableBelow(readPage('docs/audit.md'), '## The least server').map(([room]) => room)
    assert.deepEqual(listed.sort(), optionalRooms.map((room) => `\`${room}/\``).sort())
    assert.deepEqual(['core', 'panel', 'bin', '', 'jobs'].map(tierOf), [1, 2, 2, 2, 3])
  })

  it('are read from the text by the tests of the least server', async () => {
    const program: string = '../support/least.js' // A variable: JavaScript has no types.
    const least = (await import(program)) as { optionalRooms: (checkout: string) => readonly string[] }
    assert.deepEqual(least.optionalRooms(root), optionalRooms)
  })
})

/** Moves a file or folder away, and puts a link to it in its place. */
function linkAway(folder: string, path: string): void {
  const away = install({})
  spawnSync('mv', [join(folder, path), join(away, 'moved')])
  symlinkSync(join(away, 'moved'), join(folder, path))
}
