/** Releases of copies of this checkout: they run git, the compiler and npm. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash, generateKeyPairSync } from 'node:crypto'
import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, it } from 'node:test'
import { version } from '../../lib/base/version.ts'
import { launch, root, runLauncher, runsTypeScript } from '../support/launch.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeRelease, ReleaseError, type ReleaseOptions } from './release.ts'

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const keys = temporaryFolder()
const [keyFile, publicFile] = [join(keys, 'private.pem'), join(keys, 'public.pem')]
writeFileSync(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }))
writeFileSync(publicFile, publicKey.export({ format: 'pem', type: 'spki' }))

/** Files at the top of the checkout that a commit of it has, for the release. */
const tracked = /^(?:bin|docs|lib|routes|\.gitignore|svc\.json|package(?:-lock)?\.json|tsconfig(?:\.build)?\.json|\w+\.md|LICENSE)$/

function git(folder: string, ...args: string[]): string {
  const who = ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', '-c', 'commit.gpgsign=false']
  const date = '2026-01-02T03:04:05Z'
  const env = { ...process.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date }
  return execFileSync('git', [...who, ...args], { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** A repository with the files of this checkout in one commit. */
function commitCopy(name: string): string {
  const folder = join(temporaryFolder(), name)
  mkdirSync(folder)
  for (const entry of readdirSync(root).filter((each) => tracked.test(each))) {
    const isKept = (path: string): boolean => !/^(?:.*\/)?\.(?:logs|cached)$/.test(relative(root, path))
    cpSync(join(root, entry), join(folder, entry), { recursive: true, filter: isKept })
  }
  git(folder, 'init', '-q')
  git(folder, 'add', '-A')
  git(folder, 'commit', '-q', '-m', 'All')
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

function release(checkout: string, more: Partial<ReleaseOptions> = {}): { out: string; names: readonly string[]; warnings: string[] } {
  const out = join(temporaryFolder(), 'out')
  const warnings: string[] = []
  const names = makeRelease({ checkout, out, keyFile: undefined, warn: (message) => void warnings.push(message), ...more })
  return { out, names, warnings }
}

const filesOf = (folder: string): ReadonlyMap<string, string> =>
  new Map(readdirSync(folder).sort().map((name) => [name, sha256(readFileSync(join(folder, name)))]))

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

describe('npm run release', () => {
  const checkout = commitCopy('svc')
  const { out, names, warnings } = release(checkout, { keyFile })
  const archive = `svc-${version}.tgz`
  let installed: string | undefined
  /** The folder of a program that has the package in its `node_modules`. */
  const program = (): string => {
    if (installed !== undefined) return installed
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
    execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', join(out, archive)], { cwd: folder, stdio: 'pipe' })
    return (installed = folder)
  }

  it('makes an archive, two manifests, two bills of materials, checksums and signatures', () => {
    const signed = [`svc-${version}.dist.manifest.json`, `svc-${version}.lib.manifest.json`, 'SHA256SUMS']
    const expected = [...signed, ...signed.map((name) => `${name}.sig`), archive, `svc-${version}.cdx.json`, `svc-${version}.spdx.json`]
    assert.deepEqual([...names].sort(), expected.sort())
    assert.deepEqual([...filesOf(out).keys()], expected.sort())
    execFileSync('sha256sum', ['--strict', '-c', 'SHA256SUMS'], { cwd: out })
    assert.equal(readFileSync(join(out, 'SHA256SUMS'), 'utf8').split('\n').length, 6)
  })

  it('makes the same bytes from another folder, with other settings, times and modes', () => {
    const other = commitCopy('elsewhere')
    for (const setting of ['core.autocrlf=true', 'tar.umask=0077', 'core.eol=crlf']) git(other, 'config', ...setting.split('='))
    execFileSync('chmod', ['-R', 'go-rwx', join(other, 'lib')])
    const before = process.umask(0o077)
    const { TZ, LANG } = process.env
    try {
      Object.assign(process.env, { TZ: 'Asia/Tokyo', LANG: 'tr_TR.UTF-8' })
      assert.deepEqual(filesOf(release(other, { keyFile }).out), filesOf(out))
    } finally {
      process.umask(before)
      restore({ TZ, LANG })
    }
  })

  it('packs the files that npm would pack, for its own dist/', () => {
    const packed = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: checkout, encoding: 'utf8' }))
    const listed: readonly string[] = Object.values<{ files: { path: string }[] }>(packed)[0]?.files.map(({ path }) => path) ?? []
    const own = execFileSync('tar', ['-tzf', join(out, archive)], { encoding: 'utf8' }).trimEnd().split('\n').map((path) => path.slice('package/'.length))
    assert.deepEqual(own.filter((path) => !path.startsWith('dist/')), [...listed].sort())
    const compiled = own.filter((path) => /^dist\/.*\.js$/.test(path)).map((path) => path.slice('dist/'.length, -'.js'.length))
    const sources = own.filter((path) => /^lib\/.*(?<!\.d)\.[jt]s$/.test(path)).map((path) => path.slice('lib/'.length, -'.ts'.length))
    assert.deepEqual(compiled.sort(), sources.sort())
  })

  it('makes an archive that npm installs, and svc verify accepts with the signature', async (t) => {
    const folder = program()
    const manifest = join(out, `svc-${version}.dist.manifest.json`)
    const args = ['verify', manifest, '--key', publicFile]
    const launcher = join(folder, 'node_modules/svc/bin/svc.js')
    const whole = await runLauncher(t, args, { cwd: folder, launcher, nodeOptions: [] })
    assert.deepEqual([whole.status, whole.stderr], [0, ''])
    assert.match(whole.stdout, new RegExp(`^svc ${version}: the files of bin/ and dist/, \\d+, are those of `, 'm'))
    const file = join(folder, 'node_modules/svc/dist/core/server.js')
    const text = readFileSync(file)
    appendFileSync(file, ' ')
    const changed = await runLauncher(t, args, { cwd: folder, launcher, nodeOptions: [] })
    writeFileSync(file, text)
    assert.equal(changed.status, 1)
    assert.match(changed.stdout, /^changed: dist\/core\/server\.js$/m)
  })

  it('makes an archive that runs unpacked, and the manifest of what runs there', async (t) => {
    const folder = temporaryFolder()
    execFileSync('tar', ['-xzf', join(out, archive), '-C', folder, '--strip-components=1'])
    const [runs, other] = runsTypeScript ? ['lib', 'dist'] : ['dist', 'lib']
    const verify = (of: string | undefined): ReturnType<typeof runLauncher> => {
      const args = ['verify', join(out, `svc-${version}.${of}.manifest.json`), '--key', publicFile]
      return runLauncher(t, args, { cwd: folder, launcher: join(folder, 'bin/svc.js'), nodeOptions: [] })
    }
    const { status, stderr } = await verify(runs)
    assert.deepEqual([status, stderr], [0, ''])
    assert.match((await verify(other)).stderr, new RegExp(`runs ${runs}/ here: use the manifest of ${runs}/`))
    rmSync(join(folder, String(runs), 'jobs'), { recursive: true })
    const without = await verify(runs)
    assert.equal(without.status, 0)
    assert.match(without.stdout, new RegExp(`^removed: ${runs}/jobs/, which is optional$`, 'm'))
  })

  const installations: readonly (readonly [place: string, install: () => string])[] = [
    ['in node_modules', () => join(program(), 'node_modules/.bin/svc')],
    [`by tar, in opt/svc/${version}`, () => {
      const folder = temporaryFolder()
      const place = join(folder, 'opt/svc', version)
      mkdirSync(place, { recursive: true })
      execFileSync('tar', ['-xzf', join(out, archive), '-C', place, '--strip-components=1', '--no-same-owner'])
      symlinkSync(version, join(folder, 'opt/svc/current'))
      return join(folder, 'opt/svc/current/bin/svc.js')
    }],
  ]
  for (const [place, install] of installations) {
    it(`makes an archive that, installed ${place}, creates an application, checks it and serves it`, async (t) => {
      const folder = temporaryFolder()
      const options = { launcher: install(), nodeOptions: [] }
      const run = async (cwd: string, ...args: string[]): Promise<string> => {
        const { status, stdout, stderr } = await runLauncher(t, args, { ...options, cwd })
        assert.deepEqual([status, stderr], [0, ''])
        return stdout
      }
      assert.equal(await run(folder, '--version'), `svc ${version}\n`)
      await run(folder, 'init', 'app')
      const app = join(folder, 'app')
      assert.match(await run(app, 'check'), /all is well, 2 routes\n$/)
      const server = launch(t, ['--port', '0'], { ...options, cwd: app })
      const url = await server.listening()
      assert.deepEqual(await (await fetch(`${url}/hello/you`)).json(), { hello: 'you' })
      assert.deepEqual(await (await fetch(`${url}/svc-ping`)).json(), { status: 'ok', server: `svc/${version}` })
      server.child.kill('SIGTERM')
      assert.equal(await server.ended, 0)
    })
  }

  it('makes a package that a program imports', () => {
    const folder = program()
    writeFileSync(join(folder, 'program.js'), `
      import { createApp } from 'svc'
      const app = createApp({ config: { 'log.console': false } })
      console.log((await app.request('/svc-ping')).status)
      await app.stop()`)
    assert.equal(execFileSync(process.execPath, ['program.js'], { cwd: folder, encoding: 'utf8' }), '200\n')
  })

  it('makes bills of materials that name the archive, without components', () => {
    const digest = sha256(readFileSync(join(out, archive)))
    const cdx = JSON.parse(readFileSync(join(out, `svc-${version}.cdx.json`), 'utf8'))
    const { timestamp, component } = cdx.metadata
    assert.deepEqual([cdx.bomFormat, cdx.components, timestamp], ['CycloneDX', [], '2026-01-02T03:04:05.000Z'])
    assert.deepEqual([component.version, component.hashes], [version, [{ alg: 'SHA-256', content: digest }]])
    assert.match(cdx.serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const spdx = JSON.parse(readFileSync(join(out, `svc-${version}.spdx.json`), 'utf8'))
    assert.equal(spdx.creationInfo.created, '2026-01-02T03:04:05Z')
    assert.deepEqual(spdx.packages.map((each: Record<string, unknown>) => [each['versionInfo'], each['packageFileName'], each['checksums']]), [
      [version, archive, [{ algorithm: 'SHA256', checksumValue: digest }]],
    ])
  })

  it('warns without the tag of the version', () => {
    assert.deepEqual(warnings, [`the commit has no tag v${version}: this is no release yet`])
    git(checkout, 'tag', `v${version}`)
    assert.deepEqual(release(checkout).warnings, [])
  })

  const refusals: readonly (readonly [what: string, change: (folder: string) => Partial<ReleaseOptions> | void, message: RegExp])[] = [
    ['a changed file', (folder) => appendFileSync(join(folder, 'lib/app.ts'), ' '), /^the checkout is not clean: commit or remove\n M lib\/app\.ts$/],
    ['a new file', (folder) => writeFileSync(join(folder, 'lib/new.ts'), ''), /^the checkout is not clean: commit or remove\n\?\? lib\/new\.ts$/],
    ['another compiler than the locked one', (folder) => rmSync(join(folder, 'node_modules')), /^typescript must be [\d.]+, as in package-lock\.json: it is not installed: run npm ci$/],
    ['a folder that has files', (folder) => ({ out: folder }), /is not empty: remove it, or pass --out DIR$/],
    ['a key that is none', () => ({ keyFile: publicFile }), /public\.pem is no private key in PEM: /],
    ['code that does not compile', (folder) => {
      appendFileSync(join(folder, 'lib/app.ts'), 'const one: string = 1\n')
      git(folder, 'commit', '-qam', 'Break')
    }, /^the build failed:\n.*lib\/app\.ts/],
  ]
  for (const [what, change, message] of refusals) {
    it(`refuses ${what}`, () => {
      const folder = join(temporaryFolder(), 'copy')
      execFileSync('cp', ['-a', checkout, folder])
      const options = change(folder) ?? {}
      assert.throws(() => release(folder, options), (error) => error instanceof ReleaseError && message.test(error.message))
    })
  }
})

function restore(variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
}
