/**
 * The schema builder of `ctx.validate`: `fields({ title: fields.text({ max: 80 }) })`. Definitions are checked and
 * prepared once; a request only reads. The types for applications are in `svc.d.ts`.
 *
 * A form and a JSON body follow the same rules, but in a form an empty value counts as missing, and a missing value is
 * false for a boolean and an empty list for a list, since an unticked checkbox is not sent.
 */
import type { Checked, Schema as Declared } from 'svc'
import { isObject } from '../base/object.ts'
import type { Form } from '../http/form.ts'
import { Field, readField, Run } from './fields-field.ts'
import * as kinds from './fields-kinds.ts'
import { checkOptions, shown, wrongField, type Options } from './fields-options.ts'
import { jsonSchemaOf } from './json-schema.ts'
import { englishText, textsByPath, type Problem } from './messages.ts'

/** How an input is shown again in its form. */
export interface Input {
  readonly isSecret: boolean
  readonly isList: boolean
  /** An unticked checkbox is not sent. */
  readonly isCheckbox: boolean
}

/** As browsers check `<input type="email">` (HTML standard, section 4.10.5.1.5). */
const emailShape =
  /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i
const webAddressShape = /^https?:\/\/[^/?#\\\s][^\s\u0000-\u001f\u007f]*$/i

/** The result of `fields({...})`: reads a body as an object without prototype. */
export class Schema {
  readonly #root: Field
  /** The inputs of a form by name, with `*` for the number of a row. */
  readonly inputs: ReadonlyMap<string, Input>
  /** Standard Schema, version 1 (https://standardschema.dev): `check`, for other libraries. */
  readonly '~standard': Declared['~standard'] = {
    version: 1,
    vendor: 'svc',
    validate: (value) => {
      const read = this.read(value)
      if ('value' in read) return read
      return { issues: read.problems.map((problem) => ({ message: englishText(problem), path: problem.keys })) }
    },
  }

  /** @throws TypeError when a member is not a field */
  constructor(definition: unknown) {
    this.#root = objectOf('', definition)
    const inputs = new Map<string, Input>()
    collectInputs(this.#root, '', inputs)
    this.inputs = inputs
  }

  /** Reads a form, or a parsed JSON value. Returns the values, or the problems with them. */
  read(body: unknown, form?: Form): { readonly value: unknown } | { readonly problems: readonly Problem[] } {
    const run = new Run(form)
    const value = readField(this.#root, form ?? body, run, '')
    return run.problems.length === 0 ? { value } : { problems: run.problems }
  }

  /**
   * Checks a plain value as a JSON body is checked. Files are valid only in forms. The texts are English: replaced
   * messages belong to a server, and a schema to none.
   */
  check(value: unknown): Checked {
    const read = this.read(value)
    if ('value' in read) return { ok: true, value: read.value }
    return { ok: false, errors: textsByPath(read.problems, englishText) }
  }

  /**
   * Returns a new JSON Schema of the JSON that `check` accepts, or returns; `json-schema.ts` says what it cannot
   * express.
   */
  toJsonSchema(side: 'input' | 'output' = 'input'): Record<string, unknown> {
    const $schema = 'https://json-schema.org/draft/2020-12/schema'
    return structuredClone({ $schema, ...jsonSchemaOf(this.#root, side) })
  }
}

/**
 * Makes schemas for `ctx.validate`, and their fields. Every field is required unless it has `.optional()` or
 * `.default(value)`. Each function throws TypeError for an invalid definition, and names what is expected.
 */
export const fields = Object.assign((definition: unknown): Schema => new Schema(definition), {
  /** Text without the white space around it, unless `trim` is false. */
  text: (options: Options = {}): Field =>
    kinds.textField(checkOptions('text', options), { message: 'text', trims: options.trim !== false }),
  /** Text that is not trimmed and never shown again: a password, a code. */
  secret: (options: Options = {}): Field =>
    kinds.textField(checkOptions('secret', options), { message: 'text', trims: false, isSecret: true }),
  /** An email address as browsers accept it, of at most 254 characters unless `max` is given. */
  email: (options: Options = {}): Field =>
    kinds.textField(checkOptions('email', { ...options, max: options?.max ?? 254 }), {
      message: 'email', format: 'email', fits: (text) => emailShape.test(text),
    }),
  /** An http or https address, of at most 2048 characters unless `max` is given. */
  url: (options: Options = {}): Field =>
    kinds.textField(checkOptions('url', { ...options, max: options?.max ?? 2048 }), {
      message: 'url', format: 'uri', fits: (text) => webAddressShape.test(text) && URL.canParse(text),
    }),
  /** An existing day, as `YYYY-MM-DD`. */
  date: (options: Options<string> = {}): Field => kinds.dateField(checkOptions('date', options)),
  /** A whole number below 2^53, positive or negative. */
  integer: (options: Options = {}): Field => kinds.numberField('integer', checkOptions('integer', options)),
  /** A finite number. */
  number: (options: Options = {}): Field => kinds.numberField('number', checkOptions('number', options)),
  /** In a form `on`, `true`, `1`, `yes` or `off`, `false`, `0`, `no`. */
  boolean: (options: object = {}): Field => {
    checkOptions('boolean', options)
    return kinds.booleanField()
  },
  /** One of these strings, passed as arguments or as a list. */
  choice: (...choices: readonly unknown[]): Field => kinds.choiceField(choices.flat()),
  /** A list, of at most 1000 entries unless `max` is given. */
  list: (item: Field, options: Options = {}): Field => {
    if (!(item instanceof Field)) throw wrongField('list', `give it the field of its entries: it is ${shown(item)}`)
    return kinds.listField(item, checkOptions('list', options))
  },
  /** An object, without prototype. */
  object: (definition: unknown): Field => objectOf('object', definition),
  /** A file of a multipart form. Its type is the one that the client declares. */
  file: (options: Options = {}): Field => kinds.fileField(checkOptions('file', options)),
})

function objectOf(kind: string, definition: unknown): Field {
  if (!isObject(definition)) throw wrongField(kind, `give it an object of fields: it is ${shown(definition)}`)
  const members = Object.entries(definition).map(([name, field]) => {
    if (field instanceof Field) return [name, field] as const
    throw wrongField(kind, `"${name}" must be a field, such as fields.text(): it is ${shown(field)}`)
  })
  return kinds.objectField(members)
}

function collectInputs(field: Field, path: string, inputs: Map<string, Input>): void {
  const { members, item, isSecret = false, unsent } = field.kind
  if (members !== undefined) {
    for (const [name, member] of members) collectInputs(member, path === '' ? name : `${path}.${name}`, inputs)
  } else if (item !== undefined && kinds.isDeep(item)) {
    inputs.set(path, { isSecret: false, isList: true, isCheckbox: false })
    collectInputs(item, `${path}.*`, inputs)
  } else {
    const isList = item !== undefined
    const isCheckbox = !isList && unsent !== undefined
    inputs.set(path, { isSecret: isSecret || item?.kind.isSecret === true, isList, isCheckbox })
  }
}
