/**
 * The types of validation for applications: what `svc.d.ts` declares of `fields`, `ctx.fields` and `ctx.validate`. It
 * needs no type of the server, but for the file of a form.
 */
import type { FormFile } from '../../lib/http/form.ts'

/** A field of a form or of a JSON body. It does not change: both methods return another one. */
export interface Field<T = unknown> {
  /** The same field, which may be left out or sent empty: its value is undefined then. */
  optional(): Field<T | undefined>
  /** The same field, with a value for when it is left out or sent empty. Throws TypeError for one that breaks its rules. */
  default(value: Exclude<T, undefined>): Field<Exclude<T, undefined>>
}

/** What `fields({...})` makes: a schema for `ctx.validate`. */
export interface Schema<T = unknown> {
  readonly [values]: T
}
declare const values: unique symbol

/** Fields by name. */
export interface Definition {
  readonly [name: string]: Field
}

/** The values that a definition gives; those of optional fields need not be there. */
export type Values<D extends Definition = Definition> = Flat<
  { [Name in RequiredNames<D>]: ValueOf<D[Name]> } & { [Name in Exclude<keyof D, RequiredNames<D>>]?: ValueOf<D[Name]> }
>
type ValueOf<F> = F extends Field<infer T> ? T : never
type RequiredNames<D> = { [Name in keyof D]: undefined extends ValueOf<D[Name]> ? never : Name }[keyof D]
type Flat<T> = { [Name in keyof T]: T[Name] }

/** The least and the most, both included: of a number, a date, the length of a text, the entries of a list. */
interface Bounds<T = number> {
  readonly min?: T | undefined
  readonly max?: T | undefined
}
interface TextOptions extends Bounds {
  /** Without the flags g, y and v; one that could take for ever is refused. With it `max` is 255 unless given. */
  readonly pattern?: RegExp | undefined
}

/**
 * Makes schemas for `ctx.validate`, and their fields. Every field is required unless it has `.optional()` or
 * `.default(value)`. A definition that is wrong throws TypeError.
 */
export interface FieldsBuilder {
  <const D extends Definition>(definition: D): Schema<Values<D>>
  /** Text without the white space around it, unless `trim` is false. */
  text(options?: TextOptions & { readonly trim?: boolean | undefined }): Field<string>
  /** Text that is not trimmed and never shown again: a password, a code. */
  secret(options?: TextOptions): Field<string>
  /** An address as browsers take it, of at most 254 characters unless `max` is given. */
  email(options?: TextOptions): Field<string>
  /** An http or https address, of at most 2048 characters unless `max` is given. */
  url(options?: TextOptions): Field<string>
  /** A day that exists, as the text `YYYY-MM-DD`. */
  date(options?: Bounds<string>): Field<string>
  /** A whole number below 2^53, positive or negative. */
  integer(options?: Bounds): Field<number>
  /** A number, but for infinite ones. */
  number(options?: Bounds): Field<number>
  /** In a form a checkbox: `on`, `true`, `1`, `yes` or `off`, `false`, `0`, `no`; not sent: false. */
  boolean(): Field<boolean>
  /** One of these texts. */
  choice<const Choice extends string>(choices: readonly Choice[]): Field<Choice>
  choice<const Choice extends string>(...choices: readonly Choice[]): Field<Choice>
  /** A list, of at most 1000 entries unless `max` is given. In a form: several inputs of one name. */
  list<T>(item: Field<T>, options?: Bounds): Field<Exclude<T, undefined>[]>
  /** An object, without prototype. In a form: inputs with names such as `address.city`. */
  object<const D extends Definition>(definition: D): Field<Values<D>>
  /** A file of a multipart form. Its type is what the client says; `image/*` never takes `image/svg+xml`. */
  file(options?: { readonly types?: readonly string[] | undefined; readonly maxKb?: number | undefined }): Field<FormFile>
}

/** Makes schemas for `ctx.validate`, and their fields. */
export declare const fields: FieldsBuilder

/** A schema of another make: Standard Schema, version 1 (https://standardschema.dev). */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1
    readonly validate: (value: unknown) => unknown
    readonly types?: { readonly input: unknown; readonly output: unknown } | undefined
  }
}

/** The values that a schema gives. */
export type Validated<S = Schema> =
  S extends Schema<infer T> ? T : S extends StandardSchema ? NonNullable<S['~standard']['types']>['output'] : never

/** What is wrong with the input of a request: the member `invalid` of an HttpError 422. */
export interface InvalidInput {
  /** By path (`address.city`, `tags.0`; '' for the whole): what is wrong there. */
  readonly errors: { readonly [path: string]: readonly string[] }
  /** What was typed into a form, without secrets; empty for JSON. */
  readonly input: { readonly [name: string]: unknown }
}

/** The members of the context. */
export interface ValidateMembers {
  /** Makes schemas for `validate`, and their fields. */
  readonly fields: FieldsBuilder
  /**
   * Reads a form or a JSON body by a schema; unknown members are dropped. A body of another type is 415. Wrong input
   * ends the request: 422 with `errors`, or for a form 303 back to its page, whose flash bag then has `errors` and
   * `input`. The bag is `form` unless it is named.
   */
  readonly validate: <S extends Schema | StandardSchema>(
    schema: S,
    options?: { readonly form?: string },
  ) => Promise<Validated<S>>
  /** What was typed into a field of a form that was refused, else the default. Views read it as `old()`. */
  readonly old: (field: string, fallback?: unknown, form?: string) => unknown
  /** What was wrong with a field of it: texts, none where nothing was. Views read it as `errorsOf()`. */
  readonly errorsOf: (field: string, form?: string) => readonly string[]
}
