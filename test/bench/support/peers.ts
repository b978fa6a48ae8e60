/**
 * The packages that benchmarks compare with. They live in `test/bench/peers`, with versions of their own, and are only
 * installed when a benchmark runs, or by `npm ci` there for the tests of docs/recipes/from-*.md.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of the peers, with a slash at its end. */
export const peersFolder = fileURLToPath(new URL('../peers/', import.meta.url))

/** Requires a peer. Their types are not there to check against: the caller says what it uses. */
export const requirePeer = createRequire(join(peersFolder, 'package.json'))

/**
 * Installs the peers where one of those asked for is missing.
 * @throws Error when npm cannot install them
 */
export function installPeers(...names: readonly string[]): void {
  if (names.every((name) => existsSync(join(peersFolder, 'node_modules', name)))) return
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: peersFolder, stdio: 'inherit' })
  if (status !== 0) throw new Error(`Cannot install the peers in ${peersFolder}: npm ci failed`)
}

/** The installed version of a peer. */
export function versionOf(name: string): string {
  const text = readFileSync(join(peersFolder, 'node_modules', name, 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
