/** The commands `digest` and `verify`, which show and check the code of an installation. They read no configuration. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { version } from '../base/version.ts'
import { exitStatus } from '../process/process.ts'
import { digestOf, readCode, roomOf, type Code } from '../proof/code-digest.ts'
import { compare } from '../proof/compare.ts'
import { makeManifest, ManifestError, parseManifest, roomsOf } from '../proof/manifest.ts'
import { signatureFault } from '../proof/signature.ts'
import { optionalRooms, tierOf } from '../proof/tiers.ts'

/** What a command prints, and the exit status. */
export interface Outcome {
  readonly status: number
  /** For standard output. */
  readonly out: string
  /** For standard error. */
  readonly error: string
}

/**
 * Shows the digests of the rooms, of the tiers and of everything, or a manifest. The status is 1 when something is not
 * a plain, readable file: there is no manifest then.
 * @param code default: that of this process
 */
export function digest(asManifest: boolean, code: Code = readCode()): Outcome {
  const error = [...code.faults].map(([path, fault]) => `${path} ${fault}\n`).join('')
  if (error !== '') return { status: exitStatus.failed, out: asManifest ? '' : digestText(code), error }
  return { status: exitStatus.ok, out: asManifest ? makeManifest(version, code) : digestText(code), error }
}

/**
 * Compares an installation with a manifest, and shows each difference. The status is 0 when there is none, else 1.
 * @param file the manifest; its signature is in the file of this name with `.sig`
 * @param keyFile a public key in PEM; undefined: the signature is not checked
 * @param code default: that of this process
 */
export function verify(file: string, keyFile: string | undefined, code: Code = readCode()): Outcome {
  try {
    const bytes = readFileSync(file)
    if (keyFile === undefined) return compareWith(file, bytes, 'the signature was not checked: no --key', code)
    const fault = signatureFault(bytes, readText(`${file}.sig`), readText(keyFile))
    if (fault !== undefined) throw new ManifestError(fault)
    return compareWith(file, bytes, `${file}.sig fits the key ${keyFile}`, code)
  } catch (error) {
    return { status: exitStatus.failed, out: '', error: `Cannot verify with ${file}: ${reasonOf(error)}\n` }
  }
}

/** @throws ManifestError */
function compareWith(file: string, bytes: Uint8Array, signed: string, code: Code): Outcome {
  const manifest = parseManifest(bytes)
  if (manifest.folder !== code.folder) {
    const runs = `Node ${process.versions.node} runs ${code.folder}/ here`
    throw new ManifestError(`it is of ${manifest.folder}/, but ${runs}: use the manifest of ${code.folder}/`)
  }
  const { faults, removed } = compare(manifest, version, code)
  const notes = removed.map((room) => `removed: ${code.folder}/${room}/, which is optional`)
  const isCompiled = existsSync(join(code.root, '.cached', 'compile'))
  if (isCompiled) notes.push('not checked: .cached/compile/, which Node may run instead: remove it')
  const [status, are] = faults.length === 0 ? [exitStatus.ok, 'are'] : [exitStatus.failed, 'are not']
  const result = `svc ${version}: the files of bin/ and ${code.folder}/, ${code.files.size}, ${are} those of ${file}`
  return { status, out: [...notes, ...faults, signed, result].map((line) => `${line}\n`).join(''), error: '' }
}

function digestText(code: Code): string {
  const digestWhere = (isChosen: (path: string) => boolean): string => digestOf(code, isChosen)
  const found = Object.keys(roomsOf(new Map([...code.files, ...code.faults])))
  const isGone = (room: string): boolean => !code.rooms.includes(room) && !code.faults.has(`${code.folder}/${room}`)
  const removed = optionalRooms.filter(isGone)
  const rooms = [...new Set([...found, ...removed])].sort().map((room) => {
    const name = room === 'bin' ? 'bin/' : `${code.folder}/${room}/`
    return [name, removed.includes(room) ? 'removed' : digestWhere((path) => roomOf(path) === room)] as const
  })
  const tiers = [1, 2, 3].map((tier) => [`tier ${tier}`, digestWhere((path) => tierOf(roomOf(path)) === tier)] as const)
  const rows = [...rooms, ...tiers, ['all', digestOf(code)] as const]
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join('')
}

function readText(file: string): string {
  return readFileSync(file, 'utf8')
}
