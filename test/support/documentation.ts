/**
 * Renders `docs/configuration.md` from the configuration table and the settings of the built-in middleware.
 *
 * Surprise: the prose of that page is here. Change this file, then run `npm run docs`; a test compares the page.
 * The server itself never loads this file, so it may import rooms above `lib/config/`.
 */
import { createCsrfGroup } from '../../lib/csrf/group.ts'
import { createJwtGroup } from '../../lib/composition/jwt-group.ts'
import { table as jwtTable } from '../../lib/jwt/settings.ts'
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
import { configTable, type KeyRow } from '../../lib/config/table.ts'
import { allowedValues } from '../../lib/base/value.ts'

const head = `<!-- Made by \`npm run docs\`: change test/support/documentation.ts and the tables that it imports. -->
# Configuration

Write the keys that you want to change into \`svc.json\`, and secrets into [\`svc.local.json\`](#the-local-file), which
overrides it. Then restart the server; \`svc check\` checks both files first.

\`\`\`json
{
  "app": { "env": "prod" },
  "server": { "port": 8081, "trusted_proxies": ["127.0.0.1"] },
  "paths": { "public": "public" }
}
\`\`\`

[Every key](#keys) is below. The built-in middleware has [settings](#settings-of-the-built-in-middleware) in a separate
file, and your code has [its own](#settings-of-the-application).

## Which file

The server uses the first of these that is given or exists, and names it in the first line of the log:

1. \`--config FILE\`
2. the environment variable \`SVC_CONFIG\`
3. \`svc.json\` in the working directory
4. \`svc.json\` next to the server's \`package.json\`: the demo application

If the file of 1 or 2 does not exist, the server exits with status 78. Relative paths in the file are relative to its
folder. Some values may come from elsewhere, and then override the file:

| key | first from | then from |
| --- | --- | --- |
| \`server.host\`, \`server.port\`, \`app.env\` | \`--host\`, \`--port\`, \`--env\` | |
| \`app_key\` | \`SVC_APP_KEY\` | systemd's credential \`$CREDENTIALS_DIRECTORY/app_key\` |
| \`app_key_previous\` | \`SVC_APP_KEY_PREVIOUS\` | the credential \`app_key_previous\`, one key per line |
| the password in \`shared.url\` | \`SVC_SHARED_PASSWORD\` | the credential \`shared_password\` |
| \`admin.metrics_token\` | \`SVC_METRICS_TOKEN\` | the credential \`metrics_token\` |

## The local file

Keep secrets and machine-specific settings out of version control, in \`svc.local.json\` next to \`svc.json\`
(\`<name>.local.json\` next to \`<name>.json\`). Each of its keys overrides that key of \`svc.json\`, lists as a whole.
[\`settings\`](#settings-of-the-application) and [\`setup\`](#settings-of-the-built-in-middleware) are merged member by
member, at every depth. \`svc check\` prints the keys that are in both.

If the local file exists, or \`config.local\` is \`true\`, as \`init\` sets it, the server and \`svc passwd\` save only to it: the
admin's name, password and secret, and the key of the first setup.

## How it is written

The file is JSON in UTF-8, without comments and trailing commas. \`{"server": {"port": 8080}}\` and \`{"server.port":
8080}\` mean the same, and may be mixed. A key in both forms, or twice in one object, is an error. Values are never
converted. The server reports every problem, exits with status 78, and does not change the file:

\`\`\`
Cannot load /srv/app/svc.json: 2 problems
  server.port must be 0 to 65535: it is "8080" (line 4)
  log.max_size_mb must be 1 to 100000: it is -3 (line 9)
\`\`\`

- Messages never show a *secret*.
- An unknown key is kept, with a warning that suggests the nearest known key. \`svc check\` exits with status 0 if there are
  only warnings.
- With \`"$schema": "PATH/docs/svc.schema.json"\`, which \`init\` writes, editors complete and check the keys.

## When the server writes the file

To save the administrator, the server reads the file again, changes only those values, and renames \`.svc.json.*.tmp\` over
it. Its user must be able to write to the folder. Mode and group stay the same, and so does the owner when the writer is
root. A new file has mode 0600. Do not save the file in an editor at that moment: the last write wins.

## Keys

Where no values are listed, the default shows the type: a string, or \`true\` and \`false\`. Lists contain strings.
`

const ofApplication = `
## Settings of the application

Put the values that your code needs, such as the address of a mail server, into \`settings\` of \`svc.json\`: any JSON object.
Actions and middleware have it as \`ctx.settings\`, \`setup(app)\` as \`app.settings\`. A reference such as \`{ "env": "MAIL_URL"
}\` keeps a secret out of the file:

\`svc.json\`:

\`\`\`json
{ "settings": { "mail": { "url": { "env": "MAIL_URL" } } } }
\`\`\`

\`routes/middleware/mail.mjs\`:

\`\`\`js
import { fields } from 'svc'

export const settings = fields({
  mail: fields.object({ url: fields.text(), from: fields.email().default('notes@example.org') }),
})
\`\`\`

\`routes/middleware/config.json\`:

\`\`\`json
{ "load": ["mail.mjs"] }
\`\`\`

\`routes/mail.mjs\`:

\`\`\`js
export default ({ settings: { mail } }) => ({ host: new URL(mail.url).host, from: mail.from })
\`\`\`

\`routes/mail.json\`:

\`\`\`json
[{ "name": "mail", "url": "/mail", "method": "GET", "action": "routes/mail.mjs" }]
\`\`\`

With \`MAIL_URL=smtp://notes:secret@relay.example.org\` in the environment of the server:

\`\`\`sh
$ curl http://localhost:8080/mail
{"host":"relay.example.org","from":"notes@example.org"}
\`\`\`

Anywhere in \`settings\`, an object with one of these members, and no other, is a reference to a text of at most 64 KiB, whose
last line end is removed:

| reference | is the text of |
| --- | --- |
| \`{ "env": "MAIL_URL" }\` | an environment variable, which may be empty |
| \`{ "credential": "mail" }\` | the file \`$CREDENTIALS_DIRECTORY/mail\`, which systemd creates for \`LoadCredential=mail:...\` |
| \`{ "file": "secrets/mail" }\` | a file in UTF-8, relative to the folder of \`svc.json\`, and not in \`paths.public\` |

- References are read at the start only: a new value needs a restart. One that cannot be read ends the start with status
  78, and \`check\` reports it. On your own machine, write the value into \`svc.local.json\` instead.
- A reference is never converted: its field in a schema must be a text.

\`\`\`
Cannot load /srv/app/svc.json: settings.mail.url needs the environment variable MAIL_URL: it is not set (line 12)
\`\`\`

The export \`settings\` of a [middleware module](routes-and-actions.md#middleware) is a schema made with
[\`fields\`](forms.md#fields). It is optional, and several modules may have one, each for its own part.

- Every schema checks all settings. The values that it returns, with its defaults, replace those of the file. Members that
  no schema declares stay, except inside lists.
- Wrong settings end the start with status 78 and refuse a reload:

\`\`\`
Cannot load /srv/app/svc.json: settings.mail.url: Must be a text (line 12)
\`\`\`

\`ctx.settings\` is the same object for all requests, frozen at every depth. Its objects have no prototype: use
\`Object.keys(settings.mail)\`, not \`settings.mail.hasOwnProperty()\`. [TypeScript](typescript.md#settings) can know its
type. \`app.config.settings\` has the references as written.

**Secrets.** Messages never show a value. [\`/svc-config\`](admin.md#configuration) shows where each value comes from. It shows
only whether it is set if it comes from a reference, is a URL with a password, or has the name of a secret: with \`pass\`,
\`secret\` or \`token\` in it, ending in \`key\`, or with a word such as \`pin\`. If there is a local file, \`check\` warns of such
a text in \`svc.json\`.
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
  static: 'Static files',
  log: 'Logs',
  access_log: 'Logs',
  trace: 'Trace switches',
  pool_http: 'Pools',
  pool_ws: 'Pools',
  pool_rest: 'Pools',
  pool_jobs: 'Pools',
  data: 'Data',
  monitor: 'Others',
  permission: 'Others',
  dev: 'Others',
  config: 'Others',
  cache_ram: 'Others',
  cache_disk: 'Others',
  settings: 'Application',
  setup: 'Application',
}

const middlewareHead = `
## Settings of the built-in middleware

They are members of \`setup\` in \`config.json\` of \`paths.middleware\`, which a reload reads again:

\`\`\`json
{ "load": [], "setup": { "session": { "ttl_s": 1800 }, "csrf": { "lapse": 3600 } } }
\`\`\`

- \`setup\` of \`svc.json\` is merged over it, and that of [\`svc.local.json\`](#the-local-file) over both, group by group and
  key by key: set there what differs by machine. \`svc check\` prints what is overridden. These two are read at the start
  only.
- A relative path is relative to the folder of \`svc.json\`, whichever file it is in.
- A wrong value ends the start with status 78 and refuses a reload; an unknown key causes a warning.
- With \`"$schema": "PATH/docs/schemas/middleware.schema.json"\` in \`config.json\`, which \`init\` writes, editors complete the
  keys and underline mistakes.

[Routes and actions](routes-and-actions.md#built-in-middleware) describes each middleware.
`

const middlewareNotes: Readonly<Record<string, string>> = {
  session:
    'A reload that changes `store`, `path` or `max` opens another store: **all users are signed out**, unless it has old sessions.',
  csrf: '',
  auth: '',
  jwt:
    'Without `key` and `key_file`, routes with `SVC_MwJwt` reply 500, with a warning. A reload reads the file again.',
  limit:
    'Each member of `setup.limit` is a rule: with `"limit": { "login": { "count": 5 } }` a route may have `SVC_MwLimit:login`.\n' +
    'A rule that a reload changes starts with full buckets.',
  headers: '[Header fields](security.md#header-fields) describes what the defaults block, and how to allow it.',
  cors: 'For its effect see [pages of other origins](security.md#pages-of-other-origins).',
}

/** The whole page as Markdown. Throws an Error when a group of keys has no title. */
export function renderConfiguration(table: Readonly<Record<string, KeyRow>> = configTable): string {
  const groups = new Map<string, [string, KeyRow][]>()
  for (const [key, row] of Object.entries(table)) {
    const title = titleOf(key)
    groups.set(title, [...(groups.get(title) ?? []), [key, row]])
  }
  const sections = [...groups].map(([title, rows]) => `\n### ${title}\n\n${tableOf(rows)}`)
  const ofMiddleware = builtInGroups().map(sectionOf).join('') + messagesSection()
  return head + sections.join('') + middlewareHead + ofMiddleware + ofApplication
}

/** Lists keys that differ only in their names, such as the trace switches, in one sentence. */
function tableOf(rows: readonly (readonly [string, KeyRow])[]): string {
  const [first, ...rest] = rows.map(([, row]) => row)
  if (first === undefined || rest.length < 3 || rest.some((row) => row !== first)) {
    return `${header}${rows.map(([key, row]) => lineOf(key, row)).join('\n')}\n`
  }
  const names = rows.map(([key]) => `\`${key}\``)
  const lines = Array.from({ length: Math.ceil(names.length / 6) }, (_, at) => names.slice(at * 6, at * 6 + 6).join(', '))
  const values = first.kind === 'object' ? 'an object' : allowedValues(first)
  return `Each of these is ${values} (${presetOf(first)}). ${first.meaning}\n\n${lines.join(',\n')}\n`
}

const header = '| key | default (values) | meaning |\n| --- | --- | --- |\n'

/** Every group, created only for its table. */
export function builtInGroups(): BuiltInGroup[] {
  const parts = { folder: '/', log: () => silentLogger, now: Date.now }
  return [
    createSessionGroup({ ...parts, openStoreHere: openLocalStore, openReplies: new OpenReplies(), isPublic: () => false }),
    createCsrfGroup({ ...parts, keys: ['none'], trustedOrigins: [] }),
    createAuthGroup(parts),
    { ...createJwtGroup(parts), table: jwtTable },
    createLimitGroup({ ...parts, isTrusted: () => false, userOf: () => undefined }),
    createHeadersGroup(),
    createCorsGroup([]),
  ]
}

function sectionOf({ name, table = {}, middleware }: BuiltInGroup): string {
  const shown = [...middleware.keys()].filter((each) => each !== 'SVC_MwOrigin')
  const names = shown.map((each) => `\`${each}\``).join(' and ') || '`SVC_MwLimit:<rule>`'
  const lines = Object.entries(table).map(([key, row]) => lineOf(key, row))
  const note = middlewareNotes[name] ? `\n${middlewareNotes[name]}\n` : ''
  return `\n### setup.${name}\n\nFor ${names}.\n\n${header}${lines.join('\n')}\n${note}`
}

/** The messages belong to no middleware, and each has a default. */
function messagesSection(): string {
  const lines = Object.entries(messageTable).map(([name, row]) => `  ${JSON.stringify(name)}: ${JSON.stringify(row.default)}`)
  return `\n### setup.validate\n\n${messagesHead}\`\`\`json\n{\n${lines.join(',\n')}\n}\n\`\`\`\n`
}

const messagesHead = `For [\`ctx.validate\`](forms.md). \`"validate": { "messages": { "required": "Bitte ausfüllen" } }\` replaces one of these
texts. Placeholders such as \`{min}\` are options of the field. The defaults:

`

function titleOf(key: string): string {
  const [group = ''] = key.split('.', 1)
  const title = titles[group]
  if (title === undefined) throw new Error(`The documentation has no title for ${key}`)
  return title
}

function lineOf(key: string, row: KeyRow): string {
  return `| \`${key}\` | ${presetOf(row)}${valuesOf(row)}${'secret' in row ? ', *secret*' : ''} | ${row.meaning} |`
}

/** The values that the default does not show: ` (0 to 65535)`. */
function valuesOf(row: KeyRow): string {
  if (row.kind === 'boolean' || row.kind === 'string' || row.kind === 'object') return ''
  if (row.kind === 'list') return row.commas ? ' (or a text with commas)' : ''
  if (row.kind === 'choice') return ` (or ${row.choices.filter((choice) => choice !== row.default).join(', ')})`
  return ` (${allowedValues(row)})`
}

function presetOf(row: KeyRow): string {
  return row.default === '' ? 'empty' : `\`${JSON.stringify(row.default).replaceAll('"', '')}\``
}
