/**
 * One field of a form body, for what must not fail on a body of another type: JSON is for the action to read.
 */
import type { Context } from './context.ts'
import { parseParameters } from './parameters.ts'

const formTypes: readonly (string | undefined)[] = ['application/x-www-form-urlencoded', 'multipart/form-data']

/**
 * The values of a field, in the order sent: none when the form does not have it. Undefined, at once, when the request
 * has no form body. Rejects with the HttpError of a body that cannot be read.
 */
export function readFormField(ctx: Context, name: string): Promise<readonly string[]> | undefined {
  if (!ctx.hasBody) return undefined
  const type = ctx.header('content-type')
  if (type === undefined || !formTypes.includes(parseParameters(type)?.value)) return undefined
  return ctx.readForm().then((form) => form.getAll(name))
}
