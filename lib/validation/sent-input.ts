/**
 * The input that a request sent, for a schema: a form, or parsed JSON. A query and the parameters of a path are texts
 * by name, so they are read like a form: texts become numbers, and an empty value counts as missing.
 */
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import { addField, Form } from '../http/form.ts'
import { shown } from './fields-options.ts'

/** Where the input of a request is. */
export type From = 'body' | 'query' | 'params'

/** The input of a request. */
export type Sent = { readonly form: Form } | { readonly json: unknown }

const jsonType = /^application\/(?:[\w.-]+\+)?json$/

/**
 * Reads the input of a request. A missing body is an empty form.
 * @throws TypeError for an unknown place; HttpError 415 for a body that is neither a form nor JSON, and the errors of
 *   reading a body
 */
export async function readSent(ctx: CoreContext, from: From): Promise<Sent> {
  switch (from) {
    case 'body':
      return readBody(ctx)
    case 'query':
      return { form: formOf(ctx.query) }
    case 'params':
      return { form: formOf(Object.entries(ctx.params)) }
    default:
      throw new TypeError(`Cannot validate: from must be 'body', 'query' or 'params': it is ${shown(from)}`)
  }
}

async function readBody(ctx: CoreContext): Promise<Sent> {
  if (hasForm(ctx)) return { form: await ctx.readForm() }
  const type = ctx.body.contentType?.value
  if (type !== undefined && jsonType.test(type)) return { json: await ctx.readJson() }
  const sent = ctx.header('content-type')
  const found = sent === undefined ? 'it has no Content-Type' : `its Content-Type is ${shown(sent.slice(0, 100))}`
  throw new HttpError(415, 'unsupported_media_type', `Cannot read the body: it must be a form or JSON, and ${found}`)
}

/** Whether the body is a form by its type, or missing. */
export function hasForm(ctx: CoreContext): boolean {
  return ctx.body.isForm || (ctx.header('content-type') === undefined && !ctx.hasBody)
}

function formOf(pairs: Iterable<readonly [name: string, value: string]>): Form {
  const values = new Map<string, string[]>()
  for (const [name, value] of pairs) addField(values, name, value)
  return new Form(values, [])
}

/** Returns a form as an object without prototype: a string or a file by name, a list where there are several. */
export function objectOf(form: Form): Record<string, unknown> {
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
