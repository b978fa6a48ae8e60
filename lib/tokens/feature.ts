/**
 * The context members of resource ids: `resourceInput(id)` renders the token of an id, `resourceId()` reads it back.
 *
 * If the form has the field, the query is not read: a valid token there does not replace an invalid one in the form.
 */
import type { CoreContext } from '../http/context.ts'
import { escapeHtml } from '../http/escape-html.ts'
import type { Feature } from '../http/features.ts'
import { readFormField } from '../http/received-request.ts'
import type { ResourceTokens } from './resource-id.ts'

/** The name of the form field and of the query parameter. */
const resourceField = '_resource_id'

/** Makes the feature. */
export function resourceIdFeature(tokens: ResourceTokens): Feature {
  const render = (id: unknown): string => renderInput(tokens, id)
  return {
    name: 'resource-id',
    members: [
      {
        name: 'resourceId',
        aliases: ['UGetResource'],
        inViews: 'aliases',
        make: (ctx) => () => readId(tokens, ctx),
      },
      { name: 'resourceInput', aliases: ['UResourceToHtml'], inViews: 'aliases', make: () => render },
    ],
  }
}

/**
 * Returns the id in the field `_resource_id` of the form body, or of the query if the form has none. '' if it is
 * missing, occurs twice, or was not signed by this application. It proves that the application rendered the id, not
 * that the client may use it. Rejects with the HttpError of a form that cannot be read.
 */
async function readId(tokens: ResourceTokens, ctx: CoreContext): Promise<string> {
  const inForm = (await readFormField(ctx, resourceField)) ?? []
  const sent = inForm.length > 0 ? inForm : ctx.query.getAll(resourceField)
  const [token] = sent
  return token === undefined || sent.length > 1 ? '' : tokens.read(token)
}

/** Renders a hidden input with the signed id; '' for ''. Throws TypeError unless it is a string, number or bigint. */
function renderInput(tokens: ResourceTokens, id: unknown): string {
  if (typeof id !== 'string' && typeof id !== 'number' && typeof id !== 'bigint') {
    const found = id === null ? 'null' : typeof id
    throw new TypeError(`Cannot render a resource id: it must be a string, a number or a bigint: it is ${found}`)
  }
  if (id === '') return ''
  return `<input type="hidden" name="${resourceField}" value="${escapeHtml(tokens.make(String(id)))}">`
}
