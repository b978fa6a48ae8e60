/** Compares the code of an installation with a manifest. */
import { roomOf, type Code } from './code-digest.ts'
import type { Manifest } from './manifest.ts'
import { tierOf } from './tiers.ts'

/** How an installation differs from a manifest. Paths are from the root, sorted. */
export interface Differences {
  /** What is wrong, a line each, such as `changed: lib/core/server.ts`. */
  readonly faults: readonly string[]
  /** The rooms of tier 3 that the manifest has and the installation has not: no fault. */
  readonly removed: readonly string[]
}

/**
 * Compares every file.
 * @param version of the installation
 */
export function compare(manifest: Manifest, version: string, code: Code): Differences {
  const removed = removedRooms(manifest, code)
  const paths = [...new Set([...manifest.files.keys(), ...code.files.keys(), ...code.faults.keys()])].sort()
  const faults = paths.flatMap((path) => faultOf(path, manifest, code, removed))
  const { version: expected } = manifest
  if (expected === version) return { faults, removed }
  return { faults: [`other version: the manifest is of ${expected}, this is ${version}`, ...faults], removed }
}

function faultOf(path: string, manifest: Manifest, code: Code, removed: readonly string[]): string[] {
  const expected = manifest.files.get(path)
  const found = code.files.get(path)
  const fault = code.faults.get(path)
  if (fault?.startsWith('cannot be read') === true) return [`unread: ${quoted(path)} ${fault}`]
  if (fault !== undefined) return [`${expected === undefined ? 'more' : 'changed'}: ${quoted(path)} ${fault}`]
  if (found === undefined) return removed.includes(roomOf(path)) ? [] : [`missing: ${quoted(path)}`]
  if (expected === undefined) return [`more: ${quoted(path)}`]
  return found === expected ? [] : [`changed: ${quoted(path)}`]
}

/** The rooms that are gone with their folder. A folder that was emptied is not: the server would not start. */
function removedRooms(manifest: Manifest, code: Code): readonly string[] {
  const listed = new Set([...manifest.files.keys()].map(roomOf))
  const isGone = (room: string): boolean => !code.rooms.includes(room) && !code.faults.has(`${code.folder}/${room}`)
  return [...listed].filter((room) => tierOf(room) === 3 && isGone(room)).sort()
}

/** A path on one line: names with control characters are quoted. */
function quoted(path: string): string {
  return /[\u0000-\u001f\u007f-\u009f]/.test(path) ? JSON.stringify(path) : path
}
