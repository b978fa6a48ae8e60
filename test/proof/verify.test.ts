import assert from 'node:assert/strict'
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { version } from '../../lib/base/version.ts'
import { digest, verify, type Outcome } from '../../lib/cli/proof.ts'
import { readCode } from '../../lib/proof/code-digest.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { install, installed, writeManifest } from './installation.ts'

const { publicKey, privateKey } = generateKeyPairSync('ed25519')

describe('svc verify', () => {
  it('exits with 0 for the same files, elsewhere', () => {
    const manifest = writeManifest(install())
    const { status, out, error } = verify(manifest, undefined, readCode(install(), 'lib'))
    assert.deepEqual([status, error], [0, ''])
    const lines = ['the signature was not checked: no --key', `svc ${version}: the files of bin/ and lib/, 8, are those of ${manifest}`]
    assert.deepEqual(out.split('\n'), [...lines, ''])
  })

  it('takes what svc digest --manifest printed', () => {
    const code = readCode(install(), 'lib')
    const file = join(temporaryFolder(), 'manifest.json')
    writeFileSync(file, digest(true, code).out)
    assert.equal(verify(file, undefined, code).status, 0)
    assert.deepEqual(Object.keys(JSON.parse(readFileSync(file, 'utf8'))), ['version', 'files', 'rooms', 'all'])
  })

  const away = temporaryFolder()
  const rows: readonly (readonly [what: string, change: (at: (path: string) => string) => void, ...lines: string[]])[] = [
    ['a changed file', (at) => writeFileSync(at('lib/app.ts'), 'x'), 'changed: lib/app.ts'],
    ['a changed byte in bin/', (at) => writeFileSync(at('bin/svc.js'), 'start();'), 'changed: bin/svc.js'],
    ['an added file', (at) => writeFileSync(at('lib/core/new.ts'), ''), 'more: lib/core/new.ts'],
    ['an added room', (at) => mkdirSync(at('lib/new')) ?? writeFileSync(at('lib/new/a.ts'), ''), 'more: lib/new/a.ts'],
    ['a removed file', (at) => rmSync(at('lib/http/body.ts')), 'missing: lib/http/body.ts'],
    ['a removed file of an optional room', (at) => rmSync(at('lib/jobs/cron.ts')), 'missing: lib/jobs/cron.ts'],
    ['an optional room whose folder is empty', (at) => {
      rmSync(at('lib/jobs'), { recursive: true })
      mkdirSync(at('lib/jobs'))
    }, 'missing: lib/jobs/cron.ts', 'missing: lib/jobs/jobs.ts'],
    ['a removed room of tier 1', (at) => rmSync(at('lib/core'), { recursive: true }),
      'missing: lib/core/pool.ts', 'missing: lib/core/server.ts'],
    ['a removed room of tier 2', (at) => rmSync(at('lib/panel'), { recursive: true }), 'missing: lib/panel/pages/index.html'],
    ['a file that is a link', (at) => {
      renameSync(at('lib/app.ts'), join(away, 'app.ts'))
      symlinkSync(join(away, 'app.ts'), at('lib/app.ts'))
    }, `changed: lib/app.ts is a link to ${join(away, 'app.ts')}`],
    ['an optional room that is a link', (at) => {
      renameSync(at('lib/jobs'), join(away, 'jobs'))
      symlinkSync(join(away, 'jobs'), at('lib/jobs'))
    }, `more: lib/jobs is a link to ${join(away, 'jobs')}`, 'missing: lib/jobs/cron.ts', 'missing: lib/jobs/jobs.ts'],
    ['an added link', (at) => symlinkSync('/tmp', at('lib/core/tmp')), 'more: lib/core/tmp is a link to /tmp'],
    ['lib/ gone', (at) => renameSync(at('lib'), at('old')), 'removed: lib/jobs/, which is optional', 'unread: lib cannot be read',
      ...Object.keys(installed).filter((path) => /^lib\/(?!jobs)/.test(path)).map((path) => `missing: ${path}`)],
    ['a name with a line end', (at) => writeFileSync(at('lib/a\nremoved: b'), ''), 'more: "lib/a\\nremoved: b"'],
  ]
  for (const [what, change, ...lines] of rows) {
    it(`exits with 1 for ${what}, and names it`, () => {
      const folder = install()
      const manifest = writeManifest(folder)
      change((path) => join(folder, path))
      const { status, out } = verify(manifest, undefined, readCode(folder, 'lib'))
      assert.equal(status, 1)
      const found = out.split('\n').filter((line) => /^(?:changed|missing|more|removed|unread): /.test(line))
      assert.deepEqual(found.map((line) => line.replace(/: ENOENT.*/, '')).sort(), [...lines].sort())
      assert.match(out, /, are not those of /)
    })
  }

  it('names every difference at once', () => {
    const folder = install()
    const manifest = writeManifest(folder)
    writeFileSync(join(folder, 'lib/app.ts'), '')
    writeFileSync(join(folder, 'lib/b.ts'), '')
    rmSync(join(folder, 'lib/core/pool.ts'))
    const { out } = verify(manifest, undefined, readCode(folder, 'lib'))
    assert.deepEqual(out.split('\n').slice(0, 3), ['changed: lib/app.ts', 'more: lib/b.ts', 'missing: lib/core/pool.ts'])
  })

  it('reports a removed optional room, which is no fault', () => {
    const folder = install()
    const manifest = writeManifest(folder)
    rmSync(join(folder, 'lib/jobs'), { recursive: true })
    const { status, out } = verify(manifest, undefined, readCode(folder, 'lib'))
    assert.equal(status, 0)
    assert.match(out, /^removed: lib\/jobs\/, which is optional$/m)
  })

  it('says that compiled code is not checked, if there is any', () => {
    const folder = install()
    const manifest = writeManifest(folder)
    mkdirSync(join(folder, '.cached/compile'), { recursive: true })
    const { status, out } = verify(manifest, undefined, readCode(folder, 'lib'))
    assert.equal(status, 0)
    assert.match(out, /^not checked: \.cached\/compile\/, which Node may run instead: remove it$/m)
  })

  it('exits with 1 for the manifest of another version', () => {
    const folder = install()
    const { status, out } = verify(writeManifest(folder, '0.8.3'), undefined, readCode(folder, 'lib'))
    assert.equal(status, 1)
    assert.match(out, new RegExp(`^other version: the manifest is of 0.8.3, this is ${version}$`, 'm'))
  })

  it('exits with 1 for the manifest of the folder that does not run', () => {
    const folder = install({ 'bin/svc.js': '', 'dist/app.js': '', 'lib/app.ts': '' })
    const { status, error } = verify(writeManifest(folder), undefined, readCode(folder, 'dist'))
    assert.equal(status, 1)
    assert.match(error, /it is of lib\/, but Node [\d.]+ runs dist\/ here: use the manifest of dist\/\n$/)
  })

  it('exits with 1 for a manifest that is missing, a folder or truncated', () => {
    const folder = install()
    const code = readCode(folder, 'lib')
    const manifest = writeManifest(folder)
    const bytes = readFileSync(manifest)
    const failed = ({ status, out, error }: Outcome, message: RegExp): void => {
      assert.deepEqual([status, out], [1, ''])
      assert.match(error, message)
      assert.equal(error.split('\n').length, 2)
    }
    failed(verify(join(folder, 'none.json'), undefined, code), /^Cannot verify with .*none\.json: ENOENT/)
    failed(verify(folder, undefined, code), /^Cannot verify with .*: EISDIR/)
    for (const length of [0, 1, 100, bytes.length - 3]) {
      writeFileSync(manifest, bytes.subarray(0, length))
      failed(verify(manifest, undefined, code), /manifest\.json: it is not JSON: /)
    }
  })
})

describe('svc verify --key', () => {
  const pem = (key: KeyObject): string => key.export({ format: 'pem', type: key.type === 'public' ? 'spki' : 'pkcs8' }).toString()

  /** An installation with a manifest and its signature, and the result of its verification. */
  function signed(change: (files: { manifest: string; sig: string; key: string }) => void = () => {}): Outcome {
    const folder = install()
    const manifest = writeManifest(folder)
    const [sig, key] = [`${manifest}.sig`, join(folder, 'key.pem')]
    writeFileSync(sig, `${sign(null, readFileSync(manifest), privateKey).toString('base64')}\n`)
    writeFileSync(key, pem(publicKey))
    change({ manifest, sig, key })
    return verify(manifest, key, readCode(folder, 'lib'))
  }

  it('exits with 0 for the right signature, with or without a line end', () => {
    const { status, out } = signed()
    assert.equal(status, 0)
    assert.match(out, /manifest\.json\.sig fits the key .*key\.pem$/m)
    const without = signed(({ sig }) => writeFileSync(sig, readFileSync(sig, 'utf8').trimEnd()))
    assert.equal(without.status, 0)
  })

  const other = generateKeyPairSync('ed25519')
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const edit = (file: string, change: (text: string) => string): void => writeFileSync(file, change(readFileSync(file, 'utf8')))
  const wrong: readonly (readonly [string, Parameters<typeof signed>[0], RegExp])[] = [
    ['another key', ({ key }) => writeFileSync(key, pem(other.publicKey)), /does not fit: the manifest was changed, or signed with another key/],
    ['a manifest with one more space', ({ manifest }) => edit(manifest, (text) => `${text} `), /does not fit/],
    ['no signature', ({ sig }) => rmSync(sig), /ENOENT.*manifest\.json\.sig/],
    ['an empty signature', ({ sig }) => writeFileSync(sig, ''), /must be the base64 of 64 bytes/],
    ['a truncated signature', ({ sig }) => edit(sig, (text) => text.slice(0, 40)), /must be the base64 of 64 bytes/],
    ['a signature with something after it', ({ sig }) => edit(sig, (text) => `${text}AA==`), /must be the base64 of 64 bytes/],
    ['the bytes of a signature', ({ sig }) => writeFileSync(sig, Buffer.alloc(64, 200)), /must be the base64 of 64 bytes/],
    ['no key', ({ key }) => rmSync(key), /ENOENT.*key\.pem/],
    ['a key that is none', ({ key }) => writeFileSync(key, 'key'), /the key is no public key in PEM/],
    ['the private key', ({ key }) => writeFileSync(key, pem(privateKey)), /the key is private: pass the public one/],
    ['an RSA key', ({ key }) => writeFileSync(key, pem(rsa.publicKey)), /must be of Ed25519: it is of rsa/],
  ]
  for (const [what, change, message] of wrong) {
    it(`exits with 1 for ${what}, and compares nothing`, () => {
      const { status, out, error } = signed(change)
      assert.deepEqual([status, out], [1, ''])
      assert.match(error, message)
    })
  }
})
