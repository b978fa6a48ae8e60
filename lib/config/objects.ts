/**
 * Objects of any content in the configuration, `settings` and `setup`: merged member by member, shown value by value.
 *
 * Surprise: the results have no prototype, so that a member named `__proto__` or `constructor` is like any other.
 */
import { isObject } from '../base/object.ts'
import { jsonText } from '../base/json-text.ts'
import { mayBeSecret } from '../base/secret-name.ts'
import type { Reading } from '../base/value.ts'
import { JsonError, mapJson } from '../json/json-map.ts'

/** An object of any content. */
export type AnyObject = Readonly<Record<string, unknown>>

/** A value without members: its key, such as `settings.hosts.0`, and its path of names and indexes below `settings`. */
interface Leaf {
  readonly key: string
  readonly path: readonly string[]
  readonly value: unknown
}

/** Returns whether an object is a single value, whose members are neither merged nor listed. */
export type IsSingle = (value: AnyObject) => boolean

const never: IsSingle = () => false

/** Reads an object. One of a program may contain what JSON cannot hold, or a Date, which JSON converts. */
export function readObject(value: unknown, check?: (value: AnyObject) => string | undefined): Reading {
  if (!isObject(value)) return { problem: `must be an object: it is ${typeName(value)}` }
  const wrong = check?.(value)
  if (wrong !== undefined) return { problem: wrong }
  try {
    const text = jsonText(value, 'must be JSON')
    mapJson(text)
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    if (error instanceof JsonError) return { problem: 'must not be nested deeper than 100 levels' } // It is valid JSON.
    return { problem: (error as Error).message } // `jsonText` throws TypeErrors.
  }
}

/** Returns the type of a value that is no object, for messages: `a list`. */
export function typeName(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`
}

/** Merges an object over another one, at every depth; a list replaces a list, undefined removes. Freezes the result. */
export function mergeObjects(under: AnyObject, over: AnyObject, isSingle = never): AnyObject {
  const merged = new Map(Object.entries(under))
  for (const [name, member] of Object.entries(over)) {
    const before = merged.get(name)
    const isInner = isMerged(before, isSingle) && isMerged(member, isSingle)
    merged.set(name, isInner ? mergeObjects(before, member, isSingle) : member)
  }
  return frozen(Object.fromEntries(merged))
}

/** Returns the keys of the values in `under` that `over` replaces. */
export function replacedKeys(root: string, under: unknown, over: unknown, isSingle = never): string[] {
  if (!isObject(under) || !isObject(over)) return [root]
  const both = Object.keys(over).filter((name) => Object.hasOwn(under, name))
  return both.flatMap((name) => {
    const key = keyOf(root, [name])
    const isInner = isMerged(under[name], isSingle) && isMerged(over[name], isSingle)
    return isInner ? replacedKeys(key, under[name], over[name], isSingle) : [key]
  })
}

/** Returns a deep, frozen copy of a JSON value. Its objects have no prototype, and no members that are undefined. */
export function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return Object.freeze(value.map(frozen)) as Value // A list stays a list.
  const copy = Object.create(null) as Record<string, unknown>
  for (const [name, member] of Object.entries(value)) if (member !== undefined) copy[name] = frozen(member)
  return Object.freeze(copy) as Value // It has the same members.
}

/** Returns every value without members in an object; an empty object or list is one. */
export function leavesOf(root: string, value: unknown, isSingle = never, path: readonly string[] = []): Leaf[] {
  const isInner = Array.isArray(value) || (isObject(value) && (path.length === 0 || !isSingle(value)))
  const members = isInner ? Object.entries(value) : []
  if (members.length === 0) return [{ key: keyOf(root, path), path, value }]
  return members.flatMap(([name, member]) => leavesOf(root, member, isSingle, [...path, name]))
}

/** Returns the name of a path below a key: `settings.mail.url`, `settings."a.b"`. */
export function keyOf(root: string, path: readonly string[]): string {
  return [root, ...path.map((name) => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name)))].join('.')
}

/** Whether a value must not be shown: a name on its path is that of a secret, or it is an address with a password. */
export function isSecret({ path, value }: Omit<Leaf, 'key'>): boolean {
  // `setup.auth.user_key` is the name of a session value.
  if (path.some((name) => mayBeSecret(name) || /(?<!user_)keys?$/i.test(name))) return true
  return typeof value === 'string' && URL.canParse(value) && new URL(value).password !== ''
}

function isMerged(value: unknown, isSingle: IsSingle): value is AnyObject {
  return isObject(value) && !isSingle(value)
}
