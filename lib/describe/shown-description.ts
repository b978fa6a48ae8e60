/**
 * The operations of a description in words, for the page of the panel that shows them.
 */
import { SchemaReader, type Member } from './schema-words.ts'

/** The content of the page. */
export interface ShownDescription {
  readonly info: { readonly title: string; readonly version: string }
  /** In the order of their areas. */
  readonly operations: readonly ShownOperation[]
  /** The schemas that the document names. */
  readonly schemas: readonly { readonly name: string; readonly members: readonly Member[] }[]
  readonly hasBearer: boolean
}

/** An operation of a description. */
export interface ShownOperation {
  /** Its tag, or ''. */
  readonly area: string
  /** The text that the filter searches. */
  readonly text: string
  /** Returns what the page shows of it. */
  readonly row: () => object
}

type Content = Readonly<Record<string, { readonly schema?: unknown }>>

/** The used part of an Operation Object (OpenAPI 3.1, section 4.8.10). */
interface Operation {
  readonly operationId: string
  readonly tags?: readonly string[]
  readonly summary?: string
  readonly description?: string
  readonly deprecated?: boolean
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>
  readonly security?: readonly Readonly<Record<string, unknown>>[]
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema: unknown
}

/** The used part of a description's document. */
interface Document {
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: object; readonly securitySchemes?: object }
}

/** An operation with its place. */
interface Located {
  readonly method: string
  readonly path: string
  readonly area: string
  readonly operation: Operation
}

/** Puts a description into words. */
export function shownDescription(description: object): ShownDescription {
  const document = description as Document // As `describeApplication` makes it.
  const { info, paths, components } = document
  const reader = new SchemaReader(document)
  const located = Object.entries(paths).flatMap(([path, item]) => {
    return Object.entries(item).map(([method, operation]): Located => {
      return { method: method.toUpperCase(), path, area: operation.tags?.[0] ?? '', operation }
    })
  })
  const areas = [...new Set(located.map(({ area }) => area))]
  const grouped = areas.flatMap((area) => located.filter((each) => each.area === area))
  return {
    info,
    operations: grouped.map((each) => ({ area: each.area, text: textOf(each), row: () => rowOf(each, reader) })),
    schemas: Object.entries(components.schemas).map(([name, schema]) => ({ name, members: reader.members(schema) })),
    hasBearer: components.securitySchemes !== undefined && 'bearer' in components.securitySchemes,
  }
}

/** The fields that the filter searches. */
function textOf({ method, path, operation: { operationId, summary = '', description = '' } }: Located): string {
  return `${method} ${path}\n${operationId}\n${summary}\n${description}`
}

/** An operation as the page shows it. */
function rowOf({ method, path, operation }: Located, reader: SchemaReader) {
  const { parameters = [], requestBody, responses, security = [] } = operation
  const replies = Object.entries(responses).sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    ...operation,
    method,
    path,
    schemes: security.flatMap((schemes) => Object.keys(schemes)),
    parameters: parameters.map((parameter) => parameterOf(parameter, reader)),
    csrfHeader: parameters.find((parameter) => parameter.in === 'header')?.name,
    bodies: Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => bodyOf(type, schema, reader)),
    replies: replies.map(([status, { description, content = {} }]) => {
      return { status, description, contents: Object.entries(content).map((entry) => contentOf(entry, reader)) }
    }),
    untried: untriedReason(method, responses),
  }
}

/** Returns why the page has no form for an operation; '' if it has one. */
function untriedReason(method: string, responses: Operation['responses']): string {
  if (method === 'TRACE') return 'Browsers do not send TRACE.'
  return '101' in responses ? 'This page opens no WebSockets.' : ''
}

function parameterOf(parameter: Parameter, reader: SchemaReader) {
  const { name, required = false, description, schema } = parameter
  const words = reader.inWords(schema)
  const isList = Array.isArray(reader.example(schema))
  return { name, required, isList, in: parameter.in, ...words, description: description ?? words.description }
}

/** A body with what the page sends: a text of JSON, or the fields of a form. */
function bodyOf(type: string, schema: unknown, reader: SchemaReader) {
  const members = reader.members(schema)
  if (type === 'application/json') {
    return { type, members, text: JSON.stringify(reader.example(schema), null, 2), fields: [] }
  }
  const fields = reader.properties(schema).map(([name, member]) => {
    const words = reader.inWords(member)
    const value = reader.example(member)
    const isFile = words.type.includes('file (')
    return { name, ...words, isFile, isList: Array.isArray(value), value: isFile || Array.isArray(value) ? '' : value }
  })
  return { type, members, text: '', fields }
}

/** Returns the content of a reply. Links to a named schema instead of repeating it, since most replies share one. */
function contentOf([type, { schema }]: readonly [string, { readonly schema?: unknown }], reader: SchemaReader) {
  const reference = (schema as { readonly $ref?: string } | undefined)?.$ref
  const name = reference?.replace('#/components/schemas/', '')
  const members: readonly Member[] = schema === undefined || name !== undefined ? [] : reader.members(schema)
  return { type, name, members }
}
