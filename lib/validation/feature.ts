/**
 * `ctx.validate`: reads a form or a JSON body by a schema, the server's own (`fields.ts`) or any with Standard Schema
 * (https://standardschema.dev, version 1). What is wrong ends the request with 422, or sends a form back to its page
 * with a flash bag that has `errors` and `input`.
 */
import { isObject } from '../base/object.ts'
import type { Chain } from '../chain/compose.ts'
import type { FlashBag } from '../flash/bag.ts'
import type { CoreContext } from '../http/context.ts'
import { wantsJson } from '../http/error-reply.ts'
import { HttpError, type InvalidInput } from '../http/errors.ts'
import type { Feature } from '../http/features.ts'
import type { Form } from '../http/form.ts'
import type { Registry } from '../routing/registry.ts'
import type { SessionMembers } from '../session/feature.ts'
import { fields, Schema } from './fields.ts'
import { shown } from './fields-options.ts'
import { formHelpers, inputOf, pageOfForm, usualForm } from './form.ts'
import type { Problem } from './messages.ts'

/** The parts of the feature. */
interface ValidateParts {
  readonly registry: Pick<Registry<Chain>, 'find'>
  /** The text of a problem. */
  readonly textOf: (problem: Problem) => string
  /** The form field that carries the CSRF token, which no page shows again. */
  readonly csrfField: () => string
}

/** A schema of another make, as far as it is used. */
interface StandardSchema {
  readonly '~standard': { readonly version: 1; readonly validate: (value: unknown) => unknown }
}
interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}
type Errors = Record<string, string[]>
type Outcome = { readonly value: unknown } | { readonly errors: Errors }
type Left = Pick<InvalidInput, 'errors' | 'input'>
type Refused = Left & { readonly isForm: boolean }
type Context = CoreContext & SessionMembers & { readonly flash: (id: string) => FlashBag }

const jsonType = /^application\/(?:[\w.-]+\+)?json$/
/** What a flash bag may take of a session, in bytes of JSON: the input, and the errors. */
const mostFlashBytes = 16_384
const mostErrors = 1000
const nothingKnown: Schema['inputs'] = new Map()

/** Makes the feature for one server. `svc.d.ts` has the types of its members for applications. */
export function validateFeature(parts: ValidateParts): Feature {
  /** By request and form: what was left by this request, or by the one before it. */
  const lefts = new WeakMap<CoreContext, Map<string, Left>>()

  function leftsOf(ctx: Context): Map<string, Left> {
    const known = lefts.get(ctx) ?? new Map<string, Left>()
    lefts.set(ctx, known)
    return known
  }

  /** Reads a bag once for all that a request shows. */
  function leftBy(ctx: Context, form: string): Left {
    const known = leftsOf(ctx).get(form)
    if (known !== undefined) return known
    const left = readBag(ctx.flash(form))
    leftsOf(ctx).set(form, left)
    return left
  }

  async function validate(ctx: Context, schema: unknown, form: string): Promise<unknown> {
    const outcome = await read(ctx, schema, parts)
    if ('value' in outcome) return outcome.value
    const { errors, input, isForm } = outcome
    const location = isForm ? leaveInBag(ctx, form, outcome, parts) : undefined
    if (isForm && location === undefined) leftsOf(ctx).set(form, outcome)
    throw refusal({ errors, input, location })
  }

  return {
    name: 'validate',
    members: [
      { name: 'fields', make: () => fields },
      {
        name: 'validate',
        make: (ctx: Context) => (schema: unknown, options: { readonly form?: string } = {}) =>
          validate(ctx, schema, options.form ?? usualForm),
      },
      { name: 'old', inViews: 'name', make: (ctx: Context) => formHelpers((form) => leftBy(ctx, form)).old },
      { name: 'errorsOf', inViews: 'name', make: (ctx: Context) => formHelpers((form) => leftBy(ctx, form)).errorsOf },
    ],
  }
}

async function read(ctx: Context, schema: unknown, parts: ValidateParts): Promise<{ value: unknown } | Refused> {
  const isOwn = schema instanceof Schema
  if (!isOwn && !isStandard(schema)) {
    throw new TypeError(`Cannot validate: give fields({...}) or a Standard Schema: it is ${shown(schema)}`)
  }
  const form = isForm(ctx) ? await ctx.readForm() : undefined
  const body = form === undefined ? await ctx.readJson() : undefined
  const outcome = isOwn
    ? readOwn(schema, body, form, parts)
    : await readStandard(schema, form === undefined ? body : objectOf(form))
  if ('value' in outcome) return outcome
  const input = form === undefined ? {} : inputOf(form, isOwn ? schema.inputs : nothingKnown, parts.csrfField())
  return { ...outcome, input, isForm: form !== undefined }
}

/** Whether the body is a form; a request without a body is an empty one. Throws HttpError 415 for other types. */
function isForm(ctx: CoreContext): boolean {
  if (ctx.body.isForm) return true
  const sent = ctx.header('content-type')
  if (sent === undefined && !ctx.hasBody) return true
  const type = ctx.body.contentType?.value
  if (type !== undefined && jsonType.test(type)) return false
  const found = sent === undefined ? 'it has no Content-Type' : `its Content-Type is ${shown(sent.slice(0, 100))}`
  throw new HttpError(415, 'unsupported_media_type', `Cannot read the body: it must be a form or JSON, and ${found}`)
}

function readOwn(schema: Schema, body: unknown, form: Form | undefined, { textOf }: ValidateParts): Outcome {
  const read = schema.read(body, form)
  if ('value' in read) return read
  const errors = Object.create(null) as Errors
  for (const problem of read.problems) (errors[problem.path] ??= []).push(textOf(problem))
  return { errors }
}

async function readStandard(schema: StandardSchema, value: unknown): Promise<Outcome> {
  const result: unknown = await schema['~standard'].validate(value)
  if (!isObject(result)) throw new TypeError(`The schema returned no result of Standard Schema: it is ${shown(result)}`)
  if (!result['issues']) return { value: result['value'] }
  const errors = Object.create(null) as Errors
  for (const { message, path = [] } of (result['issues'] as readonly Issue[]).slice(0, mostErrors)) {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part))
    ;(errors[keys.join('.')] ??= []).push(message)
  }
  return { errors }
}

function isStandard(schema: unknown): schema is StandardSchema {
  if (typeof schema !== 'object' && typeof schema !== 'function') return false
  const { '~standard': standard } = (schema ?? {}) as { readonly '~standard'?: unknown }
  return isObject(standard) && standard['version'] === 1 && typeof standard['validate'] === 'function'
}

/** A form as an object without prototype: by name a text or a file, a list where there are several. */
function objectOf(form: Form): Record<string, unknown> {
  const all = new Map<string, unknown[]>()
  for (const name of form.keys()) all.set(name, form.getAll(name))
  for (const file of form.files) {
    const values = all.get(file.name)
    if (values === undefined) all.set(file.name, [file])
    else values.push(file)
  }
  const object = Object.create(null) as Record<string, unknown>
  for (const [name, values] of all) object[name] = values.length === 1 ? values[0] : values
  return object
}

/**
 * Leaves errors and input in the flash bag of a form.
 * @returns where the form is shown again; undefined when it is not, and then nothing is left
 */
function leaveInBag(
  ctx: Context,
  form: string,
  { errors, input }: Left,
  { registry }: ValidateParts,
): string | undefined {
  const isSafe = ctx.method === 'GET' || ctx.method === 'HEAD'
  if (isSafe || !ctx.session.isOpen || !ctx.session.isFromClient || wantsJson(ctx)) return undefined
  if (jsonBytes(input) > mostFlashBytes || jsonBytes(errors) > mostFlashBytes) return undefined
  const location = pageOfForm(ctx, registry)
  if (location !== undefined) ctx.flash(form).set({ errors, input })
  return location
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value))
}

function refusal(invalid: InvalidInput): HttpError {
  const lines = Object.entries(invalid.errors).map(([path, texts]) => {
    return `${path === '' ? '' : `${path}: `}${texts.join(', ')}`
  })
  return new HttpError(422, 'invalid', ['The input is wrong', ...lines.slice(0, 20)].join('\n'), { invalid })
}

/** What is in a bag. An application may have put something else there. */
function readBag(bag: FlashBag): Left {
  const errors = bag.get('errors')
  const input = bag.get('input')
  return { errors: isErrors(errors) ? errors : {}, input: isObject(input) ? input : {} }
}

function isErrors(value: unknown): value is InvalidInput['errors'] {
  return isObject(value) && Object.values(value).every((texts) => Array.isArray(texts))
}
