/** Route files, job files and middleware configurations, valid and invalid, for the schemas by which editors check them. */

/** The content of a file, and whether the server reads it without a problem and without a warning. */
export type SchemaRow = readonly [content: unknown, isValid: boolean]

const record = { name: 'a', url: '/a', action: 'a.js' }
const inRecord = (...values: readonly object[]): unknown[] => values.map((fields) => [{ ...record, ...fields }])
const inDefaults = (...values: readonly object[]): unknown[] => values.map((defaults) => ({ defaults, routes: [record] }))
const rowsOf = (isValid: boolean, contents: readonly unknown[]): SchemaRow[] => contents.map((content) => [content, isValid])

/** Fields that may also be in `defaults`. */
const validFields = [
  { method: 'GET' }, { method: ' get , POST' }, { method: '*' },
  { middleware: '' }, { middleware: 'one, two' }, { scope: '' }, { scope: 'a:b' },
  { body_limit_kb: 1 }, { body_limit_kb: 1_048_576 }, { request_timeout_s: 1 }, { request_timeout_s: 86_400 },
  { error_format: 'json' }, { error_format: 'html' }, { error_format: 'auto' },
  { deprecated: true }, { deprecated: false }, { hidden: true }, { hidden: false },
]
const invalidFields = [
  { method: '' }, { method: 'GET,' }, { method: 'GET POST' }, { method: ['GET'] }, { method: 'GÉT' }, { method: null },
  { middleware: ['one'] }, { middleware: null }, { scope: 7 },
  { body_limit_kb: 0 }, { body_limit_kb: 1_048_577 }, { body_limit_kb: 1.5 }, { body_limit_kb: '5' },
  { request_timeout_s: 0 }, { request_timeout_s: 86_401 }, { request_timeout_s: null },
  { error_format: 'xml' }, { error_format: null },
  { deprecated: 'yes' }, { hidden: 1 }, { hidden: null },
  { errors: 'json' }, { method_: 'GET' }, { '//': 'a note' },
]

export const routeRows: readonly SchemaRow[] = [
  ...rowsOf(true, [
    [],
    [record],
    [record, { name: 'b', pattern: '/b/:id', action: 'b.html@x' }],
    { routes: [] },
    { routes: [record], defaults: {} },
    { $schema: '../svc/docs/schemas/routes.schema.json', defaults: { prefix: '/api/:tenant' }, routes: [record] },
    { $schema: '', routes: [] },
    ...inRecord(...validFields),
    ...inRecord(
      ...['a b', 'svc', 'svcs.a', 'é', '\u{1f600}', '"'].map((name) => ({ name })),
      { url: '/' }, { url: '/é/:id/*rest' }, { url: '/a', pattern: '/a' }, { action: 'a/b.mjs@c' }, { action: ' ' },
      { summary: 'x' }, { summary: '\u{1f600}'.repeat(200) }, { description: '' }, { description: 'a\n\tb' },
      { description: '\u{1f600}'.repeat(4_000) },
      { defaults: false }, { defaults: [] },
      { defaults: ['prefix', 'middleware', 'scope', 'method', 'body_limit_kb', 'request_timeout_s', 'error_format', 'deprecated', 'hidden'] },
    ),
    ...inDefaults(...validFields, { prefix: '/a' }, { prefix: '/a/:b' }),
  ]),
  ...rowsOf(false, [
    null, 7, 'text', {}, { routes: {} }, { routes: null }, { defaults: {} },
    [null], [[]], [7], [{}], { routes: [null] },
    [{ url: '/a', action: 'a.js' }], [{ name: 'a', action: 'a.js' }], [{ name: 'a', url: '/a' }],
    { routes: [], default: {} }, { routes: [], schema: 'x' }, { routes: [], $schema: 7 }, { routes: [], $schema: null },
    { routes: [], defaults: [] }, { routes: [], defaults: null }, { routes: [], defaults: false },
    ...inRecord(...invalidFields),
    ...inRecord(
      ...['', ' a', 'a ', '\ufeffa', 'a\n', 'a\u0000b', 'a\u0085b', 'a\u2028b', 'svc.', 'svc.a', 7, null].map((name) => ({ name })),
      { url: '' }, { url: 'a' }, { url: 7 }, { pattern: 'a' }, { action: '' }, { action: 'a\n.js' }, { action: null },
      { summary: '' }, { summary: 'x'.repeat(201) }, { summary: 'a\nb' }, { summary: 'a\u2029b' }, { summary: 5 },
      { description: 'x'.repeat(4_001) }, { description: [] },
      { defaults: true }, { defaults: 'prefix' }, { defaults: ['prefx'] }, { defaults: ['name'] }, { defaults: ['summary'] },
      { defaults: null }, { prefix: '/a' },
    ),
    ...inDefaults(
      ...invalidFields,
      ...['', 'a', '/', '/a/', 7, null].map((prefix) => ({ prefix })),
      { name: 'a' }, { url: '/a' }, { action: 'a.js' }, { summary: 'a' }, { description: 'a' }, { defaults: [] },
    ),
  ]),
]

const limit = { count: 5, per_s: 60 }

export const middlewareRows: readonly SchemaRow[] = [
  ...rowsOf(true, [
    {}, { load: [] }, { load: ['a.js', 'b/c.mjs'] }, { setup: {} },
    { $schema: '../../svc/docs/schemas/middleware.schema.json', load: [], setup: { headers: {} } },
    { setup: { limit: { 'sign-in': limit, 'a_B.9': {} } } },
    { setup: { validate: {} } }, { setup: { validate: { messages: { required: 'Bitte ausfüllen' } } } },
    { setup: { cors: { methods: 'GET, POST' } } },
  ]),
  ...rowsOf(false, [
    null, [], 'text',
    { load: 'a.js' }, { load: [1] }, { load: null }, { setup: [] }, { setup: null }, { $schema: 7 }, { $schema: null },
    { loads: [] }, { setup: { crsf: {} } }, { setup: { csrf: null } }, { setup: { csrf: [] } }, { setup: { csrf: { lapsed: 5 } } },
    { setup: { csrf: { lapse: '5' } } }, { setup: { csrf: { lapse: -1 } } },
    { setup: { limit: { '': limit } } }, { setup: { limit: { 'a b': limit } } }, { setup: { limit: { ['x'.repeat(65)]: limit } } },
    { setup: { limit: { a: 5 } } }, { setup: { limit: { a: { cuont: 5 } } } }, { setup: { limit: { é: limit } } },
    { setup: { validate: { message: {} } } }, { setup: { validate: { messages: { requird: 'x' } } } },
    { setup: { validate: { messages: { required: 5 } } } }, { setup: { validate: { messages: null } } },
  ]),
]

const job = { name: 'a', action: 'a.js' }
const inJob = (...values: readonly object[]): unknown[] => values.map((fields) => [{ ...job, ...fields }])
const crons = (...texts: readonly string[]): object[] => texts.map((cron) => ({ cron }))

export const jobRows: readonly SchemaRow[] = [
  ...rowsOf(true, [
    [],
    [job],
    [job, { name: 'b', action: 'b/c.mjs@d' }],
    { jobs: [] },
    { $schema: '../svc/docs/schemas/jobs.schema.json', jobs: [job] },
    ...inJob(
      ...['a b', 'svc', 'é', '\u{1f600}', '"'].map((name) => ({ name })),
      { retries: 0 }, { retries: 100 }, { backoff_s: 0 }, { backoff_s: 3600 }, { timeout_s: 1 }, { timeout_s: 86_400 },
      { every: '1s' }, { every: '90m' }, { every: '366d' }, { every: '007h' }, { every: '1h', catch_up: false },
      { optional: true }, { optional: false, every: '1h' },
      ...crons('* * * * *', '0 3 * * *', ' 0\t3 * * * ', '*/5 9-17/2 1,15 jan-MAR mon-fri', '0 0 29 2 *', '0 0 * * 7'),
      { cron: '0 3 * * *', catch_up: true, retries: 1, backoff_s: 1, timeout_s: 1 },
    ),
  ]),
  ...rowsOf(false, [
    null, 7, 'text', {}, { jobs: {} }, { jobs: null }, { defaults: {}, jobs: [job] }, { routes: [] },
    [null], [[]], [7], [{}], { jobs: [null] }, { jobs: [], $schema: 7 }, { jobs: [], $schema: null },
    [{ action: 'a.js' }], [{ name: 'a' }],
    ...inJob(
      ...['', ' a', 'a ', 'a\n', 'a\u0085b', 'svc.', 'svc.a', 7, null].map((name) => ({ name })),
      { action: '' }, { action: 'a\n.js' }, { action: null },
      { retries: -1 }, { retries: 101 }, { retries: 1.5 }, { retries: '5' }, { retries: null },
      { backoff_s: -1 }, { backoff_s: 3601 }, { timeout_s: 0 }, { timeout_s: 86_401 },
      { every: '' }, { every: '0s' }, { every: '5' }, { every: '1.5h' }, { every: '5 m' }, { every: '5w' }, { every: 5 }, { every: null },
      ...crons('', '* * * *', '* * * * * *', '5/10 * * * *', '*/ * * * *', '1, * * * *', '1-2-3 * * * *', '@daily'), { cron: 5 },
      { every: '1h', cron: '0 3 * * *' }, { catch_up: true }, { every: '1h', catch_up: 'yes' }, { every: '1h', catch_up: null }, { optional: 'yes' },
      { delay_s: 5 }, { '//': 'a note' }, { url: '/a' },
    ),
  ]),
]
