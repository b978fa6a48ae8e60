/**
 * Renders `docs/configuration.md` from the configuration table and the settings of the built-in middleware.
 *
 * Surprise: the prose of that page lives here. Change this file, then run `npm run docs`; a test holds the page to it.
 * The server itself never loads this file, so it may import what stands above `lib/config/`.
 */
import { createCsrfGroup } from '../../lib/csrf/group.ts'
import { createJwtGroup } from '../../lib/jwt/group.ts'
import { createLimitGroup } from '../../lib/kit/limit.ts'
import { createCorsGroup } from '../../lib/kit/cors.ts'
import { createHeadersGroup } from '../../lib/kit/headers.ts'
import { messageTable } from '../../lib/kit/validate-messages.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { BuiltInGroup } from '../../lib/chain/settings.ts'
import { createSessionGroup } from '../../lib/session/group.ts'
import { openLocalStore } from '../../lib/stores/local-store.ts'
import { createAuthGroup } from '../../lib/session/is-auth.ts'
import type { Row } from '../../lib/base/value.ts'
import { configTable } from '../../lib/config/table.ts'
import { allowedValues } from '../../lib/base/value.ts'

const head = `<!-- Made by \`npm run docs\` from test/support/documentation.ts, lib/config/table.ts and the tables of
the built-in middleware. Change those. -->
# Configuration

The server reads \`svc.json\`, and over it [\`svc.local.json\`](#the-local-file) where that is there. Without a file, or for a key that the file does not have, the defaults
below hold. The built-in middleware has [settings](#settings-of-the-built-in-middleware) in a file of its own.

## Which file

The first of these that is given or there:

1. \`--config FILE\`
2. the environment variable \`SVC_CONFIG\`
3. \`svc.json\` in the working directory
4. \`svc.json\` beside the server's \`package.json\`

Relative paths in the file are relative to the folder of the file. \`--host\`, \`--port\` and \`--env\` stand above
the file.

With \`"$schema": "PATH/docs/svc.schema.json"\` in the file an editor knows the keys, their meaning and their ranges; \`init\` writes that.

\`app_key\` may also come from the environment variable \`SVC_APP_KEY\` or from the credential of systemd,
\`$CREDENTIALS_DIRECTORY/app_key\`, in this order; both stand above the file. So may the password of
\`shared.url\`, from \`SVC_SHARED_PASSWORD\` or \`$CREDENTIALS_DIRECTORY/shared_password\`,
and \`admin.metrics_token\`, from \`SVC_METRICS_TOKEN\` or \`$CREDENTIALS_DIRECTORY/metrics_token\`.

A file that was named by \`--config\` or \`SVC_CONFIG\` and is not there is an error: the server ends with status
78. The last of the four starts the demo application, which the log says. The first line of the log names the file.

## The local file

One file to commit and one to keep: what is the same on every machine is in \`svc.json\`, and what one machine has of its own, such as
secrets, is in \`svc.local.json\` beside it (\`<name>.local.json\` beside \`<name>.json\`). Its keys stand above those of the other file,
one by one, nested or dotted; a list takes the place of the whole list. \`svc.js check\` prints the keys that are in both.

The server saves the admin's name, password and secret, and the key of the first setup; \`svc.js passwd\` saves the admin. Both write
to the local file when it exists or \`config.local\` is \`true\`, and never to \`svc.json\` then. A missing local file is made with mode
0600. \`init\` makes an application that way.

## How it is written

A dot in a key is a level in the file. These two mean the same, and may be mixed:

\`\`\`json
{ "server": { "port": 8080 } }
\`\`\`

\`\`\`json
{ "server.port": 8080 }
\`\`\`

The same key in both forms is an error, and so is a name that stands twice in one object. The file is JSON in UTF-8,
so it has no comments and no trailing commas; a byte order mark is accepted. Values are never converted: a port is
\`8080\`, not \`"8080"\`.

Every problem of the file is reported at once, with its line, and the server ends with status 78 without changing
the file:

\`\`\`
Cannot load /srv/app/svc.json: 2 problems
  server.port must be 0 to 65535: it is "8080" (write 8080, without quotes) (line 4)
  log.max_size_mb must be 1 to 100000: it is -3 (line 9)
\`\`\`

Messages never show the value of a key that is marked *secret* below.

A key that the server does not know is a warning with the nearest key it knows; the key is kept. \`svc check\`
prints warnings too, and ends with status 0 when there is nothing else.

## When the server writes the file

Setting the administrator's name and password, and renewing the secret that signs the admin cookie, change the file.
The server reads it again first, changes those values alone, and leaves all else as it is: unknown keys, order,
nested or dotted form, indentation. The new content is written to a temporary file in the same folder
(\`.svc.json.*.tmp\`), brought to disk and renamed, so that the file is always the old or the new one, whole. Its
mode and group are kept, and its owner when the writer is root; a new file has mode 0600. So the server's user must
be able to write to the folder of the file.

Do not save the file in an editor at that very moment: the server keeps changes that were saved before, but
whichever is saved last wins.

## Keys
`

const titles: Readonly<Record<string, string>> = {
  app: 'Application',
  app_key: 'Application',
  app_key_previous: 'Application',
  server: 'Server',
  shared: 'Shared engine',
  admin: 'Admin panel',
  session: 'Admin sessions',
  paths: 'Paths',
  log: 'General log',
  access_log: 'Access log',
  trace: 'Trace switches',
  pool_http: 'Plain requests',
  pool_ws: 'WebSocket connections',
  pool_rest: 'Long polls and SSE streams',
  monitor: 'Monitor page',
  dev: 'Development',
  config: 'Configuration files',
  cache_ram: 'View cache',
  cache_disk: 'View cache',
}

const middlewareHead = `
## Settings of the built-in middleware

They are members of \`setup\` in \`config.json\` of the folder \`paths.middleware\`:

\`\`\`json
{ "load": [], "setup": { "session": { "ttl_s": 1800 }, "csrf": { "lapse": 3600 } } }
\`\`\`

What is not given has its default. Values are checked as those of \`svc.json\` are: one that is wrong ends the start
with status 78 and refuses a reload, a key that nobody knows is a warning. Unlike \`svc.json\` they are read anew by a
reload (SIGHUP, \`/svc-routes/reload\`), and take effect all at once. What each middleware does is in
[routes and actions](routes-and-actions.md#built-in-middleware).
`

const middlewareNotes: Readonly<Record<string, string>> = {
  session:
    'A reload that changes the store (`store`, its `path` or its `max`) begins with another one: everybody is\n' +
    'signed out, unless it has sessions from before. A folder that is not there yet is made when the first session\n' +
    'is saved.',
  csrf: '`lapse` counts for signed tokens alone: a token in a session lasts as long as the session.',
  auth: '',
  jwt:
    'Either `key` or `key_file`. Without both, routes with `SVC_MwJwt` answer 500, with a warning. Messages never\n' +
    'show the value of a key. A new one in the file counts from the next reload on.',
  limit:
    'Each member of `setup.limit` is a rule with these keys, and its name is part of the middleware: with\n' +
    '`"limit": { "login": { "count": 5 } }` a route may have `SVC_MwLimit:login`. A rule that a reload changes begins\n' +
    'with full buckets.',
  headers: '[Header fields](security.md#header-fields) says what the defaults stop, and how to allow it.',
  cors: '[Pages of other origins](security.md#pages-of-other-origins) says whom it lets in, and whom not.',
}

/** The whole page as Markdown. Throws an Error when a group of keys has no title. */
export function renderConfiguration(table: Readonly<Record<string, Row>> = configTable): string {
  const groups = new Map<string, string[]>()
  for (const [key, row] of Object.entries(table)) {
    const title = titleOf(key)
    groups.set(title, [...(groups.get(title) ?? []), lineOf(key, row)])
  }
  const sections = [...groups].map(([title, lines]) => `\n### ${title}\n\n${header}${lines.join('\n')}\n`)
  return head + sections.join('') + middlewareHead + builtInGroups().map(sectionOf).join('') + messagesSection()
}

const header = '| key | values | default | meaning |\n| --- | --- | --- | --- |\n'

/** Every group, made for its table alone. */
function builtInGroups(): BuiltInGroup[] {
  const parts = { folder: '/', log: () => silentLogger, now: Date.now }
  return [
    createSessionGroup({ ...parts, openStoreHere: openLocalStore, isPublic: () => false }),
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

/** The messages are no middleware, and have a default and placeholders each. */
function messagesSection(): string {
  const lines = Object.entries(messageTable).map(([name, row]) => `| \`${name}\` | ${row.default} | ${row.meaning} |`)
  return `\n### setup.validate\n\n${messagesHead}${lines.join('\n')}\n`
}

const messagesHead = `For [\`ctx.validate\`](forms.md). It has \`messages\`, an object with texts by these names; what is not given has its
default. A placeholder stands for a bound or a list of the field.

\`\`\`json
{ "setup": { "validate": { "messages": { "required": "Bitte ausfüllen", "too_long": "Höchstens {max} Zeichen" } } } }
\`\`\`

| name | default | placeholders |
| --- | --- | --- |
`

function titleOf(key: string): string {
  const [group = ''] = key.split('.', 1)
  const title = titles[group]
  if (title === undefined) throw new Error(`The documentation has no title for ${key}`)
  return title
}

function lineOf(key: string, row: Row): string {
  const preset = row.default === '' ? 'empty' : `\`${JSON.stringify(row.default).replaceAll('"', '')}\``
  const values = allowedValues(row) + (row.secret ? ' (*secret*)' : '')
  return `| \`${key}\` | ${values} | ${preset} | ${row.meaning} |`
}
