/** Signed releases of the last commit: as it is, as an earlier version, and as a later one whose server does not start. */
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { version } from '../../lib/base/version.ts'
import { makeRelease } from '../release/release.ts'
import { root } from '../support/launch.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Versions of the releases: the pages install `current`, upgrade `previous` to it, and roll back. */
export const versions = { previous: '0.9.0', current: version, broken: '1.0.1' }

/** Returns the files of all releases, each as `VERSION/NAME`, and `svc.pem`. */
export function makeReleases(): Record<string, string> {
  const folder = temporaryFolder()
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const keyFile = join(folder, 'private.pem')
  writeFileSync(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }))
  writeFileSync(join(folder, 'svc.pem'), publicKey.export({ format: 'pem', type: 'spki' }))
  const files: Record<string, string> = { 'svc.pem': join(folder, 'svc.pem') }
  for (const [name, of] of Object.entries(versions)) {
    const out = join(folder, `out-${name}`)
    makeRelease({ checkout: checkoutOf(join(folder, name), of, name === 'broken'), out, keyFile, warn: () => {} })
    for (const file of readdirSync(out)) files[`${of}/${file}`] = join(out, file)
  }
  return files
}

/** Packs the Node that runs this as nodejs.org does, with its checksum. Returns both files by their names. */
export function packNode(): Record<string, string> {
  const folder = temporaryFolder()
  const name = `node-${process.version}-linux-x64`
  mkdirSync(join(folder, name, 'bin'), { recursive: true })
  execFileSync('cp', [process.execPath, join(folder, name, 'bin/node')])
  execFileSync('tar', ['-I', 'gzip -1', '-cf', `${name}.tar.gz`, name], { cwd: folder })
  writeFileSync(join(folder, 'SHASUMS256.txt'), execFileSync('sha256sum', [`${name}.tar.gz`], { cwd: folder }))
  return Object.fromEntries([`${name}.tar.gz`, 'SHASUMS256.txt'].map((file) => [basename(file), join(folder, file)]))
}

function checkoutOf(folder: string, of: string, isBroken: boolean): string {
  const git = (...args: readonly string[]): void => {
    execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', '-c', 'commit.gpgsign=false', ...args], { stdio: 'pipe' })
  }
  git('clone', '-q', root, folder)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const file of ['package.json', 'lib/base/version.ts']) {
    const text = readFileSync(join(folder, file), 'utf8')
    writeFileSync(join(folder, file), text.replace(version, of))
  }
  if (isBroken) {
    const launcher = join(folder, 'bin/svc.js')
    const text = readFileSync(launcher, 'utf8').replace('\nrefuseOldNode()\n', "\nif (process.argv[2] === 'start') process.exit(1)\n")
    writeFileSync(launcher, text)
  }
  git('-C', folder, 'commit', '-q', '--allow-empty', '-am', 'Change the version')
  return folder
}
