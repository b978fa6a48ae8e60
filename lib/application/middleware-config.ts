/**
 * The middleware configuration, `config.json` in `paths.middleware`:
 * `{"load": ["audit.js"], "setup": {"csrf": {...}}}`. A missing file means neither.
 */
import { readFileSync } from 'node:fs'
import { extname, join, normalize } from 'node:path'
import { isObject } from '../base/object.ts'
import { nearest } from '../base/nearest.ts'
import { reasonOf } from '../base/reason.ts'
import { MiddlewareError, type MiddlewareConfig } from '../chain/config.ts'
import { parseJson } from '../json/json-map.ts'

const loadable = ['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts']

/**
 * Reads `config.json`.
 * @param folder the absolute path of `paths.middleware`
 * @param groups the known groups of `setup`
 * @throws MiddlewareError that names the file, the key, and what is wrong with it
 */
export function readMiddlewareConfig(folder: string, groups: readonly string[]): MiddlewareConfig {
  const file = join(folder, 'config.json')
  const text = readIfThere(file)
  if (text === undefined) return { file, load: [], setup: {}, warnings: [] }
  const value = parse(text, file)
  if (!isObject(value)) throw wrong(file, 'it must be an object with the members load and setup')
  const { load = [], setup = {}, ...others } = value
  const problems = problemsOfLoad(load)
  if (!isObject(setup)) problems.push('setup must be an object with a group of settings a member')
  if (problems.length > 0 || !isTextList(load) || !isObject(setup)) throw wrong(file, problems.join('; '))
  const warnings = [
    ...Object.keys(others).map((key) => `unknown key ${key}: it has load and setup`),
    ...Object.keys(setup)
      .filter((group) => !groups.includes(group))
      .map((group) => unknownGroup(group, groups)),
  ]
  return { file, load, setup, warnings }
}

function problemsOfLoad(load: unknown): string[] {
  if (!isTextList(load)) return ['load must be a list of file names']
  const isAgain = (name: string, at: number): boolean =>
    load.findIndex((other) => normalize(other) === normalize(name)) < at
  return [
    ...load
      .filter((name) => !loadable.includes(extname(name)))
      .map((name) => `load names "${name}", which is no module (${loadable.join(' ')})`),
    ...load.filter(isAgain).map((name) => `load names "${name}" twice`),
  ]
}

function unknownGroup(group: string, groups: readonly string[]): string {
  const meant = nearest(group, groups)
  return `nothing reads setup.${group}${meant === undefined ? '' : `: did you mean setup.${meant}?`}`
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new MiddlewareError(file, `Cannot read ${file}: ${reasonOf(error)}`, { cause: error })
  }
}

function parse(text: string, file: string): unknown {
  try {
    return parseJson(text)
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
