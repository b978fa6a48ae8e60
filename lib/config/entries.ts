/**
 * Finds the keys of the configuration in a value that is nested, dotted or both: `{"log": {"level": ...}}` and
 * `{"log.level": ...}` are the same key.
 *
 * Surprise: a key that is not known is no problem but a warning. It is kept when the file is written back.
 */
import { isObject } from '../base/object.ts'
import { nearest } from '../base/nearest.ts'
import { fileKeys } from './table.ts'

/** A key that was found, the names that lead to it from the outside in, and its value. */
export interface Entry {
  readonly key: string
  readonly path: readonly string[]
  readonly value: unknown
}

/** A text about a key, and the names that lead to the key in the file; undefined: it is not about the file. */
export interface Finding {
  readonly text: string
  readonly path: readonly string[] | undefined
}

/** What a value holds: its keys by name, what is wrong with its shape, and the keys that nobody knows. */
export interface Entries {
  readonly found: ReadonlyMap<string, Entry>
  readonly problems: readonly Finding[]
  readonly unknown: readonly Finding[]
}

/** Finds the keys in a value, which must be an object. A member that is `undefined` counts as absent. */
export function findEntries(value: unknown): Entries {
  const found = new Map<string, Entry>()
  const problems: Finding[] = []
  const unknown: Finding[] = []
  const known = new Set(fileKeys().map(([key]) => key))
  const groups = new Set([...known].flatMap(groupsOf))

  visit(value, '', [])
  return { found, problems, unknown }

  function visit(object: unknown, group: string, path: readonly string[]): void {
    if (!isObject(object)) {
      problems.push({ text: shapeProblem(group, object, known), path })
      return
    }
    for (const [name, member] of Object.entries(object)) {
      if (member === undefined) continue
      const key = group === '' ? name : `${group}.${name}`
      if (known.has(key)) add({ key, path: [...path, name], value: member })
      else if (groups.has(key)) visit(member, key, [...path, name])
      else unknown.push({ text: unknownText(key, [...known, ...groups]), path: [...path, name] })
    }
  }

  function add(entry: Entry): void {
    const first = found.get(entry.key)
    if (first === undefined) {
      found.set(entry.key, entry)
    } else {
      const text = `${entry.key} is there twice, as ${written(first.path)} and as ${written(entry.path)}`
      problems.push({ text, path: entry.path })
    }
  }
}

/** The groups that a key lies in: `server.tls.cert` lies in `server` and `server.tls`. */
export function groupsOf(key: string): string[] {
  const names = key.split('.')
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join('.'))
}


function shapeProblem(group: string, value: unknown, known: ReadonlySet<string>): string {
  const is = value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`
  if (group === '') return `the configuration must be an object, {...}: it is ${is}`
  const names = [...known].filter((key) => key.startsWith(`${group}.`)).map((key) => key.slice(group.length + 1))
  return `${group} must be an object with ${names.join(', ')}: it is ${is}`
}

function unknownText(key: string, candidates: readonly string[]): string {
  const leaf = (candidate: string): string => candidate.slice(candidate.lastIndexOf('.') + 1)
  const sameLeaf = candidates.filter((candidate) => leaf(candidate) === leaf(key))
  const meant = nearest(key, candidates) ?? (sameLeaf.length === 1 ? sameLeaf[0] : undefined)
  const shown = /^[\w.-]+$/.test(key) ? key : JSON.stringify(key)
  const short = shown.length > 100 ? `${shown.slice(0, 100)}...` : shown
  return `unknown key ${short}${meant === undefined ? '' : `: did you mean ${meant}?`}`
}

function written(path: readonly string[]): string {
  return path.map((name) => JSON.stringify(name)).join(': ')
}
