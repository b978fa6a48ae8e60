/**
 * JSON Schemas in words: the members of a body with their types and limits, and an example of it.
 *
 * A schema may refer to itself: a reference below itself is named, not followed.
 */
import { isObject } from '../base/object.ts'

/** A JSON Schema (2020-12), or a part of one. */
type JsonSchema = Readonly<Record<string, unknown>>

/** A member of a body. */
export interface Member {
  /** Such as `lines[].name`; '' for the whole body. */
  readonly name: string
  readonly type: string
  readonly required: boolean
  readonly limits: string
  readonly description: string
}

/** The most rows of a table. */
const maxMembers = 200
/** The most levels of an example. */
const maxDepth = 4
const ranges = [
  ['minLength', 'maxLength', ' character'],
  ['minItems', 'maxItems', ' item'],
  ['minimum', 'maximum', ''],
] as const
const notes = [
  ['exclusiveMinimum', 'over'],
  ['exclusiveMaximum', 'under'],
  ['multipleOf', 'a multiple of'],
  ['pattern', 'pattern'],
] as const
const emptyValues: Readonly<Record<string, unknown>> = { string: '', boolean: false, object: {}, array: [] }

/** Reads the schemas of a document, which may refer to each other. */
export class SchemaReader {
  readonly #document: object

  constructor(document: object) {
    this.#document = document
  }

  /** Returns the members of a body, with those of nested objects and lists; the body itself if it has none. */
  members(schema: unknown): readonly Member[] {
    const found: Member[] = []
    const add = (part: unknown, name: string, required: boolean, above: readonly string[]): void => {
      const [read, seen] = this.#resolved(part, above)
      const members = this.properties(read)
      if (found.length >= maxMembers) return
      if (name !== '' || members.length === 0) found.push({ name, required, ...this.inWords(part, above) })
      if (read['items'] !== undefined) addMembers(read['items'], `${name}[]`, seen)
      addMembers(read, name, seen)
    }
    const addMembers = (part: unknown, name: string, above: readonly string[]): void => {
      const [read, seen] = this.#resolved(part, above)
      const { required } = read
      for (const [key, member] of this.properties(read)) {
        const isRequired = Array.isArray(required) && required.includes(key)
        add(member, name === '' ? key : `${name}.${key}`, isRequired, seen)
      }
    }
    add(schema, '', true, [])
    return found
  }

  /** Returns a member's type and limits, such as `list of string` and `1 to 80 characters`, and its description. */
  inWords(schema: unknown, above: readonly string[] = []): Pick<Member, 'type' | 'limits' | 'description'> {
    const [{ description }] = this.#resolved(schema, above)
    const text = typeof description === 'string' ? description : ''
    return { type: this.#type(schema, above), limits: this.#limits(schema, above), description: text }
  }

  /** Returns the members of an object. */
  properties(schema: unknown): readonly (readonly [name: string, schema: unknown])[] {
    const [{ properties }] = this.#resolved(schema)
    return isObject(properties) ? Object.entries(properties) : []
  }

  /** Returns an example: the default, the first choice, or an empty value. */
  example(schema: unknown, depth = 0): unknown {
    const [read] = this.#resolved(schema)
    for (const key of ['default', 'const']) if (key in read) return read[key]
    const choices = read['examples'] ?? read['enum']
    if (Array.isArray(choices)) return choices[0] as unknown
    const [type] = [read['type']].flat()
    const [alternative] = alternativesOf(read)
    if (alternative !== undefined && depth < maxDepth) return this.example(alternative, depth + 1)
    if (type === 'integer' || type === 'number') return read['minimum'] ?? 0
    if (type === 'array' && depth < maxDepth) return [this.example(read['items'], depth + 1)]
    const members = depth < maxDepth ? this.properties(read) : []
    if (members.length === 0) return emptyValues[String(type)] ?? null
    return Object.fromEntries(members.map(([name, member]) => [name, this.example(member, depth + 1)]))
  }

  #type(schema: unknown, above: readonly string[]): string {
    const [read, seen, again] = this.#resolved(schema, above)
    if (again !== undefined) return `${again.split('/').at(-1)}, as above`
    const { const: only, enum: choices, contentMediaType, type, format, items } = read
    if (only !== undefined) return JSON.stringify(only)
    if (Array.isArray(choices)) return choices.map((choice) => JSON.stringify(choice)).join(' or ')
    if (typeof contentMediaType === 'string') return `file (${contentMediaType})`
    const words = [type ?? []].flat().map((one) => {
      if (one === 'array') return `list of ${this.#type(items, seen)}`
      return one === 'string' && format !== undefined ? `string (${String(format)})` : String(one)
    })
    const parts = words.length > 0 ? words : alternativesOf(read).map((one) => this.#type(one, seen))
    return [...new Set(parts)].join(' or ') || 'anything'
  }

  #limits(schema: unknown, above: readonly string[]): string {
    const [read, seen] = this.#resolved(schema, above)
    const words = ranges.map(([least, most, unit]) => rangeOf(read[least], read[most], unit))
    for (const [keyword, text] of notes) if (keyword in read) words.push(`${text} ${String(read[keyword])}`)
    if ('default' in read) words.push(`default ${JSON.stringify(read['default'])}`)
    const each = read['items'] === undefined ? '' : this.#limits(read['items'], seen)
    return [...words, each && `each ${each}`].filter((text) => text !== '').join(', ')
  }

  /**
   * Follows references `#/...` (RFC 6901). Returns the schema, the references passed so far, and the reference that
   * would be passed again, if any; then, or where there is no schema, one that allows anything.
   */
  #resolved(schema: unknown, above: readonly string[] = []): [JsonSchema, readonly string[], again?: string] {
    const reference = isObject(schema) ? schema['$ref'] : undefined
    if (typeof reference !== 'string') return [isObject(schema) ? schema : {}, above]
    if (above.includes(reference)) return [{}, above, reference]
    const keys = reference.split('/').slice(1).map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
    const found = keys.reduce<unknown>((value, key) => {
      const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
      return isThere ? Reflect.get(value, key) : undefined
    }, this.#document)
    return this.#resolved(found, [...above, reference])
  }
}

function alternativesOf({ anyOf, oneOf }: JsonSchema): readonly unknown[] {
  const alternatives = anyOf ?? oneOf
  return Array.isArray(alternatives) ? alternatives : []
}

function rangeOf(least: unknown, most: unknown, unit: string): string {
  const counted = (count: unknown): string => `${String(count)}${unit === '' || count === 1 ? unit : `${unit}s`}`
  if (least !== undefined && most !== undefined) return `${String(least)} to ${counted(most)}`
  if (least !== undefined) return `at least ${counted(least)}`
  return most === undefined ? '' : `at most ${counted(most)}`
}
