/**
 * The OpenAPI 3.1 description of an application: its routes, with what their actions declare. It comes from the routes
 * in use, so nothing has to be kept up to date by hand. Hidden routes and those of the panel are left out.
 */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { servesSocketsOnly } from '../application/action.ts'
import { isObject } from '../base/object.ts'
import { csrfTable } from '../csrf/check.ts'
import type { Pattern } from '../routing/pattern.ts'
import type { Route } from '../routing/route.ts'
import { sessionTable } from '../session/group.ts'
import { schemasOf } from '../validation/action.ts'
import { operationOf } from './operation.ts'
import type { DescribedRoute, MiddlewareNames, Operation, Shared } from './operation.ts'
import { pathTemplate } from './path-template.ts'
import { shownDescription, type ShownDescription } from './shown-description.ts'

/** A description, and what is missing from it. */
export interface Description {
  readonly document: object
  /** Returns the document for clients that see the server below a prefix. */
  below(prefix: string): object
  readonly problems: readonly string[]
  /** Puts the document into words. */
  readonly shown: () => ShownDescription
}

/** Where the description comes from. */
interface Sources {
  /** Of the application and of the panel, in order of registration. */
  readonly routes: readonly Route<unknown>[]
  /** The folder of the configuration: its `package.json` may have a name and a version. */
  readonly folder: string
  /** `setup` of the middleware configuration. */
  readonly setup: Readonly<Record<string, unknown>>
}

/** A path with the names of its parameters and its operations by method. */
interface PathItem {
  readonly path: string
  readonly names: readonly string[]
  readonly operations: Record<string, Operation>
}

/** The methods that OpenAPI 3.1 knows (section 4.8.9). */
const describedMethods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']
const schemas = {
  Error: {
    type: 'object',
    required: ['error'],
    properties: {
      error: { type: 'string', description: 'A stable code for programs.' },
      detail: { type: 'string', description: 'For people. Missing from status 500 on.' },
      reason: { type: 'string', description: 'Why a CSRF token was refused, instead of a detail.' },
    },
  },
  InvalidInput: {
    type: 'object',
    required: ['error'],
    properties: {
      error: { type: 'string' },
      errors: {
        type: 'object',
        description: 'Error texts by path.',
        additionalProperties: { type: 'array', items: { type: 'string' } },
      },
      detail: { type: 'string' },
    },
  },
}

/**
 * Makes a function that describes the routes in use, again only when they or their actions have changed: a route may
 * serve the description to everyone.
 */
export function createDescriber(sources: () => Sources): () => Description {
  let known: readonly unknown[] = []
  let description: Description | undefined
  return () => {
    const current = sources()
    const now = [current.setup, ...current.routes.flatMap((route) => [route, route.action?.()])]
    if (description === undefined || now.length !== known.length || now.some((one, at) => one !== known[at])) {
      description = describeApplication(current)
      known = now
    }
    return description
  }
}

/** Describes the routes of an application. */
export function describeApplication({ routes, folder, setup }: Sources): Description {
  const problems: string[] = []
  const shared: Shared = {
    names: namesFrom(setup),
    schemas: { ...schemas },
    security: {},
    problem: (text) => problems.push(text),
  }
  const items = new Map<string, PathItem>()
  const ids = new Set<string>()
  const shown = routes.filter(({ system, record }) => !system && record.hidden !== true)
  for (const route of shown) addRoute(route, items, ids, shared)
  const operations = [...items.values()].flatMap((item) => Object.values(item.operations))
  const areas = new Set(operations.flatMap(({ tags = [] }) => tags))
  const { security } = shared
  const document = {
    openapi: '3.1.1',
    info: infoOf(folder),
    servers: [{ url: '/' }],
    ...(areas.size > 0 && { tags: [...areas].map((name) => ({ name })) }),
    paths: Object.fromEntries([...items.values()].map((item) => [item.path, item.operations])),
    components: { schemas: shared.schemas, ...(Object.keys(security).length > 0 && { securitySchemes: security }) },
  }
  return {
    document,
    below: (prefix) => (prefix === '' ? document : { ...document, servers: [{ url: prefix }] }),
    problems,
    shown: () => shownDescription(document),
  }
}

/** Adds the operations of a route. Of two for one path and method the first counts, as it does for requests. */
function addRoute(route: Route<unknown>, items: Map<string, PathItem>, ids: Set<string>, shared: Shared): void {
  const { record, pattern, action } = route
  const run = action?.()
  const described = { record, pattern, schemas: schemasOf(run), servesSocketsOnly: servesSocketsOnly(run) }
  const methods = methodsOf(described)
  const item = itemOf(pattern, items)
  for (const method of methods) {
    if (!describedMethods.includes(method)) {
      shared.problem(`route "${record.name}": OpenAPI 3.1 has no method ${method.toUpperCase()}`)
    } else if (item.operations[method] !== undefined) {
      shared.problem(`route "${record.name}": ${method.toUpperCase()} ${item.path} is described by an earlier route`)
    } else {
      const id = freeId(methods.length === 1 ? record.name : `${record.name}.${method}`, ids)
      item.operations[method] = operationOf(described, method, id, item.names, shared)
    }
  }
}

/** Returns the methods in lower case. A route for every method is shown as GET, and as POST if it takes a body. */
function methodsOf({ record: { method }, schemas }: DescribedRoute): readonly string[] {
  if (method !== '*') return method.toLowerCase().split(',')
  return schemas?.body === undefined ? ['get'] : ['get', 'post']
}

/** Returns the item of a pattern. Patterns that differ only in the names of parameters are one path in OpenAPI. */
function itemOf(pattern: Pattern, items: Map<string, PathItem>): PathItem {
  const shape = pathTemplate(pattern, () => '{}')
  const known = items.get(shape)
  if (known !== undefined) return known
  const item = { path: pathTemplate(pattern, (name) => `{${name}}`), names: pattern.names, operations: {} }
  items.set(shape, item)
  return item
}

/** Returns an id that no other operation has, and adds it. */
function freeId(wanted: string, ids: Set<string>): string {
  let id = wanted
  for (let count = 2; ids.has(id); count += 1) id = `${wanted}.${count}`
  ids.add(id)
  return id
}

/** The title and version of the application, from its `package.json` if it has one. */
function infoOf(folder: string): { readonly title: string; readonly version: string } {
  const { name, version } = readPackage(folder)
  return {
    title: typeof name === 'string' ? name : basename(folder),
    version: typeof version === 'string' ? version : '0.0.0',
  }
}

function readPackage(folder: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return isObject(value) ? value : {}
  } catch {
    return {} // An application needs none, and the server does not read it otherwise.
  }
}

function namesFrom({ csrf, session }: Sources['setup']): MiddlewareNames {
  const setting = (group: unknown, key: string, fallback: string): string => {
    const value = isObject(group) ? group[key] : undefined
    return typeof value === 'string' ? value : fallback
  }
  return {
    csrfHeader: setting(csrf, 'header', csrfTable.header.default),
    csrfField: setting(csrf, 'field', csrfTable.field.default),
    sessionCookie: setting(session, 'cookie', sessionTable.cookie.default),
  }
}
