/** `docs/openapi.json`, read once, with access to its parts. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { root } from './markdown.ts'

/** A body of one type. */
export interface Media {
  readonly schema: { readonly $ref?: string; readonly type?: string; readonly items?: { readonly $ref: string } }
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

/** Bodies by their types. */
export type Content = Readonly<Record<string, Media>>

/** A response, or a reference to it. */
export interface DocumentedAnswer {
  readonly $ref?: string
  readonly content?: Content
  readonly headers?: Readonly<Record<string, unknown>>
}

/** A request and its responses. */
export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly security: readonly unknown[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, DocumentedAnswer>>
}

interface OpenApiDocument {
  readonly info: { readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly responses: Readonly<Record<string, DocumentedAnswer>>
    readonly schemas: Readonly<Record<string, unknown>>
  }
}

export const document = JSON.parse(readFileSync(new URL('docs/openapi.json', root), 'utf8')) as OpenApiDocument

/** Every operation with its method and path. */
export const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ key: `${method.toUpperCase()} ${path}`, operation })),
)

/** The operation of an endpoint of the table. */
export function operationOf(name: string): Operation {
  const found = operations.find(({ operation }) => operation.operationId === name)
  assert.ok(found, name)
  return found.operation
}

/** The response that a reference leads to. */
export function resolve(answer: DocumentedAnswer): DocumentedAnswer {
  if (answer.$ref === undefined) return answer
  const found = document.components.responses[answer.$ref.replace('#/components/responses/', '')]
  assert.ok(found, answer.$ref)
  return found
}

/** The bodies of all requests and responses, except HTML and plain text. */
export function jsonBodies(): Media[] {
  const answers = operations.flatMap(({ operation }) => Object.values(operation.responses)).map(resolve)
  const requests = operations.flatMap(({ operation }) => operation.requestBody ?? [])
  const contents: readonly Content[] = [...answers, ...requests].map(({ content = {} }) => content)
  return contents.flatMap((content) =>
    Object.entries(content).flatMap(([type, media]) => (type.startsWith('text/') ? [] : [media])),
  )
}

/** The examples of a body. */
export function examplesOf(media: Media): readonly unknown[] {
  return 'example' in media ? [media.example] : Object.values(media.examples ?? {}).map(({ value }) => value)
}
