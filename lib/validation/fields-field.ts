/**
 * A field of a body, and how it is read: what counts as sent, and which value applies when nothing was sent. Kinds
 * of values (`fields-kinds.ts`) say how their values are found in a form and checked.
 */
import type { Form } from '../http/form.ts'
import { FormIndex } from './form-index.ts'
import { shown } from './fields-options.ts'
import type { MessageName, Problem } from './messages.ts'

/** How the values of one kind are found in a form and checked. */
export interface Kind {
  /** Whether white space around a text does not count. */
  readonly trims: boolean
  /** Finds what a form has under a path; undefined for nothing. */
  readonly find: (form: FormIndex, path: string) => unknown
  /** Checks what was sent. Returns the value to hand on; undefined when it is wrong. */
  readonly check: (value: unknown, run: Run, path: string) => unknown
  /** Reads a required field that a form lacks; that is a problem unless given. */
  readonly unsent?: (run: Run, path: string) => unknown
  readonly isSecret?: boolean
  readonly members?: readonly Member[]
  readonly item?: Field
}
/** A member of an object. */
export type Member = readonly [name: string, field: Field]

/** More problems are not told: the answer would be larger than the request. */
const mostProblems = 1000

/** One reading of a body. */
export class Run {
  /** The form; undefined for JSON. */
  readonly form: FormIndex | undefined
  readonly problems: Problem[] = []

  constructor(form: Form | undefined) {
    this.form = form === undefined ? undefined : new FormIndex(form)
  }

  /** Notes a problem. `rules` has the values of the message's placeholders. */
  wrong(path: string, message: MessageName, rules: object = {}): undefined {
    if (this.problems.length < mostProblems) this.problems.push({ path, message, rules })
  }
}

/** A field of a body. It does not change: `optional` and `default` return another one. */
export class Field {
  readonly kind: Kind
  readonly presence: 'required' | 'optional' | 'default'
  readonly fallback: unknown

  constructor(kind: Kind, presence: Field['presence'] = 'required', fallback?: unknown) {
    this.kind = kind
    this.presence = presence
    this.fallback = fallback
  }

  /** The same field, which may be left out or sent empty: it is undefined then. */
  optional(): Field {
    return new Field(this.kind, 'optional')
  }

  /**
   * The same field, with a value for when it is left out or sent empty.
   * @throws TypeError when the value breaks a rule of the field
   */
  default(value: unknown): Field {
    const run = new Run(undefined)
    const fallback = this.kind.check(value, run, '')
    const [problem] = run.problems
    if (problem === undefined) return new Field(this.kind, 'default', fallback)
    throw new TypeError(`Cannot define a default: ${shown(value)} breaks a rule of its own field: ${problem.message}`)
  }
}

/** Reads what was sent for a field. Returns its value; undefined where it has none, or a problem was noted. */
export function readField(field: Field, given: unknown, run: Run, path: string): unknown {
  const { kind, presence, fallback } = field
  const value = kind.trims && typeof given === 'string' ? given.trim() : given
  const isEmpty = value === '' && (run.form !== undefined || presence === 'required')
  if (value !== undefined && value !== null && !isEmpty) return kind.check(value, run, path)
  if (presence === 'optional') return undefined
  if (presence === 'default') {
    // An action may change what it gets, so each request gets an object or list of its own.
    return typeof fallback === 'object' ? kind.check(fallback, new Run(undefined), '') : fallback
  }
  return run.form !== undefined && kind.unsent !== undefined ? kind.unsent(run, path) : run.wrong(path, 'required')
}
