/**
 * The middleware configuration, `config.json` in `paths.middleware`:
 * `{"load": ["audit.js"], "setup": {"csrf": {...}}}`, and perhaps `$schema`, which is for editors. A missing file is
 * the same as an empty object.
 */
import { join } from 'node:path'
import { isObject } from '../base/object.ts'
import { didYouMean } from '../base/nearest.ts'
import { reasonOf } from '../base/reason.ts'
import { readJsonFile } from '../json/read-json.ts'

/** The content of the file. */
export interface MiddlewareConfig {
  /** The file's absolute path. */
  readonly file: string
  /** Modules to load, relative to the folder, in this order. */
  readonly load: readonly string[]
  /** Settings of built-in middleware, by group. */
  readonly setup: Readonly<Record<string, unknown>>
  /** Harmless mistakes, without the name of the file. */
  readonly warnings: readonly string[]
  /** Returns the file that a message about a setting is about, and the message with its place in that file. */
  readonly locate: (message: string) => { readonly file: string; readonly message: string }
}

/** A middleware configuration or module that cannot be used. */
export class MiddlewareError extends Error {
  override readonly name = 'MiddlewareError'
  /** The faulty file; the first one if there are several. */
  readonly file: string
  /** One for each faulty file; only this one if there are no others. */
  readonly all: readonly MiddlewareError[]

  /** @param all the errors of several files that this one represents */
  constructor(file: string, message: string, options?: ErrorOptions & { readonly all?: readonly MiddlewareError[] }) {
    super(message, options)
    this.file = file
    this.all = options?.all ?? [this]
  }
}

/**
 * Reads `config.json`.
 * @param folder the absolute path of `paths.middleware`
 * @param groups the known groups of `setup`
 * @throws MiddlewareError that names the file, the key and the problem
 */
export function readMiddlewareConfig(folder: string, groups: readonly string[]): MiddlewareConfig {
  const file = join(folder, 'config.json')
  const value = read(file)
  if (!isObject(value)) throw wrong(file, 'it must be an object with the members load and setup')
  const { load = [], setup = {}, $schema: schema = '', ...others } = value
  const problems = isTextList(load) ? [] : ['load must be a list of file names']
  if (!isObject(setup)) problems.push('setup must be an object whose members are groups of settings')
  if (typeof schema !== 'string') problems.push('$schema must be a string')
  if (problems.length > 0 || !isTextList(load) || !isObject(setup)) throw wrong(file, problems.join('; '))
  const warnings = [
    ...Object.keys(others).map((key) => `unknown key ${key}: it has load and setup`),
    ...unknownGroups(setup, groups),
  ]
  return { file, load, setup, warnings, locate: (message) => ({ file, message }) }
}

/** Returns a warning for each group of settings that nothing reads. */
export function unknownGroups(setup: MiddlewareConfig['setup'], groups: readonly string[]): string[] {
  const unknown = Object.keys(setup).filter((group) => !groups.includes(group))
  return unknown.map((group) => `nothing reads setup.${group}${didYouMean(group, groups, (name) => `setup.${name}`)}`)
}

/** Combines errors, at least one, into one. */
export function joinErrors(errors: readonly MiddlewareError[]): MiddlewareError {
  const [first, ...others] = errors as [MiddlewareError, ...MiddlewareError[]] // There is at least one.
  if (others.length === 0) return first
  return new MiddlewareError(first.file, errors.map(({ message }) => message).join('; '), { cause: first, all: errors })
}

function read(file: string): unknown {
  try {
    const found = readJsonFile(file, '{} for no middleware')
    return found === undefined ? {} : found.value
  } catch (error) {
    throw wrong(file, reasonOf(error))
  }
}

function wrong(file: string, problem: string): MiddlewareError {
  return new MiddlewareError(file, `Cannot load ${file}: ${problem}`)
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
