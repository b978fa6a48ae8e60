/**
 * The work of every parser grows linearly with its input. Each row has a hostile input for a parser: one that repeatedly
 * reaches the point where it could search again, copy again or compare with everything before.
 */
import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { differences, initialState, nextState } from '../../lib/control/desired-state.ts'
import { readRouteFiles } from '../../lib/application/route-files.ts'
import { jsonText } from '../../lib/base/json-text.ts'
import { mayBeSecret } from '../../lib/base/secret-name.ts'
import { hasToken } from '../../lib/base/token.ts'
import { addressCalls } from '../../lib/commands/address-calls.ts'
import { assembleConfig } from '../../lib/config/assemble.ts'
import { editConfig } from '../../lib/config/save.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import type { CoreContext } from '../../lib/http/context.ts'
import { createClientAddress } from '../../lib/http/client-address.ts'
import { codingFor } from '../../lib/http/compress.ts'
import { parseCookies, readCookie } from '../../lib/http/cookie.ts'
import { wantsJson } from '../../lib/http/error-reply.ts'
import { escapeHtml } from '../../lib/http/escape-html.ts'
import { Form, type FormFile } from '../../lib/http/form.ts'
import { fileOf, noMove } from '../support/form-file.ts'
import { HeaderList } from '../../lib/http/header-list.ts'
import { parseAuthority } from '../../lib/http/host.ts'
import { parseJson } from '../../lib/http/json.ts'
import { MultipartForm } from '../../lib/http/multipart-form.ts'
import { createOriginCheck, originKey } from '../../lib/http/origin.ts'
import { parseParameters } from '../../lib/http/parameters.ts'
import { parsePartHeader } from '../../lib/http/part-header.ts'
import { parseUrlencoded } from '../../lib/http/urlencoded.ts'
import { importSpecifiers } from '../../lib/modules/import-specifiers.ts'
import { explainJson, readJson } from '../../lib/json/json-map.ts'
import { verifyJws } from '../../lib/jwt/token.ts'
import { Buckets } from '../../lib/protection/buckets.ts'
import { fields } from '../../lib/validation/fields.ts'
import { inputOf, nestInput } from '../../lib/validation/form.ts'
import { readSent } from '../../lib/validation/sent-input.ts'
import { escapeControls, jsonString } from '../../lib/log/line.ts'
import { ErrorGroups } from '../../lib/log/error-groups.ts'
import { stackLines } from '../../lib/log/stack.ts'
import { ReplyParser } from '../../lib/redis/resp.ts'
import { buildPath, canonicalPath, parsePattern } from '../../lib/routing/pattern.ts'
import { Registry } from '../../lib/routing/registry.ts'
import { evaluatePreconditions, requestedRange } from '../../lib/static/conditional.ts'
import { staticPath } from '../../lib/static/static-path.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import { fromFileText, toFileText } from '../../lib/session-stores/session-file.ts'
import { compile } from '../../lib/views/compile.ts'
import { growthOf, isLinear, type Growing } from './growth-support.ts'
import { route } from '../routing/routes.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { clientFrame } from '../websocket/frames.ts'
import { read as readFrames } from '../websocket/reading.ts'

/** Bytes of a header field: four times what a request may have, since quadratic work on less may be short. */
const mostHeader = 64_000
/** Bytes of a body. */
const mostBody = 250_000

/** Several texts with an index each, joined. */
function many(count: number, text: (at: number) => string, separator = ''): string {
  return Array.from({ length: count }, (_, at) => text(at)).join(separator)
}

/** A row whose input is a text made of a repeated part. */
function texts(name: string, size: number, part: string | ((at: number) => string), work: (text: string) => unknown): Growing {
  return {
    name,
    size,
    prepare(bytes) {
      const first = typeof part === 'string' ? part : part(0)
      const text = Buffer.from(many(bytes / first.length, typeof part === 'string' ? () => part : part)).toString()
      return () => work(text)
    },
  }
}

/** Runs work that may refuse its input. */
function tried(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}

/** The pieces of an input, one by one. */
function pieces(bytes: Buffer, length = 1): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) => bytes.subarray(at * length, (at + 1) * length))
}

const f = fields
const text = f.text().optional()
const rows = f.list(f.object({ tags: f.list(f.object({ t: text })) }))
const file = (name: string): FormFile => fileOf({ name, filename: 'x.png', type: 'image/png', size: 1, bytes: Buffer.of(0) })

/** A form of text fields, and one of files, read by a schema. */
function forms(name: string, schema: object, field: (at: number) => string, of: 'text' | 'file' = 'text'): Growing {
  const known = fields(schema)
  return {
    name: `fields: ${name}`,
    size: of === 'text' ? 10_000 : 1000,
    prepare(count) {
      const names = Array.from({ length: count }, (_, at) => field(at))
      const values = new Map<string, string[]>()
      for (const each of of === 'text' ? names : []) values.set(each, [...(values.get(each) ?? []), 'x'])
      const form = new Form(values, of === 'file' ? names.map(file) : [])
      return () => {
        known.read(undefined, form)
        const find = nestInput(inputOf(form, known.inputs, '_csrf'))
        for (const name of Object.keys(schema)) find(name)
      }
    },
  }
}

/** JSON, read by a schema. */
function bodies(name: string, schema: object, value: (count: number) => object): Growing {
  const known = fields(schema)
  return {
    name: `fields, JSON: ${name}`,
    size: 20_000,
    prepare(count) {
      const body = value(count)
      return () => known.read(body)
    },
  }
}

/** A query, read by a schema. */
function queries(name: string, schema: object, part: string | ((at: number) => string)): Growing {
  const known = fields(schema)
  return texts(`fields, query: ${name}`, mostHeader, part, async (value) => {
    const sent = await readSent({ query: new URLSearchParams(value) } as CoreContext, 'query') // It reads nothing else.
    return 'form' in sent && known.read(undefined, sent.form)
  })
}

const list = (count: number, item: unknown): unknown[] => Array.from({ length: count }, () => item)
const schemas: readonly Growing[] = [
  forms('a list of objects with a list of objects', { lines: rows }, (at) => `lines.${at}.tags.0.t`),
  forms('one row with many rows', { lines: rows }, (at) => `lines.0.tags.${at}.t`),
  forms('a list with a small max', { lines: f.list(f.object({ tags: f.list(f.object({ t: text })) }), { max: 3 }) }, (at) => `lines.${at}.tags.0.t`),
  forms('lists of lists of lists', { a: f.list(f.list(f.list(f.text()))) }, (at) => `a.${at}.0.0`),
  forms('a list of texts', { a: f.list(f.text(), { max: 10_000 }) }, () => 'a'),
  forms('a list of objects of texts', { a: f.list(f.object({ b: text, c: f.integer().optional() }), { max: 10_000 }) }, (at) => `a.${at}.b`),
  forms('an object', { a: f.object({ b: f.object({ c: text }) }) }, (at) => `a.b.c${at}`),
  forms('unknown names', { a: text }, (at) => `f${at}.0.1.2.3`),
  forms('a text, a choice, a number, a boolean, a date, sent many times', { a: f.text(), b: f.choice('x'), c: f.number(), d: f.boolean(), e: f.date() }, (at) => 'abcde'[at % 5] as string),
  forms('wrong emails and urls in lists', { a: f.list(f.object({ b: f.email(), c: f.url() }), { max: 10_000 }) }, (at) => `a.${at}.b`),
  forms('a list of files', { a: f.list(f.file()) }, () => 'a', 'file'),
  forms('a list of objects with a file', { a: f.list(f.object({ b: f.file() })) }, (at) => `a.${at}.b`, 'file'),
  forms('a list of objects with a list of files', { a: f.list(f.object({ b: f.list(f.file()) })) }, (at) => `a.${at}.b`, 'file'),
  bodies('a list of objects with lists', { a: f.list(f.object({ b: f.list(f.text()) }), { max: 1e6 }) }, (count) => ({ a: list(count, { b: ['x'] }) })),
  bodies('a list of wrong values', { a: f.list(f.integer(), { max: 1e6 }) }, (count) => ({ a: list(count, 'x') })),
  bodies('unknown members', { a: text }, (count) => Object.fromEntries(list(count, 0).map((_, at) => [`f${at}`, at]))),
  queries('one name', { a: text }, 'a=1&'),
  queries('a list', { a: f.list(f.integer(), { max: 1e6 }) }, 'a=1&'),
  queries('many names', { a: text }, (at) => `f${at}.0=&`),
  texts('fields: a long text with line ends', mostBody, 'a\r\n', (value) => f({ a: f.text({ max: 10 }) }).read({ a: value })),
  texts('fields: a long email', mostBody, 'a.', (value) => f({ a: f.email({ max: 1e7 }) }).read({ a: `${value}@${value}` })),
  texts('fields: a long url', mostBody, 'a/', (value) => f({ a: f.url({ max: 1e7 }) }).read({ a: `http://${value}\u0001` })),
  texts('a name of many levels, nested', mostBody, 'a.', (value) => nestInput({ [`${value}a`]: 'x' })('a')),
  texts('many names of many levels, nested', mostBody, (at) => `a.b.c.${at},`, (value) => nestInput(Object.fromEntries(value.split(',').map((name) => [name, 'x'])))('a')),
  texts('the name of a field that may be a secret', mostBody, 'aB', mayBeSecret),
]

const plain = { header: () => undefined, secure: false, host: 'example.org' }
const headers: readonly Growing[] = [
  texts('cookies', mostHeader, (at) => `c${at % 10_000}=x; `, parseCookies),
  texts('cookies without =', mostHeader, 'a;', (value) => parseCookies(`${value}a=b`)),
  texts('cookies of spaces', mostHeader, ' ;', (value) => parseCookies(`${value}a=b`)),
  texts('cookies with encoded values', mostHeader, '%41', (value) => parseCookies(`a=${value}`)),
  texts('one cookie among many like it', mostHeader, 'SVCSID   ', (value) => readCookie(value, 'SVCSID')),
  texts('one cookie, named in values', mostHeader, 'a=SVCSID; ', (value) => readCookie(value, 'SVCSID')),
  texts('Content-Type', mostHeader, '; a', (value) => parseParameters(`text/html${value}`)),
  texts('Content-Type with parameters', mostHeader, (at) => `; a${10_000 + at}=b`, (value) => parseParameters(`text/html${value}`)),
  texts('Content-Type with a quoted value', mostHeader, '\\"', (value) => parseParameters(`text/html; a="${value}`)),
  texts('Accept', mostHeader, 'text/json ,', (accept) => wantsJson({ header: (name) => (name === 'accept' ? `${accept}x` : undefined) })),
  texts('Accept with spaces', mostHeader, 'application/json   ;   q=0   ', (accept) => wantsJson({ header: () => `${accept}x` })),
  texts('Accept-Encoding', mostHeader, (at) => `x${10_000 + at};q=0.5,`, (value) => codingFor(value, ['br', 'gzip'])),
  texts('If-None-Match', mostHeader, 'W/"a", ', (value) => evaluatePreconditions({ header: (name) => (name === 'if-none-match' ? value : undefined) }, { etag: '"b"', modifiedMs: 0 })),
  texts('Range', mostHeader, '1', (value) => requestedRange({ header: (name) => (name === 'range' ? `bytes=${value}-${value},` : undefined) }, { etag: '"b"', modifiedMs: 0 }, 10)),
  texts('Range with spaces', mostHeader, ' ', (value) => requestedRange({ header: (name) => (name === 'range' ? `b${value}y` : undefined) }, { etag: '"b"', modifiedMs: 0 }, 10)),
  texts('X-Forwarded-For', mostHeader, '127.0.0.1, ', (value) => createClientAddress(['127.0.0.0/8']).resolve('127.0.0.1', () => value)),
  texts('Host', mostHeader, 'a.', (value) => parseAuthority(`${value}!`)),
  texts('Origin', mostHeader, 'a.', (value) => originKey(`https://${value}!`)),
  texts('Referer', mostHeader, 'a/', (value) => createOriginCheck([])({ ...plain, header: (name) => (name === 'referer' ? `https://${value}` : undefined) })),
  texts('bearer token', mostHeader, 'ab.', (value) => verifyJws(value, ['HS256'], createSecretKey(Buffer.alloc(32)))),
  texts('path of a file', mostHeader, '/a%2e.', (value) => tried(() => staticPath(value))),
  texts('path', mostHeader, '/%41', canonicalPath),
  texts('Connection', mostHeader, 'upgrade2, ', (value) => hasToken(value, 'upgrade')),
  texts('query', mostHeader, 'a=1&', (value) => new URLSearchParams(value).getAll('a')),
]

const boundary = 'b'
const part = (name: string, value: string): string => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const wholeForm = (parts: string): Buffer => Buffer.from(`${parts}--${boundary}--\r\n`)

/** A multipart form that arrives in pieces. */
function uploads(name: string, size: number, body: (bytes: number) => Buffer, length = 1): Growing {
  return {
    name: `multipart: ${name}`,
    size,
    prepare(bytes) {
      const chunks = pieces(body(bytes), length)
      return async () => {
        const form = new MultipartForm(boundary, '/nowhere', noMove)
        for (const chunk of chunks) await form.write(chunk)
        return form.end()
      }
    },
  }
}

const other: readonly Growing[] = [
  uploads('a value in pieces of one byte', 30_000, (bytes) => wholeForm(part('a', 'x'.repeat(bytes)))),
  uploads('a value of line ends in pieces of one byte', 30_000, (bytes) => wholeForm(part('a', '\r\n-'.repeat(bytes / 3)))),
  uploads('a long header in pieces of one byte', 8000, (bytes) => wholeForm(part('a'.repeat(bytes), 'x'))),
  uploads('many parts', 1000, (parts) => wholeForm(many(parts, (at) => part(`f${at}`, 'x'))), 65_536),
  uploads('many parts of one name', 1000, (parts) => wholeForm(many(parts, () => part('f', 'x'))), 100),
  texts('header of a part', 8000, (at) => `x${1000 + at}: y\r\n`, (value) => tried(() => parsePartHeader(Buffer.from(`${value}Content-Disposition: form-data; name=a`)))),
  texts('file name of a part', 8000, '%22/', (value) => parsePartHeader(Buffer.from(`Content-Disposition: form-data; name=a; filename="${value}"`))),
  texts('urlencoded', 130_000, (at) => `f${10_000 + at}=%41+&`, (value) => tried(() => parseUrlencoded(Buffer.from(value)))),
  texts('urlencoded of one name', 40_000, 'a=1&', (value) => parseUrlencoded(Buffer.from(value))),
  texts('urlencoded with stray %', mostBody, '%%', (value) => parseUrlencoded(Buffer.from(value))),
  texts('JSON that is wrong at its end', mostBody, '{"a":[1,"\\n"]},\n', (value) => tried(() => parseJson(`[${value}]`, explainJson))),
  texts('JSON with many members', mostBody, (at) => `"f${100_000 + at}":1,`, (value) => readJson(`{${value}"x":1}`)),
  texts('JSON with long texts', mostBody, '\\u0041', (value) => readJson(`["${value}"]`)),
  texts('text of a page', mostBody, '<&', escapeHtml),
  texts('line of a log', mostBody, '\n\u0085', escapeControls),
  texts('line of a log as JSON', mostBody, '"\u0085', jsonString),
  texts('stack of an error', 100_000, '    at x (y:1:1)\n', (stack) => stackLines(Object.assign(new Error('x'), { stack }))),
  texts('value that is kept as JSON', mostBody, '"\n\u0085', (value) => jsonText({ a: [value] }, '')),
  {
    name: 'list that is kept as JSON',
    size: 50_000,
    prepare(count) {
      const value = list(count, { a: 1, b: [true] })
      return () => jsonText(value, '')
    },
  },
  texts('grouped error', mostBody, '"a\' `', (message) => new ErrorGroups().add({ timeMs: 0, level: 'error', module: 'error', message, stack: message })),
]

const tables: readonly Growing[] = [
  {
    name: 'route table',
    size: 8000,
    prepare(count) {
      const routes = Array.from({ length: count }, (_, at) => route(`GET /a/${at}/:x`))
      return () => new Registry<string>().replaceApplication(routes)
    },
  },
  {
    name: 'route table of one pattern',
    size: 8000,
    prepare(count) {
      const routes = Array.from({ length: count }, (_, at) => route('GET /a', `r${at}`))
      return () => new Registry<string>().replaceApplication(routes)
    },
  },
  {
    name: 'route file',
    size: 2000,
    prepare: (count) => routeFile(count, (at) => ({ name: `r${at}`, url: `/a/${at}`, action: 'a.js' })),
  },
  {
    name: 'route file whose records are wrong',
    size: 8000,
    prepare: (count) => routeFile(count, (at) => ({ name: `r${at}`, url: `a/${at}`, action: 'a.js', middlewares: 'x' })),
  },
  texts('pattern', 100_000, '/a', (value) => tried(() => parsePattern(value))),
  texts('literal of a pattern', 100_000, '%41', (value) => buildPath(parsePattern(`/${value}/:a`), { a: value })),
  {
    name: 'configuration with unknown keys',
    size: 1000,
    prepare(count) {
      const given = Object.fromEntries(Array.from({ length: count }, (_, at) => [`server.hosd${at}`, at]))
      return () => assembleConfig([given], {})
    },
  },
  texts('configuration that is changed', 100_000, '"x": {"y": [1]},\n', (value) => tried(() => editConfig(`{${value}"z": 1}`, { 'admin.user': 'a' }))),
  texts('addresses in a module', mostBody, "url('a', { b: ", addressCalls),
  texts('literals in a module', mostBody, '[/[`\\\'\n"${ url', addressCalls),
  texts('comments and imports in a module', mostBody, '/*/ import url, } {', addressCalls),
  texts('closed brackets in a module', mostBody, "url('a', {([", (source) => addressCalls(source + '])})'.repeat(source.length / 12))),
  texts('imports of a module', mostBody, "import a from 'b'; require(", importSpecifiers),
  {
    name: 'routes that were added while the server runs',
    size: 4000,
    prepare(count) {
      const routes = Array.from({ length: count }, (_, at) => ({ name: `r${at}`, at, record: { url: `/${at}` } }))
      const before = nextState(initialState, { routes })
      const after = nextState(before, { routes: routes.map((entry) => ({ ...entry, at: entry.at + 1 })) })
      return () => differences(before, after)
    },
  },
  {
    name: 'session file',
    size: 10_000,
    prepare(count) {
      const bytes = Buffer.from(toFileText(new Map(Array.from({ length: count }, (_, at) => [`key:${at}`, '"x"']))))
      return () => fromFileText(bytes)
    },
  },
  {
    name: 'header fields of a reply',
    size: 2000,
    prepare: (count) => () => {
      const made = new HeaderList()
      for (let at = 0; at < count; at += 1) made.append('Set-Cookie', `c${at}=x`)
      return made
    },
  },
]

function routeFile(count: number, record: (at: number) => object): () => unknown {
  const folder = join(temporaryFolder(), 'routes')
  mkdirSync(folder)
  const records = Array.from({ length: count }, (_, at) => record(at))
  writeFileSync(join(folder, 'a.json'), JSON.stringify(records, null, 2))
  return () => readRouteFiles(folder, { root: folder, middlewareKnown: () => true })
}

/** A view, parsed and compiled. */
function views(name: string, part: string, start = '', end = ''): Growing {
  return texts(`view: ${name}`, 20_000, part, (source) => tried(() => compile('/nowhere', 'a.html', () => start + source + end)))
}

/** Clients, sessions and events of one process, up to its limits. */
const stores: readonly Growing[] = [
  {
    name: 'events of a queue, all taken',
    size: 200_000,
    prepare: (count) => () => {
      const broker = new LocalBroker()
      const limits = { maxEvents: count, maxAgeMs: 3_600_000 }
      for (let at = 0; at < count; at += 1) broker.push('a', '1', limits)
      for (let at = 0; at < count; at += 1) broker.take('a')
    },
  },
  {
    name: 'events of a channel that is full',
    size: 200_000,
    prepare: (count) => () => {
      const broker = new LocalBroker()
      const limits = { maxEvents: Math.ceil(count / 2), maxAgeMs: 3_600_000 }
      for (let at = 0; at < count; at += 1) broker.publish('a', '1', limits)
    },
  },
  {
    name: 'clients of a limit that has no place for more',
    size: 20_000,
    prepare: (count) => () => {
      const buckets = new Buckets({ burst: 2, intervalMs: 1000 }, Math.ceil(count / 2))
      for (let at = 0; at < count; at += 1) buckets.take(`k${(at * 7919) % count}`)
    },
  },
  {
    name: 'sessions of a store that is full',
    size: 8000, // More outgrow V8's young generation, whose collections would count too.
    prepare: (count) => () => {
      const store = createMemoryStore({ max: Math.ceil(count / 2), onFull: () => {} })
      for (let at = 0; at < count; at += 1) void store.create(`id${at}`, new Map(), 1000)
      void store.sweep()
    },
  },
]

const pages: readonly Growing[] = [
  views('expressions', '{{ a.b }} x '),
  views('expressions on lines', '{{ a }}\n'),
  views('directives', '@if a\nx\n@endif\n'),
  views('words that are no directives', '@@a @media x @a '),
  views('marks in a text', "{{ '}}' }} "),
  views('text', 'x\n'),
]

/** Replies of the engine that arrive in pieces. */
function replies(name: string, size: number, reply: (bytes: number) => string, length = 1): Growing {
  return {
    name: `engine: ${name}`,
    size,
    prepare(bytes) {
      const chunks = pieces(Buffer.from(reply(bytes)), length)
      return () => {
        const parser = new ReplyParser(() => {})
        for (const chunk of chunks) parser.read(chunk)
      }
    },
  }
}

/** Frames of a client that arrive in pieces. */
function frames(name: string, size: number, bytes: (size: number) => Buffer, length = 1): Growing {
  return {
    name: `WebSocket: ${name}`,
    size,
    prepare(count) {
      const chunks = pieces(bytes(count), length)
      return () => readFrames(chunks, 1_000_000)
    },
  }
}

const streams: readonly Growing[] = [
  replies('a line in pieces of one byte', 60_000, (bytes) => `+${'x'.repeat(bytes)}\r\n`),
  replies('a bulk string in pieces of one byte', 100_000, (bytes) => `$${Math.round(bytes)}\r\n${'x'.repeat(Math.round(bytes))}\r\n`),
  replies('a long list in pieces', 50_000, (items) => `*${Math.round(items)}\r\n${':1\r\n'.repeat(Math.round(items))}`, 7),
  replies('lists in lists', 50_000, (items) => `${'*1\r\n'.repeat(items)}:1\r\n`, 1000),
  frames('a message in pieces of one byte', 50_000, (bytes) => clientFrame({ opcode: 1, payload: 'x'.repeat(bytes) })),
  frames('fragments', 50_000, (bytes) => Buffer.concat([clientFrame({ opcode: 1, final: false }), ...list(bytes / 7, clientFrame({ opcode: 0, final: false, payload: 'x' })) as Buffer[]]), 1000),
  frames('pings', 50_000, (bytes) => Buffer.concat(list(bytes / 6, clientFrame({ opcode: 9 })) as Buffer[]), 65_536),
]

describe('the work of a parser', () => {
  it('is measured well enough to distinguish quadratic from linear work', async () => {
    // No method of arrays: some processors compare so many elements at once that a small input costs only its calls.
    const quadratic = (values: readonly number[]) => () => {
      let sum = 0
      for (let at = 0; at < values.length; at += 1) for (let before = 0; before < at; before += 1) sum = (sum + values[before]! * at) | 0
      return sum
    }
    const linear = (values: readonly number[]) => () => JSON.stringify(values).length
    const numbers = (size: number): number[] => Array.from({ length: size }, (_, at) => at)
    assert.equal(isLinear(await growthOf({ name: '', size: 10_000, prepare: (size) => quadratic(numbers(size)) })), false)
    assert.equal(isLinear(await growthOf({ name: '', size: 10_000, prepare: (size) => linear(numbers(size)) })), true)
  })

  for (const row of [...schemas, ...headers, ...other, ...tables, ...stores, ...pages, ...streams]) {
    it(`grows no faster than its input: ${row.name}`, async () => {
      const growth = await growthOf(row)
      assert.ok(isLinear(growth), `64 times the input takes ${growth.toFixed(1)} times as long`)
    })
  }
})
