// The package that npm creates from the checkout, and the build: both run other programs.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, readFileSync, readdirSync, symlinkSync } from 'node:fs'
import { join, posix, relative } from 'node:path'
import { before, describe, it, test } from 'node:test'
import { promisify } from 'node:util'
import { version } from '../../lib/base/version.ts'
import { root } from '../support/launch.ts'
import { links, readPage } from '../support/markdown.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

describe('a package', () => {
  let files: readonly string[]
  before(() => {
    files = packedFiles(JSON.parse(npm(['pack', '--dry-run', '--json', '--ignore-scripts'])))
  })

  it('contains only the code, its sources and the documents', () => {
    const folders = new Set(files.map((file) => (file.includes('/') ? `${file.slice(0, file.indexOf('/'))}/` : file)))
    assert.deepEqual([...folders].sort(), [
      'CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'SECURITY.md',
      'bin/', 'dist/', 'docs/', 'lib/', 'package.json', 'routes/', 'svc.json',
    ])
    for (const file of ['bin/svc.js', 'dist/built', 'dist/cli/main.js', 'dist/register.js', 'lib/cli/main.ts', 'lib/svc.d.ts', 'routes/board.json']) {
      assert.ok(files.includes(file), file)
    }
    assert.deepEqual(files.filter((file) => /(?:^|\/)\.|\.(?:log|tgz|tmp)$|\.test\.[jt]s$|~$/.test(file)), [])
  })

  it('has only the kinds of files that belong in its folders', () => {
    const kinds: Readonly<Record<string, RegExp>> = {
      'bin/': /\.js$/,
      'lib/': /\.(?:ts|html|css)$|^lib\/\w+\/svc-\w+\.js$/, // Those are for browsers.
      'dist/': /\.(?:js|js\.map|html|css)$|^dist\/built$/,
      'routes/': /\.(?:js|json|html|css|svg)$/,
    }
    const others = Object.entries(kinds).flatMap(([folder, kind]) =>
      files.filter((file) => file.startsWith(folder) && !kind.test(file)),
    )
    assert.deepEqual(others, [])
  })

  it('has a compiled file for each source, and vice versa', () => {
    const named = (folder: string, end: string): string[] =>
      files.filter((file) => file.startsWith(folder) && file.endsWith(end))
        .map((file) => file.slice(folder.length, -end.length))
        .sort()
    const sources = [...named('lib/', '.ts'), ...named('lib/', '.js')].filter((name) => !name.endsWith('.d'))
    assert.deepEqual(named('dist/', '.js'), sources.sort())
  })

  it('contains the targets of the links in its documents', () => {
    const dead = files.filter((file) => file.endsWith('.md')).flatMap((file) =>
      links(readPage(file))
        .filter((target) => !/^(?:https?:|#)/.test(target))
        .map((target) => posix.join(posix.dirname(file), target.replace(/#.*/, '')))
        .filter((target) => !files.some((packed) => packed === target || packed.startsWith(target))),
    )
    assert.deepEqual(dead, [])
  })
})

describe('the bill of materials', () => {
  /** Runs the command of docs/records.md that prints the bill in a format. */
  function billOf(format: string): unknown {
    const lines = readPage('docs/records.md').blocks.flatMap(({ text }) => text.split('\n'))
    const [, ...args] = lines.find((line) => line.startsWith('npm sbom ') && line.includes(format))?.split(' ') ?? []
    return JSON.parse(npm(args))
  }

  it('in SPDX has one package: svc', () => {
    const { packages } = billOf('spdx') as Spdx
    assert.deepEqual(packages.map(({ name, versionInfo }) => `${name} ${versionInfo}`), [`svc ${version}`])
  })

  it('in CycloneDX has no component but svc', () => {
    const bill = billOf('cyclonedx') as CycloneDx
    assert.deepEqual(bill.components, [])
    assert.equal(bill.metadata.component.purl, `pkg:npm/svc@${version}`)
  })
})

test('the build of dist/ is reproducible, byte by byte, in any folder', async () => {
  const builds = await Promise.all(['one', 'another/folder'].map((name) => build(join(temporaryFolder(), name))))
  const [one = new Map<string, string>(), other] = builds
  assert.ok(one.has('cli/main.js') && one.has('app.js.map') && one.has('panel/pages/layout.html'))
  assert.deepEqual(one, other)
})

/** The used members of these two formats. */
interface Spdx {
  readonly packages: readonly { readonly name: string; readonly versionInfo: string }[]
}
interface CycloneDx {
  readonly components: readonly unknown[]
  readonly metadata: { readonly component: { readonly purl: string } }
}

function npm(args: readonly string[]): string {
  return execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}

/** Copies the sources to a folder and builds them there. Returns the SHA-256 of each file of `dist/`. */
async function build(folder: string): Promise<Map<string, string>> {
  for (const name of ['bin', 'lib', 'package.json', 'tsconfig.json', 'tsconfig.build.json']) {
    cpSync(join(root, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  await promisify(execFile)(process.execPath, ['bin/build.js'], { cwd: folder })
  const files = readdirSync(join(folder, 'dist'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort()
  const hashes = paths.map((path) => createHash('sha256').update(readFileSync(path)).digest('hex'))
  return new Map(paths.map((path, at) => [relative(join(folder, 'dist'), path), hashes[at] ?? '']))
}

/** `npm pack --json` prints a list of packages, and from npm 12 on an object by name. */
function packedFiles(output: unknown): string[] {
  const [entry] = Object.values(output as Record<string, { files: { path: string }[] }>)
  return entry?.files.map(({ path }) => path) ?? []
}
