/**
 * The settings of the application, `settings` of `svc.json`. In them, `{"env": "NAME"}`, `{"credential": "name"}` and
 * `{"file": "path"}` are references: texts of environment variables, of credentials of the service manager, and of
 * files, so that secrets can be kept elsewhere.
 */
import { join, resolve } from 'node:path'
import { isObject } from '../base/object.ts'
import { isAtOrIn } from '../files/paths.ts'
import { readTextFile } from '../json/read-json.ts'
import { checkFileName, checkPath } from './checks.ts'
import { keyOf, leavesOf, type AnyObject } from './objects.ts'

/** The settings, with texts instead of references. */
export interface ReadSettings {
  readonly value: AnyObject
  /** The references that cannot be read, with their paths below `settings`. */
  readonly problems: readonly { readonly path: readonly string[]; readonly text: string }[]
}

interface Reference {
  readonly kind: keyof typeof labels
  readonly name: unknown
}

/** The kinds of references in messages. */
const labels = { env: 'the environment variable', credential: 'the credential', file: 'the file' } as const
const mostBytes = 65_536

/** Whether an object is a reference. */
export function isReference(value: AnyObject): boolean {
  return referenceOf(value) !== undefined
}

/** Returns the references in settings, each with its key, `settings.mail.url`, and its source, `env MAIL_URL`. */
export function referencesIn(settings: AnyObject): (Reference & { readonly key: string; readonly source: string })[] {
  return leavesOf('settings', settings, isReference).flatMap(({ key, value }) => {
    const reference = referenceOf(value)
    return reference === undefined ? [] : [{ ...reference, key, source: `${reference.kind} ${String(reference.name)}` }]
  })
}

/**
 * Replaces the references in settings by their texts, where they can be read.
 * @param folder the base of relative paths, absolute
 * @param publicFolder the absolute path of `paths.public`, if any: no file may be in it
 */
export function readSettings(settings: AnyObject, folder: string, publicFolder: string | undefined): ReadSettings {
  const problems: ReadSettings['problems'][number][] = []
  return { value: readMembers(settings, []), problems }

  function readMembers(value: AnyObject, path: readonly string[]): AnyObject {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, read(member, [...path, name])]))
  }

  function read(value: unknown, path: readonly string[]): unknown {
    if (Array.isArray(value)) return value.map((item, at) => read(item, [...path, String(at)]))
    if (!isObject(value)) return value
    const reference = referenceOf(value)
    if (reference === undefined) return readMembers(value, path)
    try {
      return textOf(reference, folder, publicFolder)
    } catch (error) {
      const what = `${labels[reference.kind]} ${String(reference.name)}`
      const { message } = error as Error // textOf throws Errors.
      problems.push({ path, text: `${keyOf('settings', path)} needs ${what}: ${message}` })
      return undefined
    }
  }
}

/** Returns the reference that a value is, if it is one. The type of its name is not checked. */
function referenceOf(value: unknown): Reference | undefined {
  const [member, ...others] = isObject(value) ? Object.entries(value) : []
  const [kind = '', name] = member ?? []
  const isOne = others.length === 0 && Object.hasOwn(labels, kind) && (typeof name !== 'object' || name === null)
  return isOne ? { kind: kind as Reference['kind'], name } : undefined // It is a name of `labels`.
}

/** @throws Error with the reason, which never contains the text */
function textOf({ kind, name }: Reference, folder: string, publicFolder: string | undefined): string {
  if (typeof name !== 'string') throw new Error('its name must be a text')
  const text = kind === 'env' ? variable(name) : readTextFile(fileOf(kind, name, folder), mostBytes)
  if (text === undefined) throw new Error(kind === 'env' ? 'it is not set' : 'it does not exist')
  if (Buffer.byteLength(text) > mostBytes) throw new Error(`it is longer than ${mostBytes / 1024} KiB`)
  if (kind === 'file' && publicFolder !== undefined && isAtOrIn(publicFolder, resolve(folder, name))) {
    throw new Error('it must not be in paths.public, which everybody may read')
  }
  return text.replace(/\r?\n$/, '')
}

function variable(name: string): string | undefined {
  return Object.hasOwn(process.env, name) ? process.env[name] : undefined // It inherits from Object.prototype.
}

/** @throws Error with the reason */
function fileOf(kind: 'credential' | 'file', name: string, folder: string): string {
  const problem = kind === 'file' ? checkPath(name) : checkFileName(name)
  if (problem !== undefined) throw new Error(`its name ${problem}`)
  if (kind === 'file') return resolve(folder, name)
  const { CREDENTIALS_DIRECTORY: credentials = '' } = process.env
  if (credentials === '') throw new Error('$CREDENTIALS_DIRECTORY is not set: no service manager has passed any')
  return join(credentials, name)
}
