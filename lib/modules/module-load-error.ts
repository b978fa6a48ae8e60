/**
 * Explains why a module did not load, with file and line. Depending on the kind of error, Node puts the location at the
 * head of the stack, in a stack frame, in the message, or nowhere (a syntax error in an ES module).
 */
import { readFile } from 'node:fs/promises'
import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importSpecifiers, syntaxErrorLine } from './import-specifiers.ts'

/** A module that could not be loaded. The message has file, line and reason; Node or the module threw `cause`. */
export class ModuleLoadError extends Error {
  override readonly name = 'ModuleLoadError'
  /** Whether the module's own file is missing. */
  readonly missing: boolean

  constructor(message: string, details: { readonly missing: boolean; readonly cause: unknown }) {
    super(message, { cause: details.cause })
    this.missing = details.missing
  }
}

/** Where an error happened: an absolute path and a line from 1. */
interface Place {
  readonly file: string
  readonly line: number | undefined
}

/** The module that did not load, the root for paths in messages, and the files that the module imports. */
interface LoadAttempt {
  readonly file: string
  readonly root: string
  readonly files: readonly string[]
}

/** Makes a readable error from the value thrown by loading a module. */
export async function moduleLoadError(cause: unknown, attempt: LoadAttempt): Promise<ModuleLoadError> {
  const { file, root } = attempt
  const shown = (path: string): string => shownPath(root, path)
  if (isMissing(cause, file)) {
    const message = `Cannot load ${shown(file)}: there is no such file`
    return new ModuleLoadError(message, { missing: true, cause })
  }
  const reason = reasonOf(cause)
  const place = await placeOf(cause, attempt)
  const where = place === undefined ? '' : `${shown(place.file)}${place.line === undefined ? '' : `:${place.line}`}: `
  return new ModuleLoadError(`Cannot load ${shown(file)}: ${where}${reason}`, { missing: false, cause })
}

/** The error for a module whose path is a link that leads outside the root. */
export function linkLeadsOut(root: string, file: string): ModuleLoadError {
  const why = `it is a link that leads outside the application's root, ${root}`
  const message = `Cannot load ${shownPath(root, file)}: ${why}`
  return new ModuleLoadError(message, { missing: false, cause: undefined })
}

/** The error for a module that has not loaded within a time, in milliseconds. */
export function neverLoads(root: string, file: string, ms: number): ModuleLoadError {
  const why = `it has not loaded within ${ms / 1000} s: a top-level await hangs, there or in a module that it imports`
  return new ModuleLoadError(`Cannot load ${shownPath(root, file)}: ${why}`, { missing: false, cause: undefined })
}

/** Whether `file` itself is missing, rather than a file that it imports. */
function isMissing(cause: unknown, file: string): boolean {
  if (!(cause instanceof Error) || !('syscall' in cause) || !('code' in cause) || !('path' in cause)) return false
  return cause.syscall === 'realpath' && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR') && cause.path === file
}

function shownPath(root: string, path: string): string {
  const inside = relative(root, path)
  return inside.startsWith('..') ? path : inside.split(sep).join('/')
}

/** One line: the kind of error and its message; for a failed transformation, its first error. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return `it threw ${String(cause)}`
  const complaint = /: ERROR: (.+)$/m.exec(cause.message)?.[1]
  if (complaint !== undefined) return `SyntaxError: ${complaint}`
  return `${cause.name}: ${cause.message.split('\n', 1)[0] ?? ''}`
}

async function placeOf(cause: unknown, attempt: LoadAttempt): Promise<Place | undefined> {
  if (!(cause instanceof Error)) return undefined
  const stack = cause.stack ?? ''
  return (
    placeIn(/^(\S.*?):(\d+)\n/, stack) ??
    placeIn(/^(\/.*?):(\d+):\d+: ERROR: /m, cause.message) ??
    (await importPlace(cause.message)) ??
    frameBelow(attempt.root, stack) ??
    (cause instanceof SyntaxError ? await syntaxPlace(cause, attempt.files) : undefined)
  )
}

function placeIn(pattern: RegExp, text: string): Place | undefined {
  const [, path, line] = pattern.exec(text) ?? []
  const file = path === undefined ? undefined : absolutePath(path)
  return file === undefined ? undefined : { file, line: Number(line) }
}

/** The innermost frame of the stack in a file below the root. */
function frameBelow(root: string, stack: string): Place | undefined {
  for (const [, path = '', line] of stack.matchAll(/^ {4}at (?:.*\()?((?:file:\/\/)?\/[^()]*?):(\d+):\d+\)?$/gm)) {
    const file = absolutePath(path)
    if (file?.startsWith(root + sep) && !file.includes(`${sep}node_modules${sep}`)) return { file, line: Number(line) }
  }
  return undefined
}

/** The location of an unresolved import: `Cannot find module '...' imported from ...`. */
async function importPlace(message: string): Promise<Place | undefined> {
  const [, missing = '', importer] = /^Cannot find (?:module|package) '(.+?)' imported from (.+)$/.exec(message) ?? []
  const file = importer === undefined ? undefined : absolutePath(importer)
  if (file === undefined) return undefined
  const source = await readText(file)
  const name = missing.slice(missing.lastIndexOf('/') + 1)
  const found = importSpecifiers(source).find(({ specifier }) => specifier.split(/[/?#]/).includes(name))
  return { file, line: found === undefined ? undefined : source.slice(0, found.offset).split('\n').length }
}

async function syntaxPlace(cause: SyntaxError, files: readonly string[]): Promise<Place | undefined> {
  for (const file of files) {
    if (cause.message.startsWith(`${file}: `)) return { file, line: undefined }
    if (!/\.[cm]?js$/.test(file)) continue
    const line = await syntaxErrorLine(await readText(file), cause.message)
    if (line !== undefined) return { file, line }
  }
  return undefined
}

/** The text of a file; empty if it no longer exists: then the message has no line. */
async function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '')
}

/** A path or a file URL, with or without a query, as a path; undefined for anything else. */
function absolutePath(pathOrUrl: string): string | undefined {
  if (pathOrUrl.startsWith('/')) return pathOrUrl
  try {
    return fileURLToPath(pathOrUrl)
  } catch {
    return undefined
  }
}
