/**
 * The builder of what `ctx.validate` reads: `fields({ title: fields.text({ max: 80 }) })`. All is checked and prepared
 * when it is defined; a request only reads. Its types for applications are in `svc.d.ts`.
 *
 * A form and a JSON body are read by the same rules, but in a form an empty value counts as none, and no value is false
 * for a boolean and an empty list for a list, since an unticked checkbox is not sent.
 */
import { isObject } from '../base/object.ts'
import type { Form } from '../http/form.ts'
import { Field, readField, Run } from './fields-field.ts'
import * as kinds from './fields-kinds.ts'
import { checkOptions, shown, wrongField, type Options } from './fields-options.ts'
import type { Problem } from './messages.ts'

/** How an input is shown again in its form. */
export interface Input {
  readonly isSecret: boolean
  readonly isList: boolean
  /** A checkbox that is not ticked is not sent. */
  readonly isCheckbox: boolean
}

/** As browsers check `<input type="email">` (HTML standard, section 4.10.5.1.5). */
const emailShape =
  /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i
const webAddressShape = /^https?:\/\/[^/?#\\\s][^\s\u0000-\u001f\u007f]*$/i

/** What `fields({...})` makes: reads a body as an object without prototype. */
export class Schema {
  readonly #root: Field
  /** The inputs of a form by name, with `*` for the number of a row. */
  readonly inputs: ReadonlyMap<string, Input>

  /** @throws TypeError when a member is no field */
  constructor(definition: unknown) {
    this.#root = objectOf('', definition)
    const inputs = new Map<string, Input>()
    collectInputs(this.#root, '', inputs)
    this.inputs = inputs
  }

  /** Reads a form, or a value that was JSON. Returns the values, or what is wrong with them. */
  read(body: unknown, form?: Form): { readonly value: unknown } | { readonly problems: readonly Problem[] } {
    const run = new Run(form)
    const value = readField(this.#root, form ?? body, run, '')
    return run.problems.length === 0 ? { value } : { problems: run.problems }
  }
}

/**
 * Makes schemas for `ctx.validate`, and their fields. Every field is required unless it has `.optional()` or
 * `.default(value)`. Each function throws TypeError for a definition that is wrong, and says what it must be.
 */
export const fields = Object.assign((definition: unknown): Schema => new Schema(definition), {
  /** Text without the white space around it, unless `trim` is false. */
  text: (options: Options = {}): Field =>
    kinds.textField(checkOptions('text', options), { message: 'text', trims: options.trim !== false }),
  /** Text that is not trimmed and never shown again: a password, a code. */
  secret: (options: Options = {}): Field =>
    kinds.textField(checkOptions('secret', options), { message: 'text', trims: false, isSecret: true }),
  /** An address as browsers take it, of at most 254 characters unless `max` is given. */
  email: (options: Options = {}): Field =>
    kinds.textField(checkOptions('email', { ...options, max: options?.max ?? 254 }), {
      message: 'email', fits: (text) => emailShape.test(text),
    }),
  /** An http or https address, of at most 2048 characters unless `max` is given. */
  url: (options: Options = {}): Field =>
    kinds.textField(checkOptions('url', { ...options, max: options?.max ?? 2048 }), {
      message: 'url', fits: (text) => webAddressShape.test(text) && URL.canParse(text),
    }),
  /** A day that exists, as the text `YYYY-MM-DD`. */
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
  /** One of these texts; they may be given as a list. */
  choice: (...choices: readonly unknown[]): Field => kinds.choiceField(choices.flat()),
  /** A list, of at most 1000 entries unless `max` is given. */
  list: (item: Field, options: Options = {}): Field => {
    if (!(item instanceof Field)) throw wrongField('list', `give it the field of its entries: it is ${shown(item)}`)
    return kinds.listField(item, checkOptions('list', options))
  },
  /** An object, without prototype. */
  object: (definition: unknown): Field => objectOf('object', definition),
  /** A file of a multipart form. Its type is what the client says. */
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
    collectInputs(item, `${path}.*`, inputs)
  } else {
    const isList = item !== undefined
    const isCheckbox = !isList && unsent !== undefined
    inputs.set(path, { isSecret: isSecret || item?.kind.isSecret === true, isList, isCheckbox })
  }
}
