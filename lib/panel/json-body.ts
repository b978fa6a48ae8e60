/**
 * Bodies and errors of the panel's JSON endpoints: `{ok: false, error}`. Also reads the panel's forms.
 */
import { isUtf8 } from 'node:buffer'
import { isObject } from '../base/object.ts'
import type { CoreContext } from '../http/context.ts'
import type { HttpError } from '../http/errors.ts'
import { parseJson } from '../http/json.ts'
import type { Reply } from '../http/reply.ts'
import { explainJson } from '../json/json-map.ts'
import { formOf, membersOf } from './result.ts'

/**
 * Reads a JSON object, or the members of a form of the panel. Ignores the content type of JSON and its charset: JSON is
 * UTF-8 (RFC 8259, section 8.1).
 * @returns the object, or a 400 reply with the reason
 * @throws HttpError if the body is too large, or the client disconnected
 */
export async function readObject(ctx: CoreContext): Promise<{ value: Record<string, unknown> } | { refusal: Reply }> {
  const fields = await formOf(ctx)
  if (fields !== undefined) return { value: membersOf(fields) }
  const bytes = await ctx.readBytes()
  if (!isUtf8(bytes)) return { refusal: refuse(ctx, 400, 'Cannot read the body as JSON: it is not UTF-8') }
  let value: unknown
  try {
    value = parseJson(new TextDecoder().decode(bytes), explainJson)
  } catch (error) {
    return { refusal: refuse(ctx, 400, (error as HttpError).message) } // parseJson throws nothing else
  }
  return isObject(value) ? { value } : { refusal: refuse(ctx, 400, 'The body must be a JSON object') }
}

/** Replies with `{ok: false, error}` and more fields. */
export function refuse(
  ctx: CoreContext,
  status: number,
  error: string,
  more: Readonly<Record<string, unknown>> = {},
): Reply {
  return ctx.json({ ok: false, error, ...more }, status)
}
