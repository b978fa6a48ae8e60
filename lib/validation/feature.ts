/**
 * `ctx.validate` reads a form, a JSON body, the query or the parameters by a schema: the server's own (`fields.ts`) or
 * any that implements Standard Schema (https://standardschema.dev, version 1). `ctx.invalid` refuses what only the
 * action can check. Invalid input ends the request with 422, or sends a form back to its page with `errors` and `input`
 * in a flash bag; invalid parameters end it with 404.
 */
import type { StandardSchema } from 'svc'
import { isObject } from '../base/object.ts'
import { notFound, type CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import type { Feature } from '../http/features.ts'
import { fields, Schema } from './fields.ts'
import { shown } from './fields-options.ts'
import { formHelpers, inputOf, leaveInBag, readBag, usualForm, type Context, type Left, type Routes } from './form.ts'
import { textsByPath, type Problem } from './messages.ts'
import { hasForm, objectOf, readSent, type From, type Sent } from './sent-input.ts'
import { isStandard } from './standard.ts'

/** The dependencies of the feature. */
interface ValidateParts {
  readonly registry: Routes
  /** The text of a problem. */
  readonly textOf: (problem: Problem) => string
  /** The form field that carries the CSRF token, which is never shown again. */
  readonly csrfField: () => string
}

/** The options of `ctx.invalid`: the bag of the form. */
interface FormOptions {
  readonly form?: string
}
/** The options of `ctx.validate`. */
interface ValidateOptions extends FormOptions {
  readonly from?: From
}
interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}
type Outcome = { readonly value: unknown } | { readonly errors: Record<string, string[]> }
/** Wrong input, and whether a form had it, which can be sent back to its page. */
type Refused = Left & { readonly isForm: boolean }

const mostErrors = 1000
const nothingKnown: Schema['inputs'] = new Map()

/** Makes the feature for one server. `svc.d.ts` has the types of its members for applications. */
export function validateFeature(parts: ValidateParts): Feature {
  /** By request and form: what this request or the one before it left. */
  const lefts = new WeakMap<CoreContext, Map<string, Left>>()
  /** By request: the inputs of the schemas that have read its body. */
  const inputs = new WeakMap<CoreContext, Schema['inputs']>()

  function leftsOf(ctx: Context): Map<string, Left> {
    const known = lefts.get(ctx) ?? new Map<string, Left>()
    lefts.set(ctx, known)
    return known
  }

  /** Reads a bag once per request. Without a session no form has left anything, which is no mistake of the route. */
  function leftBy(ctx: Context, form: string): Left {
    const known = leftsOf(ctx).get(form)
    if (known !== undefined) return known
    const left = ctx.session.isOpen ? readBag(ctx.flash(form)) : { errors: {}, input: {} }
    leftsOf(ctx).set(form, left)
    return left
  }

  async function validate(ctx: Context, schema: unknown, options: ValidateOptions): Promise<unknown> {
    const { from = 'body', form = usualForm } = options
    const outcome = await read(ctx, schema, from, parts)
    if (from === 'body' && schema instanceof Schema) learn(ctx, schema)
    if ('value' in outcome) return outcome.value
    if (from === 'params') throw new HttpError(404, 'not_found', notFound(ctx.path).message)
    throw refusal(ctx, form, outcome)
  }

  function invalid(ctx: Context, errors: unknown, { form = usualForm }: FormOptions): never {
    const { arrivedForm } = ctx.body
    const known = inputs.get(ctx) ?? nothingKnown
    const input = arrivedForm === undefined ? {} : inputOf(arrivedForm, known, parts.csrfField())
    throw refusal(ctx, form, { errors: textsOf(errors), input, isForm: hasForm(ctx) })
  }

  /** Remembers the inputs of a schema, so that `ctx.invalid` treats them as the schema does. */
  function learn(ctx: Context, schema: Schema): void {
    const known = inputs.get(ctx)
    inputs.set(ctx, known === undefined ? schema.inputs : new Map([...known, ...schema.inputs]))
  }

  /** Makes the error for wrong input. Leaves errors and input for the page of the form, else for this request. */
  function refusal(ctx: Context, form: string, { errors, input, isForm }: Refused): HttpError {
    const location = isForm ? leaveInBag(ctx, form, { errors, input }, parts.registry) : undefined
    if (location === undefined) leftsOf(ctx).set(form, { errors, input })
    const lines = Object.entries(errors).map(([path, texts]) => `${path === '' ? '' : `${path}: `}${texts.join(', ')}`)
    const message = ['The input is wrong', ...lines.slice(0, 20)].join('\n')
    return new HttpError(422, 'invalid', message, { invalid: { errors, input, location } })
  }

  return {
    name: 'validate',
    members: [
      { name: 'fields', make: () => fields },
      {
        name: 'validate',
        make: (ctx: Context) => (schema: unknown, options: ValidateOptions = {}) => validate(ctx, schema, options),
      },
      {
        name: 'invalid',
        make: (ctx: Context) => (errors: unknown, options: FormOptions = {}) => invalid(ctx, errors, options),
      },
      { name: 'old', inViews: 'name', make: (ctx: Context) => formHelpers((form) => leftBy(ctx, form)).old },
      { name: 'errorsOf', inViews: 'name', make: (ctx: Context) => formHelpers((form) => leftBy(ctx, form)).errorsOf },
    ],
  }
}

async function read(
  ctx: Context,
  schema: unknown,
  from: From,
  parts: ValidateParts,
): Promise<{ value: unknown } | Refused> {
  const isOwn = schema instanceof Schema
  if (!isOwn && !isStandard(schema)) {
    throw new TypeError(`Cannot validate: pass fields({...}) or a Standard Schema: it is ${shown(schema)}`)
  }
  const sent = await readSent(ctx, from)
  const outcome = isOwn
    ? readOwn(schema, sent, parts)
    : await readStandard(schema, 'form' in sent ? objectOf(sent.form) : sent.json)
  if ('value' in outcome) return outcome
  if ('json' in sent) return { ...outcome, input: {}, isForm: false }
  const input = inputOf(sent.form, isOwn ? schema.inputs : nothingKnown, parts.csrfField())
  return { ...outcome, input, isForm: from === 'body' }
}

function readOwn(schema: Schema, sent: Sent, { textOf }: ValidateParts): Outcome {
  const read = 'form' in sent ? schema.read(undefined, sent.form) : schema.read(sent.json)
  return 'value' in read ? read : { errors: textsByPath(read.problems, textOf) }
}

async function readStandard(schema: StandardSchema, value: unknown): Promise<Outcome> {
  const result: unknown = await schema['~standard'].validate(value)
  if (!isObject(result)) throw new TypeError(`The schema returned no Standard Schema result: it is ${shown(result)}`)
  if (!result['issues']) return { value: result['value'] }
  const errors = Object.create(null) as Record<string, string[]>
  for (const { message, path = [] } of (result['issues'] as readonly Issue[]).slice(0, mostErrors)) {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part))
    ;(errors[keys.join('.')] ??= []).push(message)
  }
  return { errors }
}

/** Checks the errors that an action passed. Throws TypeError unless they are texts by path. */
function textsOf(given: unknown): Record<string, string[]> {
  const wanted = "Cannot refuse the input: pass texts that are not empty by path, as in ctx.invalid({ email: 'Taken' })"
  const entries = isObject(given) ? Object.entries(given) : []
  if (entries.length === 0) throw new TypeError(`${wanted}: it is ${shown(given)}`)
  const errors = Object.create(null) as Record<string, string[]>
  for (const [path, value] of entries) {
    const texts: readonly unknown[] = Array.isArray(value) ? value : [value]
    const isWrong = texts.length === 0 || texts.some((text) => typeof text !== 'string' || text === '')
    if (isWrong) throw new TypeError(`${wanted}: ${JSON.stringify(path)} has ${shown(value)}`)
    errors[path] = texts.map(String)
  }
  return errors
}
