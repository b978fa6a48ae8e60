/**
 * `action(schemas, run)`: an action whose input is declared where it is written. The input is checked before the
 * action runs, as `ctx.validate` checks it, and `svc openapi` describes it.
 */
import type { ActionSchemas, Context } from 'svc'
import { didYouMean } from '../base/nearest.ts'
import { isObject } from '../base/object.ts'
import { Field } from './fields-field.ts'
import { shown } from './fields-options.ts'
import { isStandard } from './standard.ts'

/** An action with its schemas. */
type DeclaredAction = ((ctx: Context) => Promise<unknown>) & { readonly schemas: ActionSchemas }
type Run = (ctx: Context, input: Readonly<Record<'body' | 'query' | 'params', unknown>>) => unknown

const inputs = ['params', 'query', 'body'] as const
const texts = ['form', 'summary', 'description'] as const
const known: readonly string[] = [...inputs, ...texts, 'answer']

/**
 * Makes an action. Parameters are checked first, since a wrong one is 404, then the query, then the body.
 * @param schemas of the input; a part without one is not checked, and undefined in the input
 * @param run gets the checked input
 * @throws TypeError for a wrong declaration
 */
export function action(schemas: ActionSchemas, run: Run): DeclaredAction {
  const problem = problemOf(schemas, run)
  if (problem !== undefined) throw new TypeError(`Cannot declare an action: ${problem}`)
  const { params, query, body, form } = schemas
  const bag = form === undefined ? {} : { form }
  const checked = async (ctx: Context): Promise<unknown> =>
    run(ctx, {
      params: params && (await ctx.validate(params, { from: 'params' })),
      query: query && (await ctx.validate(query, { from: 'query', ...bag })),
      body: body && (await ctx.validate(body, bag)),
    })
  return Object.assign(checked, { schemas: Object.freeze({ ...schemas }) })
}

/** Returns the schemas of an action that has declared any. */
export function schemasOf(run: unknown): ActionSchemas | undefined {
  const schemas = typeof run === 'function' ? (run as Partial<DeclaredAction>).schemas : undefined
  return isObject(schemas) && problemOf(schemas, run) === undefined ? schemas : undefined
}

/** Returns the replies of an action by status; of a single schema, that of a 200. Null: a reply without content. */
export function answersOf({ answer }: ActionSchemas): ReadonlyMap<number, unknown> {
  if (answer === undefined) return new Map()
  if (isContent(answer)) return new Map([[200, answer]])
  return new Map(Object.entries(answer).map(([status, content]) => [Number(status), content]))
}

function problemOf(schemas: unknown, run: unknown): string | undefined {
  if (!isObject(schemas)) return `pass an object such as { body: fields({...}) }: it is ${shown(schemas)}`
  if (typeof run !== 'function') return `pass the function to run after the schemas: it is ${shown(run)}`
  const unknown = Object.keys(schemas).find((name) => !known.includes(name))
  if (unknown !== undefined) return `unknown member ${shown(unknown)}${didYouMean(unknown, known)}`
  for (const name of inputs) {
    const schema = schemas[name]
    if (schema === undefined || isStandard(schema)) continue
    return `${name} must be fields({...}) or a Standard Schema: it is ${shown(schema)}`
  }
  for (const name of texts) {
    if (schemas[name] !== undefined && typeof schemas[name] !== 'string') return `${name} must be a text`
  }
  return problemOfAnswer(schemas['answer'])
}

function problemOfAnswer(answer: unknown): string | undefined {
  if (answer === undefined || isContent(answer)) return undefined
  if (!isObject(answer)) return `answer must be a schema, or schemas by status: it is ${shown(answer)}`
  for (const [status, content] of Object.entries(answer)) {
    if (!/^[2-5]\d\d$/.test(status)) return `answer must have statuses from 200 to 599: one is ${shown(status)}`
    if (content !== null && !isContent(content)) {
      return `answer ${status} must be a schema, or null for a reply without content: it is ${shown(content)}`
    }
  }
  return undefined
}

function isContent(value: unknown): boolean {
  return value instanceof Field || isStandard(value)
}
