/**
 * What a form with invalid input leaves for the page that shows it again, and where that page is.
 */
import { isObject } from '../base/object.ts'
import { mayBeSecret } from '../base/secret-name.ts'
import { safeNext } from '../access/next-path.ts'
import type { Chain } from '../chain/compose.ts'
import type { FlashBag } from '../flash/bag.ts'
import type { CoreContext } from '../http/context.ts'
import { wantsJson } from '../http/error-reply.ts'
import type { InvalidInput } from '../http/errors.ts'
import type { Form } from '../http/form.ts'
import { refererIsHere } from '../http/origin.ts'
import type { Registry } from '../routing/registry.ts'
import type { SessionMembers } from '../session/feature.ts'
import type { Input } from './fields.ts'

/** A context with the members that forms need. */
export type Context = CoreContext & SessionMembers & { readonly flash: (id: string) => FlashBag }
/** The part of a registry that finds the page of a form. */
export type Routes = Pick<Registry<Chain>, 'find'>
/** The errors and the input of a refused form. */
export type Left = Pick<InvalidInput, 'errors' | 'input'>

/** The input of a name, and of the names that continue it after a dot. */
interface Branch {
  input: unknown
  readonly below: Map<string, Branch>
}

/** The helpers with which views and error pages read what a form left. */
interface FormHelpers {
  /** The input of a field, or the fallback if there is none; see {@link nestInput}. */
  readonly old: (field: string, fallback?: unknown, form?: string) => unknown
  /** The error messages of a field; empty if it is valid. */
  readonly errorsOf: (field: string, form?: string) => readonly string[]
}

/** The bag of a form without a name. */
export const usualForm = 'form'
/** The most that input, and errors, may take in a flash bag, each in bytes of JSON. */
const mostFlashBytes = 16_384
/** Names of more levels than any form has stay as they are. */
const mostLevels = 32
const rowNumber = /^(?:0|[1-9]\d{0,5})$/

/**
 * The prototype of an object of inputs. A view may expect a text or a list where a client sent names of an object: the
 * object prints as '' and has no items, so that the view does not fail.
 */
const inputsPrototype = Object.freeze(
  Object.create(null, { [Symbol.toPrimitive]: { value: () => '' }, [Symbol.iterator]: { value: () => [].values() } }),
) as object

/** Makes the helpers. `left` returns what a form left, the same each time. */
export function formHelpers(left: (form: string) => Left): FormHelpers {
  const nested = new Map<object, (name: string) => unknown>()
  return {
    old: (field, fallback, form = usualForm) => {
      const { input } = left(form)
      const own = Object.hasOwn(input, field) ? input[field] : undefined
      if (own !== undefined && !(Array.isArray(own) && own.length === 0)) return own
      const find = nested.get(input) ?? nestInput(input)
      nested.set(input, find)
      return find(field) ?? own ?? fallback
    },
    errorsOf: (field, form = usualForm) => {
      const { errors } = left(form)
      return Object.hasOwn(errors, field) ? (errors[field] ?? []) : []
    },
  }
}

/**
 * Returns the input of a form that may be shown again, by name: a string, or a list for several values of one name and
 * for lists. Files and secrets are left out. An unticked checkbox is '', so that a default does not tick it, and a list
 * without an input of its name is [].
 * @param inputs the inputs that the schema knows
 * @param csrfField the name of the field that carries the CSRF token
 */
export function inputOf(form: Form, inputs: ReadonlyMap<string, Input>, csrfField: string): Record<string, unknown> {
  const input = Object.create(null) as Record<string, unknown>
  for (const name of form.keys()) {
    const known = inputs.get(withoutNumbers(name))
    if (name === csrfField || mayBeSecret(name) || known?.isSecret === true) continue
    const values = form.getAll(name)
    input[name] = values.length === 1 && known?.isList !== true ? values[0] : values
  }
  for (const [name, { isList, isCheckbox }] of inputs) {
    const isUnsent = !form.has(name) && !name.includes('*') && !mayBeSecret(name)
    if (isUnsent && (isList || isCheckbox)) input[name] = isList ? [] : ''
  }
  return input
}

/**
 * Prepares the look-ups of the rows and parts of an input: its names `lines.0.name` and `lines.1.name` are the list
 * `lines`. The client chooses the names, so one pass over them builds a tree, and a look-up walks only its own part.
 * @param input values by name, as {@link inputOf} returns them
 * @returns a function that returns the list or object of a name, or its own value; undefined if there is none
 */
export function nestInput(input: Readonly<Record<string, unknown>>): (name: string) => unknown {
  const root: Branch = { input: undefined, below: new Map() }
  for (const [name, value] of Object.entries(input)) {
    const keys = name.split('.', mostLevels + 1)
    if (keys.length <= mostLevels) keys.reduce(branchOf, root).input = value
  }
  return (name) => {
    let branch: Branch | undefined = root
    for (const key of name.split('.', mostLevels + 1)) branch = branch?.below.get(key)
    return branch === undefined ? undefined : valueOf(branch)
  }
}

/**
 * Leaves errors and input in the flash bag of a form.
 * @returns the page that shows the form again; undefined if there is none, and then the bag stays as it is
 */
export function leaveInBag(ctx: Context, form: string, { errors, input }: Left, routes: Routes): string | undefined {
  const isSafe = ctx.method === 'GET' || ctx.method === 'HEAD'
  if (isSafe || !ctx.session.isOpen || !ctx.session.isFromClient || wantsJson(ctx)) return undefined
  if (jsonBytes(input) > mostFlashBytes || jsonBytes(errors) > mostFlashBytes) return undefined
  const location = pageOfForm(ctx, routes)
  if (location !== undefined) ctx.flash(form).set({ errors, input })
  return location
}

/** Reads what a form left in its bag. An application may have put something else there. */
export function readBag(bag: FlashBag): Left {
  const errors = bag.get('errors')
  const input = bag.get('input')
  return { errors: isErrors(errors) ? errors : {}, input: isObject(input) ? input : {} }
}

/**
 * Returns the path and query of the page that sent a form, by `Referer`: it must be on this host, and a GET route of
 * the application. So the redirect cannot lead to another site, and following it changes nothing.
 * @returns undefined when there is no such page
 */
function pageOfForm(ctx: CoreContext, routes: Routes): string | undefined {
  const referer = ctx.header('referer') ?? ''
  if (!refererIsHere(ctx) || !URL.canParse(referer)) return undefined
  const { pathname, search } = new URL(referer)
  // A path without a GET route counts as one of other methods. System routes show no forms of the application.
  const match = (method: string, path: string) => routes.find(method, path)?.route ?? ['POST']
  const path = safeNext(pathname, ctx, { match }, () => true)
  return path === undefined ? undefined : ctx.prefix + path + search
}

function branchOf({ below }: Branch, key: string): Branch {
  const branch = below.get(key) ?? { input: undefined, below: new Map<string, Branch>() }
  below.set(key, branch)
  return branch
}

/** The value of a name itself comes first. An empty list is a list of the schema that has no input of its own name. */
function valueOf({ input, below }: Branch): unknown {
  const isList = Array.isArray(input) && input.length === 0
  if (below.size === 0 || (input !== undefined && !isList)) return input
  const rows = [...below].filter(([key]) => rowNumber.test(key))
  if (isList || rows.length === below.size) {
    return rows.sort(([a], [b]) => Number(a) - Number(b)).map(([, row]) => valueOf(row))
  }
  const object = Object.create(inputsPrototype) as Record<string, unknown>
  for (const [key, branch] of below) object[key] = valueOf(branch)
  return object
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value))
}

function isErrors(value: unknown): value is InvalidInput['errors'] {
  return isObject(value) && Object.values(value).every((texts) => Array.isArray(texts))
}

/** The name of an input with `*` for each number, as in `Schema.inputs`. */
function withoutNumbers(name: string): string {
  return name.replace(/\.\d+(?=\.|$)/g, '.*')
}
