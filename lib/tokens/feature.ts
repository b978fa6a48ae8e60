/**
 * What resource ids add to the context: `resourceInput(id)` renders the token of an id, `resourceId()` reads it back.
 *
 * Surprise: a field that is there decides. A wrong token in the form is not made good by a right one in the query.
 */
import type { Context } from '../http/context.ts'
import { escapeHtml } from '../http/escape-html.ts'
import type { Feature } from '../http/features.ts'
import { readFormField } from '../http/form-field.ts'
import type { ResourceTokens } from './resource-id.ts'

declare module '../http/context.ts' {
  interface Context {
    /**
     * The id that `_resource_id` carries: of the form body, urlencoded or multipart, or where that has none, of the
     * query. '' when it is not there, is there twice, or was not signed by this application. It proves that the id is
     * one that was rendered, not that the client may use it. Rejects with the HttpError of a form that cannot be read.
     */
    readonly resourceId: () => Promise<string>
    /** The specification's name for `resourceId`. */
    readonly UGetResource: () => Promise<string>
    /**
     * A hidden input `_resource_id` with the signed id; '' for the id ''. The client can read the id, not change it.
     * @throws TypeError for what is no string, number or bigint
     */
    readonly resourceInput: (id: string | number | bigint) => string
    /** The specification's name for `resourceInput`. */
    readonly UResourceToHtml: (id: string | number | bigint) => string
  }
}

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

async function readId(tokens: ResourceTokens, ctx: Context): Promise<string> {
  const inForm = (await readFormField(ctx, resourceField)) ?? []
  const sent = inForm.length > 0 ? inForm : ctx.query.getAll(resourceField)
  const [token] = sent
  return token === undefined || sent.length > 1 ? '' : tokens.read(token)
}

function renderInput(tokens: ResourceTokens, id: unknown): string {
  if (typeof id !== 'string' && typeof id !== 'number' && typeof id !== 'bigint') {
    const found = id === null ? 'null' : typeof id
    throw new TypeError(`Cannot render a resource id: it must be a string, a number or a bigint: it is ${found}`)
  }
  if (id === '') return ''
  return `<input type="hidden" name="${resourceField}" value="${escapeHtml(tokens.make(String(id)))}">`
}
