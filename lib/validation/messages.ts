/**
 * The messages of `ctx.validate`, and the group `validate` of the middleware configuration, which can replace them:
 * `{"setup": {"validate": {"messages": {"required": "Bitte ausfüllen"}}}}`.
 */
import { isObject } from '../base/object.ts'
import type { Row } from '../base/value.ts'
import { readSettings, SettingsError, type BuiltInGroup } from '../chain/settings.ts'

const defaults = {
  required: 'Required',
  single: 'Must be a single value',
  text: 'Must be a text',
  too_short: 'Must have at least {min} characters',
  too_long: 'Must have at most {max} characters',
  pattern: 'Does not have the expected form',
  email: 'Must be an email address',
  url: 'Must be an address that begins with http:// or https://',
  integer: 'Must be a whole number',
  number: 'Must be a number',
  too_small: 'Must be {min} or more',
  too_large: 'Must be {max} or less',
  boolean: 'Must be yes or no',
  date: 'Must be a date that exists, as YYYY-MM-DD',
  too_early: 'Must be {min} or later',
  too_late: 'Must be {max} or earlier',
  choice: 'Must be one of: {choices}',
  list: 'Must be a list',
  too_few: 'Must have at least {min} entries',
  too_many: 'Must have at most {max} entries',
  object: 'Must be an object',
  file: 'Must be a file',
  file_type: 'Must be a file of type {types}',
  file_size: 'Must be a file of at most {maxKb} KiB',
}

/** The name of a message. */
export type MessageName = keyof typeof defaults

/** A problem of a value: the name of its message, and the values of its placeholders. */
export interface Problem {
  readonly path: string
  /** The path as keys: a name may have a dot, and the entries of a list have numbers. */
  readonly keys: readonly (string | number)[]
  readonly message: MessageName
  readonly rules: object
}

const placeholder = /\{(\w+)\}/g

/** The messages, as rows of `setup.validate.messages`. */
export const messageTable: Readonly<Record<string, Row>> = Object.fromEntries(
  Object.entries(defaults).map(([name, text]): [string, Row] => {
    const known = placeholdersIn(text)
    const allowed = known.length === 0 ? 'this message has no placeholder' : `it may have ${known.join(' and ')}`
    const meaning = known.length === 0 ? '' : known.map((one) => `\`${one}\``).join(', ')
    const check = (custom: string): string | undefined => {
      if (custom.trim() === '') return 'must be a text that is not empty'
      const unknown = placeholdersIn(custom).find((one) => !known.includes(one))
      return unknown === undefined ? undefined : `must not have ${unknown}: ${allowed}`
    }
    return [name, { kind: 'string', default: text, check, meaning }]
  }),
)

/** The group, and the messages. */
interface MessageGroup extends BuiltInGroup {
  /** Returns the text of a problem. */
  readonly textOf: (problem: Problem) => string
}

/** Makes the group, with the default messages until its first `commit`. */
export function createMessageGroup(): MessageGroup {
  let current: Readonly<Record<string, unknown>> = defaults
  return {
    name: 'validate',
    table: messageTable,
    middleware: new Map(),
    prepare(given = {}) {
      if (!isObject(given)) throw new SettingsError(['setup.validate must be an object with messages'])
      const { messages, ...others } = given
      const { settings, warnings } = readSettings('validate.messages', messageTable, messages)
      const unknown = Object.keys(others).map((key) => `unknown key setup.validate.${key}: it has messages`)
      return {
        warnings: [...warnings, ...unknown],
        commit: () => (current = settings),
      }
    },
    textOf: (problem) => textIn(current, problem),
  }
}

/** Returns the text of a problem in English: the default messages, which no server has replaced. */
export function englishText(problem: Problem): string {
  return textIn(defaults, problem)
}

/** Returns the texts of problems by path, in an object without prototype. */
export function textsByPath(
  problems: readonly Problem[],
  textOf: (problem: Problem) => string,
): Record<string, string[]> {
  const texts = Object.create(null) as Record<string, string[]>
  for (const problem of problems) (texts[problem.path] ??= []).push(textOf(problem))
  return texts
}

function textIn(texts: Readonly<Record<string, unknown>>, { message, rules }: Problem): string {
  const values = rules as Readonly<Record<string, unknown>>
  return String(texts[message]).replace(placeholder, (_, name: string) => String(values[name]))
}

function placeholdersIn(text: string): string[] {
  return text.match(placeholder) ?? []
}
