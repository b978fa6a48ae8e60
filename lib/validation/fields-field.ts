/**
 * A field of a body, and how it is read: what counts as sent, and which value applies when nothing was sent. The kinds
 * of values (`fields-kinds.ts`) define how their values are found in a form and checked.
 */
import type { Form } from '../http/form.ts'
import { FormIndex } from './form-index.ts'
import { shown } from './fields-options.ts'
import type { MessageName, Problem } from './messages.ts'

/** How the values of one kind are found in a form and checked. */
export interface Kind {
  /** Whether white space around a string is removed. */
  readonly trims: boolean
  /** Finds the value under a path of a form; undefined if there is none. */
  readonly find: (form: FormIndex, path: string) => unknown
  /** Checks what was sent. Returns the value to pass on; undefined when it is invalid. */
  readonly check: (value: unknown, run: Run, path: string) => unknown
  /** Reads a required field that a form lacks; without this, a missing field is a problem. */
  readonly unsent?: (run: Run, path: string) => unknown
  /** The keywords of JSON Schema for the rules of the kind; undefined and infinite ones do not apply. */
  readonly keywords: Readonly<Record<string, unknown>>
  readonly isSecret?: boolean
  readonly members?: readonly Member[]
  readonly item?: Field
}
/** A member of an object. */
export type Member = readonly [name: string, field: Field]

/** The most problems reported, so that the response is not larger than the request. */
const mostProblems = 1000

/** One reading of a body. */
export class Run {
  /** The form; undefined for JSON. */
  readonly form: FormIndex | undefined
  readonly problems: Problem[] = []
  /** The keys of the member or entry that is being read. */
  readonly keys: (string | number)[] = []

  constructor(form: Form | undefined) {
    this.form = form === undefined ? undefined : new FormIndex(form)
  }

  /** Records a problem. `rules` has the values of the message's placeholders. */
  wrong(path: string, message: MessageName, rules: object = {}): undefined {
    if (this.problems.length < mostProblems) this.problems.push({ path, keys: [...this.keys], message, rules })
  }
}

/** A field of a body. Immutable: `optional` and `default` return a new field. */
export class Field {
  readonly kind: Kind
  readonly presence: 'required' | 'optional' | 'default'
  readonly fallback: unknown

  constructor(kind: Kind, presence: Field['presence'] = 'required', fallback?: unknown) {
    this.kind = kind
    this.presence = presence
    this.fallback = fallback
  }

  /** Returns the same field as optional: it is undefined when left out or sent empty. */
  optional(): Field {
    return new Field(this.kind, 'optional')
  }

  /**
   * Returns the same field with a value for when it is left out or sent empty.
   * @throws TypeError when the value breaks a rule of the field
   */
  default(value: unknown): Field {
    const run = new Run(undefined)
    const fallback = this.kind.check(value, run, '')
    const [problem] = run.problems
    if (problem === undefined) return new Field(this.kind, 'default', fallback)
    throw new TypeError(`Cannot define a default: ${shown(value)} breaks a rule of its field: ${problem.message}`)
  }
}

/** Reads a member of an object or an entry of a list, under its key. Returns as {@link readField}. */
export function readBelow(field: Field, sent: unknown, run: Run, path: string, key: string | number): unknown {
  run.keys.push(key)
  const value = readField(field, sent, run, path)
  run.keys.pop()
  return value
}

/** Reads what was sent for a field. Returns its value; undefined where it has none, or a problem was recorded. */
export function readField(field: Field, sent: unknown, run: Run, path: string): unknown {
  const { kind, presence, fallback } = field
  const value = kind.trims && typeof sent === 'string' ? sent.trim() : sent
  const isEmpty = value === '' && (run.form !== undefined || presence === 'required')
  if (value !== undefined && value !== null && !isEmpty) return kind.check(value, run, path)
  if (presence === 'optional') return undefined
  if (presence === 'default') {
    // An action may change its input, so each request gets its own copy of an object or list.
    return typeof fallback === 'object' ? kind.check(fallback, new Run(undefined), '') : fallback
  }
  return run.form !== undefined && kind.unsent !== undefined ? kind.unsent(run, path) : run.wrong(path, 'required')
}
