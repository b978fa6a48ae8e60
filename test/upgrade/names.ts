/**
 * The names that docs/versions.md promises to keep within a major version, one a line: keys with their defaults, members of
 * records, codes, metrics, the JSON of the panel, types, commands. They are read from the generated documents and from
 * `lib/svc.d.ts`, which other tests hold to the code.
 *
 * `node test/run.js --exec test/upgrade/names.ts` adds those of this checkout to `names.txt`, as a release does.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { helpText } from '../../lib/cli/options.ts'
import { root } from '../support/launch.ts'
import { readPage, tableBelow } from '../support/markdown.ts'

/** The part of JSON Schema that the documents use. */
interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly $ref?: string
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly items?: JsonSchema
  readonly oneOf?: readonly JsonSchema[]
}

const file = fileURLToPath(new URL('names.txt', import.meta.url))

/** Returns the names of earlier releases with this major version. */
export function releasedNames(): string[] {
  return readFileSync(file, 'utf8').trimEnd().split('\n')
}

/** Returns the names of this checkout, sorted. */
export function currentNames(): string[] {
  const { paths, components } = readJson('openapi.json') as {
    paths: Readonly<Record<string, object>>
    components: { schemas: Readonly<Record<string, JsonSchema>> }
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `panel ${method.toUpperCase()} ${path}`),
  )
  // The pages of the panel read MonitorData; the others are Node's or those of OpenAPI.
  const bodies = Object.entries(components.schemas).filter(([name]) => !/^(?:Monitor|Profile$|OpenApi)/.test(name))
  const codes = tableBelow(readPage('docs/errors.md'), '## Codes').map(([status, code]) => `error ${status} ${code}`)
  const metrics = tableBelow(readPage('docs/admin.md'), '### Prometheus').flatMap(([name, kind, labels = '']) => {
    return [kind, ...labels.split(', ').filter((label) => label !== '')].map((word) => `metric ${name} ${word}`)
  })
  const words = [...helpText.matchAll(/^(?:Usage:| {6}) svc \[?(\w+)/gm)].map(([, word]) => `command ${word}`)
  const options = [...helpText.matchAll(/--[a-z-]+/g)].map(([option]) => `option ${option}`)
  const middleware = readPage('docs/routes-and-actions.md').prose.matchAll(/SVC_Mw\w+/g)
  const names = [
    ...membersOf('key', readJson('svc.schema.json') as JsonSchema),
    ...['routes', 'jobs'].flatMap((name) => membersOfFile(name)),
    ...[...middleware].map(([name]) => `middleware ${name}`),
    ...operations,
    ...bodies.flatMap(([name, schema]) => membersOf(`panel ${name}`, schema, true)),
    ...codes, ...metrics, ...words, ...options,
    ...declarations(readFileSync(join(root, 'lib/svc.d.ts'), 'utf8')),
  ]
  return [...new Set(names.map((name) => name.replaceAll('`', '').replace(/ +/g, ' ').trimEnd()))].sort()
}

function readJson(name: string): unknown {
  return JSON.parse(readFileSync(join(root, 'docs', name), 'utf8'))
}

function membersOfFile(name: string): string[] {
  const file = readJson(`schemas/${name}.schema.json`) as JsonSchema & { $defs: { record: JsonSchema } }
  return [...membersOf(name, file), ...membersOf(`${name} record`, file.$defs.record)]
}

/**
 * The members of a schema, with their defaults and choices.
 * @param isOutput with their types too: those of input may get wider
 */
function membersOf(of: string, { properties = {}, items, oneOf = [] }: JsonSchema, isOutput = false): string[] {
  const own = Object.entries(properties).flatMap(([name, schema]) => {
    const path = `${of}.${name}`
    const isText = of.endsWith('.messages') // The texts may change.
    const choices = (schema.enum ?? []).map((choice) => `${path} may be ${JSON.stringify(choice)}`)
    const preset = 'default' in schema && !isText ? `default ${JSON.stringify(schema.default)}` : ''
    return [`${path} ${isOutput ? typeOf(schema) : preset}`, ...choices, ...membersOf(path, schema, isOutput)]
  })
  const others = [...(items === undefined ? [] : [['[]', items] as const]), ...oneOf.map((schema) => ['', schema] as const)]
  return [...own, ...others.flatMap(([end, schema]) => membersOf(of + end, schema, isOutput))]
}

function typeOf({ type, $ref }: JsonSchema): string {
  return String(type ?? $ref?.replace(/.*\//, '') ?? '')
}

/** The exported names of the declarations, and the names of their members. */
function declarations(text: string): string[] {
  const names: string[] = []
  let declared = ''
  for (const line of text.replace(/\/\*\*[^]*?\*\//g, '').split('\n')) {
    const [, kind, name = ''] = /^ {2}(?:export )?(interface|class|type|const|function) (\w+)/.exec(line) ?? []
    const [, member] = /^ {4}(?:readonly )?(\w+)[?(:<]/.exec(line) ?? []
    if (kind !== undefined) names.push(`type ${(declared = name)}`)
    else if (member !== undefined) names.push(`type ${declared}.${member}`)
  }
  return names
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const names = [...new Set([...releasedNames(), ...currentNames()])].sort()
  writeFileSync(file, `${names.join('\n')}\n`)
}
