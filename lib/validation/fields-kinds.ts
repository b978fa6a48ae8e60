/**
 * The kinds of values: how each is found in a form and checked. A form has only strings and files, so strings are
 * converted to numbers and booleans, the members of an object have names such as `address.city`, and the rows of a list
 * of objects have names such as `lines.0.name`.
 */
import { isObject } from '../base/object.ts'
import { Field, readBelow, type Member, type Run } from './fields-field.ts'
import { isDate, shown, wrongField, type Options } from './fields-options.ts'
import type { FormIndex } from './form-index.ts'
import type { MessageName } from './messages.ts'

/** Further rules for a string, and how it is handled. */
interface TextTraits {
  readonly message: MessageName
  /** Of JSON Schema. */
  readonly format?: string
  readonly trims?: boolean
  readonly isSecret?: boolean
  readonly fits?: (text: string) => boolean
}

const mostEntries = 1000
const wholeNumber = /^-?\d+$/
const decimalNumber = /^-?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?$/i
const booleans: ReadonlyMap<unknown, boolean> = new Map([
  ['on', true], ['true', true], ['1', true], ['yes', true],
  ['off', false], ['false', false], ['0', false], ['no', false],
])

/** A string. With a pattern, `max` defaults to 255: matching time can grow faster than the length. */
export function textField(options: Options, traits: TextTraits): Field {
  const { message, format, trims = true, isSecret = false, fits } = traits
  const { pattern } = options
  const { min = 0, max = pattern === undefined ? Infinity : 255 } = options
  const rules = { min, max }
  const check = (value: unknown, run: Run, path: string): unknown => {
    if (typeof value !== 'string') return wrongType(value, run, path, message)
    // A browser counts a line break as one character, and sends it as two.
    const { length } = value.includes('\r') ? value.replaceAll('\r\n', '\n') : value
    if (length > max) return run.wrong(path, 'too_long', rules)
    if (fits !== undefined && !fits(value)) return run.wrong(path, message)
    if (length < min) return run.wrong(path, 'too_short', rules)
    return pattern === undefined || pattern.test(value) ? value : run.wrong(path, 'pattern')
  }
  const keywords = {
    type: 'string',
    format,
    minLength: min || undefined,
    maxLength: max,
    pattern: /[ims]/.test(pattern?.flags ?? '') ? undefined : pattern?.source,
    writeOnly: isSecret || undefined,
  }
  return new Field({ trims, isSecret, find: findText, check, keywords })
}

/** An existing day, as a string. */
export function dateField({ min = '', max = '9999-12-31' }: Options<string>): Field {
  const rules = { min, max }
  const check = (value: unknown, run: Run, path: string): unknown => {
    if (typeof value !== 'string' || !isDate(value)) return wrongType(value, run, path, 'date')
    if (value < min) return run.wrong(path, 'too_early', rules)
    return value > max ? run.wrong(path, 'too_late', rules) : value
  }
  return new Field({ trims: true, find: findText, check, keywords: { type: 'string', format: 'date' } })
}

/** A number. Integers beyond 2^53 are rejected, since JavaScript would round them. */
export function numberField(message: 'integer' | 'number', { min = -Infinity, max = Infinity }: Options): Field {
  const rules = { min, max }
  const [shape, fits] = message === 'integer' ? [wholeNumber, Number.isSafeInteger] : [decimalNumber, Number.isFinite]
  const check = (value: unknown, run: Run, path: string): unknown => {
    const isText = run.form !== undefined && typeof value === 'string' && shape.test(value)
    const number = isText ? Number(value) : value
    if (typeof number !== 'number' || !fits(number)) return wrongType(value, run, path, message)
    if (number < min) return run.wrong(path, 'too_small', rules)
    return number > max ? run.wrong(path, 'too_large', rules) : number
  }
  return new Field({ trims: true, find: findText, check, keywords: { type: message, minimum: min, maximum: max } })
}

/** A boolean: in a form a checkbox, or a pair of inputs of which the last one counts. */
export function booleanField(): Field {
  const check = (value: unknown, run: Run, path: string): unknown => {
    const read = run.form === undefined ? value : booleans.get(value)
    return typeof read === 'boolean' ? read : wrongType(value, run, path, 'boolean')
  }
  const find = (form: FormIndex, path: string): unknown => form.valuesOf(path)?.at(-1)
  return new Field({ trims: true, find, check, unsent: () => false, keywords: { type: 'boolean' } })
}

/** One of several strings. Throws TypeError for invalid choices. */
export function choiceField(choices: readonly unknown[]): Field {
  if (choices.length === 0 || choices.some((choice) => typeof choice !== 'string' || choice === '')) {
    throw wrongField('choice', `give texts that are not empty, as in fields.choice('a', 'b'): it has ${shown(choices)}`)
  }
  const known = new Set(choices)
  const rules = { choices: choices.join(', ') }
  const check = (value: unknown, run: Run, path: string): unknown => {
    return known.has(value) ? value : wrongType(value, run, path, 'choice', rules)
  }
  return new Field({ trims: false, find: findText, check, keywords: { type: 'string', enum: choices } })
}

/** A file of a form. In OpenAPI 3.1 bytes have no `type`, and `contentMediaType` cannot be a list or a range. */
export function fileField({ types, maxKb = Infinity }: Options): Field {
  const rules = { types: types?.join(', '), maxKb }
  const check = (value: unknown, run: Run, path: string): unknown => {
    // A JSON object could name any file of the server, so only files of a form count.
    if (run.form?.isFile(value) !== true) return wrongType(value, run, path, 'file')
    const isWanted = types?.some((wanted) => isOfType(value.type, wanted)) ?? true
    if (!isWanted) return run.wrong(path, 'file_type', rules)
    return value.size > maxKb * 1024 ? run.wrong(path, 'file_size', rules) : value
  }
  const only = types?.length === 1 && types[0]?.endsWith('/*') === false ? types[0] : undefined
  const contentMediaType = only ?? 'application/octet-stream'
  return new Field({ trims: false, find: findFile, check, keywords: { contentMediaType, maxLength: maxKb * 1024 } })
}

/** An SVG image may contain a script, so `image/*` does not match it. */
function isOfType(type: string, wanted: string): boolean {
  return wanted.endsWith('/*') ? type.startsWith(wanted.slice(0, -1)) && type !== 'image/svg+xml' : type === wanted
}

/** A list: in a form, the values of one name, or rows. */
export function listField(item: Field, { min = 0, max = mostEntries }: Options): Field {
  const rules = { min, max }
  const findAll = isDeep(item) ? findRows : findEntries
  const find = (form: FormIndex, path: string): unknown => {
    const found = findAll(form, path, item)
    return found.size === 0 ? undefined : found
  }
  const check = (value: unknown, run: Run, path: string): unknown => {
    if (!Array.isArray(value) && !(run.form !== undefined && value instanceof Map)) return run.wrong(path, 'list')
    const count = value instanceof Map ? value.size : value.length
    if (count < min) return run.wrong(path, count === 0 ? 'required' : 'too_few', rules)
    if (count > max) return run.wrong(path, 'too_many', rules)
    const list: unknown[] = []
    for (const [at, entry] of value.entries()) {
      const read = readBelow(item, entry, run, `${path}.${at}`, at)
      if (read !== undefined) list.push(read)
    }
    return list
  }
  const keywords = { type: 'array', minItems: min || undefined, maxItems: max }
  return new Field({ trims: false, find, check, unsent: (run, path) => check([], run, path), item, keywords })
}

/** An object. A form has it when it has one of its members. */
export function objectField(members: readonly Member[]): Field {
  const check = (value: unknown, run: Run, path: string): unknown => {
    const { form } = run
    if (form === undefined && !isObject(value)) return wrongType(value, run, path, 'object')
    const read = Object.create(null) as Record<string, unknown>
    for (const [key, field] of members) {
      const place = path === '' ? key : `${path}.${key}`
      const sent = form === undefined ? ownMember(value as object, key) : field.kind.find(form, place)
      const member = readBelow(field, sent, run, place, key)
      if (member !== undefined || sent !== undefined) read[key] = member
    }
    return read
  }
  const find = (form: FormIndex, path: string): unknown => {
    return members.some(([key, { kind }]) => (kind.find(form, `${path}.${key}`) ?? '') !== '') ? form : undefined
  }
  const unsent = (run: Run, path: string): unknown => check(run.form, run, path)
  return new Field({ trims: false, find, check, unsent, members, keywords: { type: 'object' } })
}

/** Whether a field has further names below its name. */
export function isDeep({ kind }: Field): boolean {
  return kind.members !== undefined || kind.item !== undefined
}

/** A member of a parsed JSON object. Inherited members, such as `constructor`, do not count. */
function ownMember(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Readonly<Record<string, unknown>>)[key] : undefined
}

/** The value of a name; all values where there are several. */
function findText(form: FormIndex, path: string): unknown {
  const values = form.valuesOf(path)
  return values === undefined || values.length > 1 ? values : values[0]
}

/** The file of a name; its value where the browser sent the form without its files. */
function findFile(form: FormIndex, path: string): unknown {
  const files = form.filesOf(path)
  return files.length > 1 ? files : (files[0] ?? findText(form, path))
}

/** The values of a name with their indexes, without empty ones. */
function findEntries(form: FormIndex, path: string, { kind }: Field): Map<number, unknown> {
  const files = kind.find === findFile ? form.filesOf(path) : []
  const values: readonly unknown[] = files.length > 0 ? files : (form.valuesOf(path) ?? [])
  return new Map([...values.entries()].filter(([, value]) => value !== ''))
}

/** The rows of a list, by the numbers in their names, without empty ones. */
function findRows(form: FormIndex, path: string, { kind }: Field): Map<number, unknown> {
  const rows = form.rowsOf(path).map((at) => [at, kind.find(form, `${path}.${at}`)] as const)
  return new Map(rows.filter(([, row]) => row !== undefined))
}

function wrongType(value: unknown, run: Run, path: string, message: MessageName, rules?: object): undefined {
  return run.wrong(path, Array.isArray(value) && message !== 'object' ? 'single' : message, rules)
}
