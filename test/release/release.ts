/**
 * Makes the files of a release from the last commit of a checkout: the package, a manifest for each folder that may run,
 * two bills of materials and checksums; with a key, signatures. The same commit always gives the same bytes.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash, createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readCode } from '../../lib/proof/code-digest.ts'
import { makeManifest } from '../../lib/proof/manifest.ts'
import { packFiles, type PackedFile } from './archive.ts'
import { cycloneDx, spdx } from './bills.ts'

/** What to release, and where to. */
export interface ReleaseOptions {
  /** A clean checkout with its installed `node_modules`. */
  readonly checkout: string
  /** The folder for the files: missing or empty. */
  readonly out: string
  /** A private key of Ed25519 in PEM; undefined: nothing is signed. */
  readonly keyFile: string | undefined
  readonly warn: (message: string) => void
}

/** A reason why there is no release: the message says what to do. */
export class ReleaseError extends Error {}

/** The members of `package.json` that a release uses. */
interface Package {
  readonly version: string
  readonly description: string
  readonly license: string
  readonly files: readonly string[]
  readonly bin: Readonly<Record<string, string>>
}

/** Files that npm packs without being told. */
const alwaysPacked = ['package.json', 'README.md', 'LICENSE']

/**
 * Makes the release.
 * @returns the names of its files
 * @throws ReleaseError
 */
export function makeRelease({ checkout, out, keyFile, warn }: ReleaseOptions): readonly string[] {
  const key = keyFile === undefined ? undefined : readKey(keyFile)
  if (existsSync(out) && readdirSync(out).length > 0) throw new ReleaseError(`${out} is not empty: remove it, or pass --out DIR`)
  refuseChanges(checkout)
  const copy = mkdtempSync(join(tmpdir(), 'svc-release-'))
  try {
    extract(checkout, copy)
    const manifest = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8')) as Package // A test checks its members.
    refuseOtherCompiler(checkout, copy)
    warnWithoutTag(checkout, `v${manifest.version}`, warn)
    build(checkout, copy)
    const files = makeFiles(copy, manifest, Number(git(checkout, 'log', '-1', '--format=%ct', 'HEAD')) * 1000)
    mkdirSync(out, { recursive: true })
    const names = Object.keys(files)
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(out, name), bytes)
    if (key === undefined) return names
    const signed = names.filter((name) => name.endsWith('.manifest.json') || name === 'SHA256SUMS')
    for (const name of signed) {
      const signature = sign(null, readFileSync(join(out, name)), key).toString('base64')
      writeFileSync(join(out, `${name}.sig`), `${signature}\n`)
    }
    return [...names, ...signed.map((name) => `${name}.sig`)]
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

function readKey(file: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(readFileSync(file))
  } catch (error) {
    throw new ReleaseError(`${file} is no private key in PEM: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new ReleaseError(`${file} must be a key of Ed25519 (openssl genpkey -algorithm ed25519): it is of ${key.asymmetricKeyType}`)
  }
  return key
}

function refuseChanges(checkout: string): void {
  const changes = git(checkout, 'status', '--porcelain')
  if (changes !== '') throw new ReleaseError(`the checkout is not clean: commit or remove\n${changes}`)
}

/** Writes the files of the last commit, whatever the user's settings for line ends and attributes. */
function extract(checkout: string, copy: string): void {
  const settings = ['-c', 'core.autocrlf=false', '-c', 'core.eol=lf', '-c', 'core.attributesFile=/dev/null']
  const archive = execFileSync('git', [...settings, 'archive', '--format=tar', 'HEAD'], { cwd: checkout, maxBuffer: 2 ** 30 })
  execFileSync('tar', ['-x', '-C', copy], { input: archive })
}

function refuseOtherCompiler(checkout: string, copy: string): void {
  const lock = JSON.parse(readFileSync(join(copy, 'package-lock.json'), 'utf8'))
  const file = join(checkout, 'node_modules/typescript/package.json')
  const installed = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : 'not installed'
  const locked = lock.packages['node_modules/typescript'].version
  if (installed === locked) return
  throw new ReleaseError(`typescript must be ${locked}, as in package-lock.json: it is ${installed}: run npm ci`)
}

function warnWithoutTag(checkout: string, tag: string, warn: (message: string) => void): void {
  if (git(checkout, 'tag', '--points-at', 'HEAD').split('\n').includes(tag)) return
  warn(`the commit has no tag ${tag}: this is no release yet`)
}

function build(checkout: string, copy: string): void {
  const modules = join(copy, 'node_modules')
  symlinkSync(join(checkout, 'node_modules'), modules)
  const { NODE_OPTIONS: _options, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, ['bin/build.js'], { cwd: copy, env, encoding: 'utf8' })
  if (status !== 0) throw new ReleaseError(`the build failed:\n${stdout}${stderr}`)
  rmSync(modules)
}

/** The files of the release by their names, without signatures. */
function makeFiles(copy: string, { version, description, license, files, bin }: Package, timeMs: number): Record<string, Uint8Array> {
  const name = `svc-${version}`
  const executables = Object.values(bin)
  const paths = [...alwaysPacked, ...files].flatMap((path) => filesAt(copy, path.replace(/\/$/, '')))
  const packed = [...new Set(paths)].map((path): PackedFile => {
    return { path, bytes: readFileSync(join(copy, path)), isExecutable: executables.includes(path) }
  })
  const archive = packFiles(packed)
  const released = { version, description, license, file: `${name}.tgz`, sha256: sha256Of(archive), timeMs }
  const made: Record<string, Uint8Array> = {
    [`${name}.tgz`]: archive,
    [`${name}.lib.manifest.json`]: Buffer.from(makeManifest(version, readCode(copy, 'lib'))),
    [`${name}.dist.manifest.json`]: Buffer.from(makeManifest(version, readCode(copy, 'dist'))),
    [`${name}.cdx.json`]: Buffer.from(cycloneDx(released)),
    [`${name}.spdx.json`]: Buffer.from(spdx(released)),
  }
  const sums = Object.entries(made).sort().map(([file, bytes]) => `${sha256Of(bytes)}  ${file}\n`)
  return { ...made, SHA256SUMS: Buffer.from(sums.join('')) }
}

/** @throws ReleaseError for a link, which would have other bytes elsewhere */
function filesAt(folder: string, path: string): string[] {
  const found = lstatSync(join(folder, path))
  if (found.isDirectory()) return readdirSync(join(folder, path)).flatMap((name) => filesAt(folder, `${path}/${name}`))
  if (!found.isFile()) throw new ReleaseError(`${path} must be a file: it is a link`)
  return [path]
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function git(checkout: string, ...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: checkout, encoding: 'utf8', maxBuffer: 2 ** 30 }).trimEnd()
}
