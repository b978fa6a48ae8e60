/**
 * Renders `docs/configuration.md` from the configuration table and the settings of the built-in middleware.
 *
 * Surprise: the prose of that page lives here. Change this file, then run `npm run docs`; a test holds the page to it.
 * The server itself never loads this file, so it may import what stands above `lib/config/`.
 */
import { createCsrfGroup } from '../../lib/csrf/group.ts'
import { createJwtGroup } from '../../lib/jwt/group.ts'
import { createLimitGroup } from '../../lib/protection/limit.ts'
import { createCorsGroup } from '../../lib/protection/cors.ts'
import { createHeadersGroup } from '../../lib/protection/headers.ts'
import { messageTable } from '../../lib/validation/messages.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { BuiltInGroup } from '../../lib/chain/settings.ts'
import { createSessionGroup } from '../../lib/session/group.ts'
import { OpenReplies } from '../../lib/session/open-replies.ts'
import { openLocalStore } from '../../lib/session-stores/local-store.ts'
import { createAuthGroup } from '../../lib/session/is-auth.ts'
import type { Row } from '../../lib/base/value.ts'
import { configTable } from '../../lib/config/table.ts'
import { allowedValues } from '../../lib/base/value.ts'

const head = `<!-- Made by \`npm run docs\`: change test/support/documentation.ts and the tables that it imports. -->
# Configuration

The server reads \`svc.json\`, then [\`svc.local.json\`](#the-local-file) over it. A change needs a restart. The built-in middleware has
[settings](#settings-of-the-built-in-middleware) in a file of its own.

## Which file

The first of these that is given or exists:

1. \`--config FILE\`
2. the environment variable \`SVC_CONFIG\`
3. \`svc.json\` in the working directory
4. \`svc.json\` beside the server's \`package.json\`: the demo application

The first line of the log names it. If the file of 1 or 2 does not exist, the server ends with status 78. Relative paths in it
are relative to its folder. These stand above the file:

- \`--host\`, \`--port\` and \`--env\`
- for \`app_key\`: \`SVC_APP_KEY\`, then systemd's credential \`$CREDENTIALS_DIRECTORY/app_key\`
- for \`app_key_previous\`: \`SVC_APP_KEY_PREVIOUS\`, then the credential \`app_key_previous\`, one key a line
- for the password in \`shared.url\`: \`SVC_SHARED_PASSWORD\`, then the credential \`shared_password\`
- for \`admin.metrics_token\`: \`SVC_METRICS_TOKEN\`, then the credential \`metrics_token\`

With \`"$schema": "PATH/docs/svc.schema.json"\`, which \`init\` writes, an editor knows the keys.

## The local file

Keep secrets and settings of one machine out of version control, in \`svc.local.json\` beside \`svc.json\` (\`<name>.local.json\` beside
\`<name>.json\`). Its keys stand above those of \`svc.json\` one by one, lists as a whole. \`svc.js check\` prints those in both.

If it exists or \`config.local\` is \`true\`, as \`init\` sets it, the server and \`svc.js passwd\` save only to it: the admin's name, password
and secret, and the key of the first setup.

## How it is written

The file is JSON in UTF-8, without comments and trailing commas. \`{"server": {"port": 8080}}\` and \`{"server.port": 8080}\` mean the same, and
may be mixed. A key in both forms, or twice in one object, is an error. Values are never converted. The server reports every problem,
ends with status 78, and leaves the file as it is:

\`\`\`
Cannot load /srv/app/svc.json: 2 problems
  server.port must be 0 to 65535: it is "8080" (line 4)
  log.max_size_mb must be 1 to 100000: it is -3 (line 9)
\`\`\`

Messages never show a *secret*. An unknown key is kept, with a warning that names the nearest known one. \`svc check\` ends with status 0 if
there are only warnings.

## When the server writes the file

To save the administrator, the server reads the file again, changes those values alone, and renames \`.svc.json.*.tmp\` over it, so its
user must be able to write to the folder. Mode and group stay, and the owner when the writer is root. A new file has mode 0600. Do not save
it in an editor at that moment: the last one wins.

## Keys

Where no values are named, the default shows the type: a string, or \`true\` and \`false\`. Lists are of strings.
`

const titles: Readonly<Record<string, string>> = {
  app: 'Application',
  app_key: 'Application',
  app_key_previous: 'Application',
  server: 'Server',
  shared: 'Shared engine',
  admin: 'Admin panel',
  session: 'Admin panel',
  paths: 'Folders',
  log: 'Logs',
  access_log: 'Logs',
  trace: 'Trace switches',
  pool_http: 'Pools',
  pool_ws: 'Pools',
  pool_rest: 'Pools',
  monitor: 'Others',
  dev: 'Others',
  config: 'Others',
  cache_ram: 'Others',
  cache_disk: 'Others',
}

const middlewareHead = `
## Settings of the built-in middleware

They are members of \`setup\` in \`config.json\` of \`paths.middleware\`:

\`\`\`json
{ "load": [], "setup": { "session": { "ttl_s": 1800 }, "csrf": { "lapse": 3600 } } }
\`\`\`

A wrong value ends the start with status 78 and refuses a reload; an unknown key is a warning. A reload reads them anew. [Routes and
actions](routes-and-actions.md#built-in-middleware) says what each does.
`

const middlewareNotes: Readonly<Record<string, string>> = {
  session:
    'A reload that changes `store`, `path` or `max` begins another store: **everybody is signed out**, unless it has old sessions.',
  csrf: '',
  auth: '',
  jwt:
    'Without `key` and `key_file`, routes with `SVC_MwJwt` answer 500, with a warning. A reload reads the file again.',
  limit:
    'Each member of `setup.limit` is a rule: with `"limit": { "login": { "count": 5 } }` a route may have `SVC_MwLimit:login`.\n' +
    'A rule that a reload changes begins with full buckets.',
  headers: '[Header fields](security.md#header-fields) says what the defaults stop, and how to allow it.',
  cors: 'Whom it lets in: [pages of other origins](security.md#pages-of-other-origins).',
}

/** The whole page as Markdown. Throws an Error when a group of keys has no title. */
export function renderConfiguration(table: Readonly<Record<string, Row>> = configTable): string {
  const groups = new Map<string, [string, Row][]>()
  for (const [key, row] of Object.entries(table)) {
    const title = titleOf(key)
    groups.set(title, [...(groups.get(title) ?? []), [key, row]])
  }
  const sections = [...groups].map(([title, rows]) => `\n### ${title}\n\n${tableOf(rows)}`)
  return head + sections.join('') + middlewareHead + builtInGroups().map(sectionOf).join('') + messagesSection()
}

/** Keys that differ in nothing but their names, such as the trace switches, stand in one sentence. */
function tableOf(rows: readonly (readonly [string, Row])[]): string {
  const [first, ...rest] = rows.map(([, row]) => row)
  if (first === undefined || rest.length < 3 || rest.some((row) => row !== first)) {
    return `${header}${rows.map(([key, row]) => lineOf(key, row)).join('\n')}\n`
  }
  const names = rows.map(([key]) => `\`${key}\``)
  const lines = Array.from({ length: Math.ceil(names.length / 6) }, (_, at) => names.slice(at * 6, at * 6 + 6).join(', '))
  return `Each of these is ${allowedValues(first)} (${presetOf(first)}). ${first.meaning}\n\n${lines.join(',\n')}\n`
}

const header = '| key | default (values) | meaning |\n| --- | --- | --- |\n'

/** Every group, made for its table alone. */
function builtInGroups(): BuiltInGroup[] {
  const parts = { folder: '/', log: () => silentLogger, now: Date.now }
  return [
    createSessionGroup({ ...parts, openStoreHere: openLocalStore, openReplies: new OpenReplies(), isPublic: () => false }),
    createCsrfGroup({ ...parts, keys: ['none'], trustedOrigins: [] }),
    createAuthGroup(parts),
    createJwtGroup(parts),
    createLimitGroup({ ...parts, isTrusted: () => false, userOf: () => undefined }),
    createHeadersGroup(),
    createCorsGroup([]),
  ]
}

function sectionOf({ name, table, middleware }: BuiltInGroup): string {
  const shown = [...middleware.keys()].filter((each) => each !== 'SVC_MwOrigin')
  const names = shown.map((each) => `\`${each}\``).join(' and ') || '`SVC_MwLimit:<rule>`'
  const lines = Object.entries(table).map(([key, row]) => lineOf(key, row))
  const note = middlewareNotes[name] ? `\n${middlewareNotes[name]}\n` : ''
  return `\n### setup.${name}\n\nFor ${names}.\n\n${header}${lines.join('\n')}\n${note}`
}

/** The messages are no middleware, and have a default each. */
function messagesSection(): string {
  const lines = Object.entries(messageTable).map(([name, row]) => `  ${JSON.stringify(name)}: ${JSON.stringify(row.default)}`)
  return `\n### setup.validate\n\n${messagesHead}\`\`\`json\n{\n${lines.join(',\n')}\n}\n\`\`\`\n`
}

const messagesHead = `For [\`ctx.validate\`](forms.md). \`"validate": { "messages": { "required": "Bitte ausfüllen" } }\` replaces one of these texts. Placeholders
such as \`{min}\` are of the field. The defaults:

`

function titleOf(key: string): string {
  const [group = ''] = key.split('.', 1)
  const title = titles[group]
  if (title === undefined) throw new Error(`The documentation has no title for ${key}`)
  return title
}

function lineOf(key: string, row: Row): string {
  return `| \`${key}\` | ${presetOf(row)}${valuesOf(row)}${row.secret ? ', *secret*' : ''} | ${row.meaning} |`
}

/** The values that the default does not show: ` (0 to 65535)`. */
function valuesOf(row: Row): string {
  if (row.kind === 'boolean' || row.kind === 'string') return ''
  if (row.kind === 'list') return row.commas ? ' (or a text with commas)' : ''
  if (row.kind === 'choice') return ` (or ${row.choices.filter((choice) => choice !== row.default).join(', ')})`
  return ` (${allowedValues(row)})`
}

function presetOf(row: Row): string {
  return row.default === '' ? 'empty' : `\`${JSON.stringify(row.default).replaceAll('"', '')}\``
}
