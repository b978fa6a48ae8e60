/**
 * One operation of an OpenAPI description: a route with one of its methods.
 */
import type { ActionSchemas } from 'svc'
import { reasonOf } from '../base/reason.ts'
import { STATUS_CODES } from '../http/node-http.ts'
import { parseAction } from '../routing/action.ts'
import type { Pattern } from '../routing/pattern.ts'
import type { RouteRecord } from '../routing/route.ts'
import { answersOf } from '../validation/action.ts'
import { hasReferences, jsonSchemaFrom, movedTo, propertiesOf, requiredOf, withoutNull } from './json-schemas.ts'
import type { JsonSchema } from './json-schemas.ts'

/** A route as it is described. */
export interface DescribedRoute {
  readonly record: RouteRecord
  readonly pattern: Pattern
  readonly schemas: ActionSchemas | undefined
  /** Whether its module serves WebSockets and nothing else. */
  readonly servesSocketsOnly: boolean
}

/** The names that the settings of the built-in middleware choose. */
export interface MiddlewareNames {
  readonly csrfHeader: string
  readonly csrfField: string
  readonly sessionCookie: string
}

/** Shared by the operations of a document. */
export interface Shared {
  readonly names: MiddlewareNames
  /** `components.schemas`. */
  readonly schemas: Record<string, JsonSchema>
  /** `components.securitySchemes`. */
  readonly security: Record<string, object>
  /** Receives what cannot be described. */
  readonly problem: (text: string) => void
}

/** An Operation Object (OpenAPI 3.1, section 4.8.10). */
export interface Operation {
  readonly operationId: string
  readonly tags?: readonly string[]
  readonly responses: object
}

/** The names of the parameters in the path: OpenAPI has one set of them for a path. */
export type PathNames = readonly string[]

/** A reply that refuses a request: its status, a description, its content, and whether the route has it. */
type Refusal = readonly [status: number | 'default', description: string, content: object | undefined, applies: boolean]

const safeMethods = ['get', 'head', 'options']
const jsonError = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
const page = { 'text/html': {} }
const errorContents = { json: jsonError, html: page, auto: { ...jsonError, ...page } }
const invalidContent = { 'application/json': { schema: { $ref: '#/components/schemas/InvalidInput' } } }

/** Returns the operation of a route and a method in lower case. */
export function operationOf(
  route: DescribedRoute,
  method: string,
  id: string,
  names: PathNames,
  shared: Shared,
): Operation {
  const { record, schemas = {} } = route
  const reader = new Reader(route, id, shared)
  const middleware = record.middleware.split(',')
  const isSafe = safeMethods.includes(method)
  const csrf = !isSafe && middleware.some((name) => name === 'SVC_MwCsrf' || name === 'SVC_MwCsrfCheck')
  const security = securityOf(middleware, shared)
  const body = isSafe || schemas.body === undefined ? undefined : reader.body(schemas.body, csrf)
  const parameters = [...reader.path(names), ...reader.query(), ...(csrf ? [csrfParameter(shared)] : [])]
  const { summary = schemas.summary, description = schemas.description, deprecated } = record
  const area = areaOf(record)
  return {
    operationId: id,
    ...(area !== undefined && { tags: [area] }),
    ...(summary !== undefined && { summary }),
    ...(description !== undefined && { description }),
    ...(deprecated === true && { deprecated }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: body }),
    responses: { ...refusalsOf(record, middleware, csrf, reader.hasInput(isSafe)), ...reader.replies() },
    ...(security.length > 0 && { security: [Object.fromEntries(security.map((name) => [name, []]))] }),
  }
}

/** Returns the area of a route, by which operations are grouped: `task` of the name `task.list`, or of `/task/:id`. */
function areaOf({ name, url }: RouteRecord): string | undefined {
  return /^([^.]+)\.[^.]/.exec(name)?.[1] ?? /^\/([^:*/]+)/.exec(url)?.[1]
}

/** Reads the schemas of one route. Reports those that cannot be described, and describes them as any value. */
class Reader {
  readonly #route: DescribedRoute
  readonly #id: string
  readonly #shared: Shared

  constructor(route: DescribedRoute, id: string, shared: Shared) {
    this.#route = route
    this.#id = id
    this.#shared = shared
  }

  /** Whether input is checked that may be refused with 422. */
  hasInput(isSafe: boolean): boolean {
    const { query, body } = this.#route.schemas ?? {}
    return query !== undefined || (body !== undefined && !isSafe)
  }

  path(names: PathNames): object[] {
    const { pattern, schemas } = this.#route
    const declared = new Map(schemas?.params && propertiesOf(this.#read(schemas.params, 'params')))
    const rest = pattern.segments.find(({ kind }) => kind === 'rest')
    return names.map((name, at) => {
      const own = pattern.names[at] ?? name
      const isRest = rest !== undefined && at === names.length - 1
      const description = 'The rest of the path: it may contain slashes, and be empty.'
      const known = declared.get(own)
      const schema = known === undefined || isDeep(known) ? { type: 'string' } : withoutNull(known)
      return { name, in: 'path', required: true, ...(isRest && { description }), schema }
    })
  }

  query(): object[] {
    const { query } = this.#route.schemas ?? {}
    if (query === undefined) return []
    const schema = this.#read(query, 'query')
    const required = requiredOf(schema)
    return propertiesOf(schema).flatMap(([name, declared]) => {
      const member = withoutNull(declared)
      if (isDeep(member)) {
        this.#problem('query', `"${name}" has parts, which OpenAPI cannot describe as a parameter`)
        return []
      }
      // An unsent checkbox is false, and an unsent list is empty.
      const isRequired = required.includes(name) && mustBeSent(member)
      return [{ name, in: 'query', ...(isRequired && { required: true }), schema: member }]
    })
  }

  /** A body of flat members may be a form, one with files must be. */
  body(schema: unknown, csrf: boolean): object {
    const json = this.#read(schema, 'body')
    const members = propertiesOf(json)
    const hasFiles = members.some(([, member]) => isFile(member))
    const isForm = members.length > 0 && members.every(([, member]) => !isDeep(withoutNull(member)))
    const { csrfField } = this.#shared.names
    const properties = Object.fromEntries(members.map(([name, member]) => [name, withoutNull(member)]))
    const required = requiredOf(json).filter((name) => mustBeSent(properties[String(name)] ?? {}))
    const token = { type: 'string', description: 'The CSRF token, unless the header field has it.' }
    const form = {
      type: 'object',
      properties: { ...properties, ...(csrf && { [csrfField]: token }) },
      ...(required.length > 0 && { required }),
    }
    return {
      required: true,
      content: {
        ...(!hasFiles && { 'application/json': { schema: this.#placed(json, 'body') } }),
        ...(isForm && { [hasFiles ? 'multipart/form-data' : 'application/x-www-form-urlencoded']: { schema: form } }),
      },
    }
  }

  /** The replies below 400, and those that the action declares. */
  replies(): Record<string, object> {
    const { record, schemas, servesSocketsOnly } = this.#route
    if (servesSocketsOnly) return { 101: { description: 'Switches to a WebSocket' } }
    const answers = [...answersOf(schemas ?? {})].map(([status, content]): [string, object] => {
      const description = STATUS_CODES[status] ?? 'The reply of the action'
      if (content === null) return [String(status), { description }]
      const schema = this.#placed(this.#read(content, `answer ${status}`), `answer.${status}`)
      return [String(status), { description, content: { 'application/json': { schema } } }]
    })
    if (answers.length > 0) return Object.fromEntries(answers)
    const isView = parseAction(record.action).kind === 'view'
    if (isView) return { 200: { description: 'A page', content: page } }
    return { '2XX': { description: 'The reply of the action', content: { '*/*': {} } } }
  }

  #read(schema: unknown, what: string): JsonSchema {
    try {
      return jsonSchemaFrom(schema, what.startsWith('answer') ? 'output' : 'input')
    } catch (error) {
      this.#problem(what, `has no JSON Schema: ${reasonOf(error)}`)
      return {}
    }
  }

  /** A schema with references becomes a component, since they are resolved from the root of the document. */
  #placed(schema: JsonSchema, part: string): JsonSchema {
    if (!hasReferences(schema)) return schema
    const name = `${this.#id}.${part}`.replace(/[^\w.-]/g, '_')
    this.#shared.schemas[name] = movedTo(`/components/schemas/${name}`, schema)
    return { $ref: `#/components/schemas/${name}` }
  }

  #problem(what: string, text: string): void {
    this.#shared.problem(`route "${this.#route.record.name}": ${what} ${text}`)
  }
}

/** Adds the security schemes of a route's middleware, and returns their names. */
function securityOf(middleware: readonly string[], { names, security }: Shared): string[] {
  const used: string[] = []
  if (middleware.includes('SVC_MwIsAuth')) {
    security['session'] = { type: 'apiKey', in: 'cookie', name: names.sessionCookie }
    used.push('session')
  }
  if (middleware.includes('SVC_MwJwt')) {
    security['bearer'] = { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' }
    used.push('bearer')
  }
  return used
}

/** The replies of middleware and server that refuse a request. Their own are JSON in every case. */
function refusalsOf(
  { error_format: format = 'auto' }: RouteRecord,
  middleware: readonly string[],
  csrf: boolean,
  hasInput: boolean,
): Record<string, object> {
  const isPage = format !== 'json'
  const uses = (name: string): boolean => middleware.includes(name)
  const refusals: readonly Refusal[] = [
    [302, 'To the sign-in, for a page', undefined, isPage && uses('SVC_MwIsAuth')],
    [303, 'Back to the page of a form, for wrong input', undefined, isPage && uses('SVC_MwSession') && hasInput],
    [401, 'Nobody is signed in', errorContents[format], uses('SVC_MwIsAuth')],
    [401, 'The token is missing or wrong', jsonError, uses('SVC_MwJwt')],
    [403, 'The CSRF token is missing or wrong', jsonError, csrf],
    [422, 'Wrong input', isPage ? { ...invalidContent, ...page } : invalidContent, hasInput],
    [429, 'Too many requests', errorContents[format], middleware.some((name) => name.startsWith('SVC_MwLimit'))],
    ['default', 'An error', errorContents[format], true],
  ]
  const applying = refusals.filter(([, , , applies]) => applies)
  const responses = applying.map(([status, description, content]): [number | 'default', object] => {
    return [status, content === undefined ? { description } : { description, content }]
  })
  return Object.fromEntries(responses)
}

function csrfParameter({ names }: Shared): object {
  const description = 'The CSRF token, unless a form has it.'
  return { name: names.csrfHeader, in: 'header', description, schema: { type: 'string' } }
}

/**
 * Whether the inputs of a form have names of parts: `address.city`, `lines.0.name`. The schema of a reference may have
 * parts too, and a reference of another library would not hold outside of its schema.
 */
function isDeep(schema: JsonSchema): boolean {
  if (hasReferences(schema)) return true
  const items = schema['items'] as JsonSchema | undefined
  return schema['type'] === 'object' || (items !== undefined && ['object', 'array'].includes(String(items['type'])))
}

/** Whether a form without this member is wrong. */
function mustBeSent({ type, minItems = 0 }: JsonSchema): boolean {
  return type !== 'boolean' && !(type === 'array' && minItems === 0)
}

function isFile(schema: JsonSchema): boolean {
  const items = schema['items'] as JsonSchema | undefined
  return 'contentMediaType' in schema || (items !== undefined && 'contentMediaType' in items)
}
