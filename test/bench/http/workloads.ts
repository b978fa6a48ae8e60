/**
 * What is measured: for each workload the request, the one answer that every server must give, and who takes part.
 *
 * Surprise: the header fields are those of svc. A server that cannot be told to send them is measured all the same, and
 * the difference is printed below its table.
 */
import { pageData, pageText } from './page.ts'
import { rowsOf } from './rows.ts'

/** A kind of request. */
export interface Workload {
  /** The option's word. */
  readonly name: string
  readonly title: string
  /** What bare and peers do for it; ends with a full stop. */
  readonly note: string
  /** Bare and svc first. */
  readonly servers: readonly string[]
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Header fields sent beside Host. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether `GET /begin` comes first: its cookies, and its token in the form's body, belong to the request. */
  readonly begins: boolean
  /** The fields of a form, beside its token; '' for none. */
  readonly form: string
  /** What the answer's body is compressed with; '' for nothing. `body` is what it is once read. */
  readonly coding: '' | 'gzip' | 'zstd'
  /** Whether it is asked over HTTPS. */
  readonly tls: boolean
  readonly status: number
  /** Beside Date, Connection, Keep-Alive and Content-Length. */
  readonly fields: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

/** The length of the static file. */
const photoBytes = 102_400
const jsonFields = { 'Content-Type': 'application/json; charset=utf-8' }
const plain = {
  method: 'GET',
  headers: {},
  begins: false,
  form: '',
  coding: '',
  tls: false,
  status: 200,
  fields: jsonFields,
} as const
const user = { path: '/users/42', body: '{"id":"42","name":"Ada"}' }

/** The file of the workload `static`: bytes that look like a picture's, the same each time. */
export const photo = Buffer.alloc(photoBytes).map((_, at) => (at * 2_654_435_761) >>> 24)

/** JSON of so many bytes that is sent compressed. */
function compressed(name: string, title: string, bytes: number, coding: 'gzip' | 'zstd'): Workload {
  return {
    ...plain,
    name,
    title,
    note:
      `Bare calls JSON.stringify, and ${coding === 'gzip' ? 'gzipSync' : 'zstdCompressSync'} at level 1. ` +
      'Fastify: @fastify/compress as it comes. ' +
      'A list of objects; the compressed lengths differ.',
    servers: ['bare', 'svc', 'fastify'],
    path: `/rows/${bytes}`,
    headers: { 'Accept-Encoding': coding },
    coding,
    fields: { Vary: 'Accept-Encoding', 'Content-Encoding': coding, ...jsonFields },
    body: JSON.stringify(rowsOf(bytes)),
  }
}

/** Every workload, in the order of the tables. */
export const workloads: readonly Workload[] = [
  {
    ...plain,
    name: 'text',
    title: 'Plain text',
    note: 'A constant text of 13 bytes.',
    servers: ['bare', 'svc', 'fastify', 'hono', 'koa', 'express'],
    path: '/text',
    fields: { 'Content-Type': 'text/plain; charset=utf-8' },
    body: 'Hello, World!',
  },
  {
    ...plain,
    ...user,
    name: 'json',
    title: 'JSON with one parameter',
    note:
      'Bare cuts the parameter from the URL and calls JSON.stringify. Fastify has a response schema. ' +
      '"svc, headers" and "svc, limit" have `SVC_MwHeaders` and `SVC_MwLimit` by address, which add header fields.',
    servers: ['bare', 'svc', 'svc, headers', 'svc, limit', 'fastify', 'fastify, logger', 'fastify, logger buffered', 'hono', 'koa', 'express'],
  },
  {
    ...plain,
    ...user,
    name: 'middlewares',
    title: 'JSON through five small middlewares',
    note:
      'Two read a header field, one takes the time, one counts, one sets a header field. ' +
      'Bare does none of it, but sends the field.',
    servers: ['bare', 'svc', 'fastify', 'hono', 'koa', 'express'],
    fields: { 'X-Frame-Options': 'DENY', ...jsonFields },
  },
  {
    ...plain,
    name: 'session',
    title: 'A session read from memory',
    note:
      'The client sends its session cookie. Bare answers constant bytes. ' +
      'Fastify: @fastify/session with its store in memory, `rolling` off.',
    servers: ['bare', 'svc', 'fastify'],
    path: '/session',
    begins: true,
    fields: { 'Cache-Control': 'private', ...jsonFields },
    body: '{"user":"Ada"}',
  },
  {
    ...plain,
    name: 'form',
    title: 'A CSRF-checked form post',
    note:
      'svc: `SVC_MwCsrfCheck`, a signed token and no session; "svc, session": `SVC_MwSession` and `SVC_MwCsrf`. ' +
      'Bare reads the body and answers constant bytes. Fastify: @fastify/formbody, and @fastify/csrf-protection with ' +
      'a cookie, which does not look at the origin.',
    servers: ['bare', 'svc', 'svc, session', 'fastify'],
    method: 'POST',
    path: '/form',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'Sec-Fetch-Site': 'same-origin' },
    begins: true,
    form: 'name=Ada&text=The+harbour+is+closed+until+noon',
    body: '{"thanks":"Ada"}',
  },
  {
    ...plain,
    name: 'validate',
    title: 'A validated form post of five fields',
    note:
      'svc: `ctx.validate`. Bare reads the body and answers constant bytes. Fastify: @fastify/formbody, and a JSON schema ' +
      'of the body. Both have a text, an address, a whole number, a date and a boolean, and send what they read as JSON.',
    servers: ['bare', 'svc', 'fastify'],
    method: 'POST',
    path: '/validated',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    form: 'title=The+harbour+is+closed&email=ada%40example.org&size=3&due=2024-02-29&done=true',
    body: '{"title":"The harbour is closed","email":"ada@example.org","size":3,"due":"2024-02-29","done":true}',
  },
  {
    ...plain,
    name: 'view',
    title: 'A view of 4 KiB with 20 expressions',
    note: 'Bare answers constant bytes. Fastify: @fastify/view with EJS, `production` on.',
    servers: ['bare', 'svc', 'fastify'],
    path: '/view',
    fields: { Vary: 'Accept-Encoding', 'Content-Type': 'text/html; charset=utf-8' },
    body: pageText,
  },
  {
    ...plain,
    name: 'static',
    title: 'A static file of 100 KiB',
    note:
      'A picture. Bare answers constant bytes. sirv with `dev` off and serve-static run on bare `node:http`; ' +
      'Fastify: @fastify/static.',
    servers: ['bare', 'svc', 'sirv', 'serve-static', 'fastify'],
    path: '/photo.jpg',
    fields: {
      'Content-Type': 'image/jpeg',
      'X-Content-Type-Options': 'nosniff',
      'Accept-Ranges': 'bytes',
      'Cache-Control': 'no-cache',
      ETag: '"0123456789012345678901"',
      'Last-Modified': 'Mon, 01 Jan 2024 00:00:00 GMT',
    },
    body: photo,
  },
  {
    ...plain,
    name: '404',
    title: '404',
    note: 'A path without a route, asked for as JSON.',
    servers: ['bare', 'svc', 'fastify', 'hono', 'koa', 'express'],
    path: '/nothing',
    headers: { Accept: 'application/json' },
    status: 404,
    body: '{"error":"not_found","detail":"Nothing is here: /nothing"}',
  },
  compressed('gzip-6k', 'JSON of 6 kB, compressed with gzip', 6000, 'gzip'),
  compressed('gzip-64k', 'JSON of 64 kB, compressed with gzip', 64_000, 'gzip'),
  compressed('zstd-6k', 'JSON of 6 kB, compressed with zstd', 6000, 'zstd'),
  compressed('zstd-64k', 'JSON of 64 kB, compressed with zstd', 64_000, 'zstd'),
  {
    ...plain,
    ...user,
    name: 'tls',
    title: 'JSON over HTTPS',
    note: 'Keep-alive connections, a certificate with a P-256 key, the TLS version that Node and the load agree on.',
    servers: ['bare', 'svc', 'fastify'],
    tls: true,
  },
  {
    ...plain,
    ...user,
    name: 'tls-new',
    title: 'JSON over HTTPS, each on a connection of its own',
    note: 'The load resumes its TLS session on each new connection.',
    servers: ['bare', 'svc', 'fastify'],
    headers: { Connection: 'close' },
    tls: true,
  },
]

/** The workload of that name. */
export function workloadNamed(name: string): Workload {
  const found = workloads.find((workload) => workload.name === name)
  if (found === undefined) throw new RangeError(`There is no workload ${name}`)
  return found
}

/** What a server of another make needs to know of a workload; it reads it as JSON. */
export function fixtureOf(workload: Workload): object {
  const { name, path, status, fields, body, coding, tls } = workload
  const text = typeof body === 'string' ? body : undefined
  return { name, path, status, fields, body: text, coding, tls, data: pageData }
}

/** The packages that the tables are about. */
export const comparedPackages: readonly string[] = [
  'fastify',
  'pino',
  '@fastify/compress',
  '@fastify/cookie',
  '@fastify/session',
  '@fastify/formbody',
  '@fastify/csrf-protection',
  '@fastify/view',
  '@fastify/static',
  'ejs',
  'hono',
  '@hono/node-server',
  'koa',
  '@koa/router',
  'express',
  'sirv',
  'serve-static',
]
