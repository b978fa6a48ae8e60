/** Renders `docs/errors.md` from the table of codes and from the places in `lib/` that use them. */
import { exitStatus } from '../../lib/process/process.ts'
import { errorCodes, type ErrorCode } from '../../lib/http/errors.ts'
import { readSources } from './sources.ts'

/** Codes of incomplete requests: they are refused on the connection, always with the page, which shows no code. */
export const statusesOfConnection: Partial<Record<ErrorCode, number>> = { request_timeout: 408, header_too_large: 431 }

/** Codes that are sent as replies, not thrown: always JSON. */
export const statusesOfReplies: Partial<Record<ErrorCode, number>> = {
  csrf_invalid: 403,
  csrf_requires_session: 500,
  invalid_token: 401,
}

type Exit = keyof typeof exitStatus

const meanings: Record<Exit, string> = {
  ok: 'Done, or stopped as requested.',
  failed:
    'A failure at run time, such as a port in use or an uncaught error; a second SIGTERM or SIGINT; an `init` that ' +
    'failed.',
  usage: 'A wrong command line; standard error shows the mistake.',
  config: 'A wrong configuration, middleware or route file; for `check`, any problem.',
}

/** Every code that the server throws in a `new HttpError` or replies with, with its statuses in order. */
export function usedCodes(): Map<string, number[]> {
  const used = new Map<string, number[]>()
  for (const { file, text } of readSources()) {
    for (const [code, status] of Object.entries(statusesOfReplies)) {
      if (file !== 'http/errors.ts' && text.includes(`'${code}'`)) used.set(code, [status])
    }
    for (const [call, status = '', code] of text.matchAll(/new HttpError\(\s*([^,]+),\s*(?:'(\w+)')?/g)) {
      if (code === undefined && file === 'http/context.ts' && call === 'new HttpError(status, ') continue // ctx.fail
      if (code === undefined || !/^\d{3}$/.test(status)) throw new Error(`${file}: ${call}: write literals`)
      const statuses = new Set([...(used.get(code) ?? []), Number(status)])
      used.set(code, [...statuses].sort())
    }
  }
  return used
}

/** The whole page. */
export function renderErrors(): string {
  const used = usedCodes()
  const rows = Object.entries(errorCodes).map(([code, meaning]) => {
    const statuses = used.get(code) ?? [statusesOfConnection[code as ErrorCode]]
    return { status: statuses.join(', '), code, meaning }
  })
  rows.sort((a, b) => a.status.localeCompare(b.status))
  const codes = rows.map(({ status, code, meaning }) => `| ${status} | \`${code}\` | ${meaning} |\n`)
  const exits = Object.entries(exitStatus).map(([name, status]) => `| ${status} | ${meanings[name as Exit]} |\n`)
  return `${head}${codes.join('')}${middle}${exits.join('')}`
}

const head = `<!-- Made by \`npm run docs\` from lib/http/errors.ts and test/support/errors-page.ts. Change those. -->
# Errors

\`ctx.fail(status, code, message)\` refuses a request with an error. A program gets it as JSON, a browser as a page, which
you may replace by [your own](#pages-of-your-own).

\`routes/notes.json\`:

\`\`\`json
[{ "name": "note", "method": "GET", "url": "/notes/:id", "action": "notes.mjs" }]
\`\`\`

\`notes.mjs\`:

\`\`\`js
const notes = new Map([['7', { title: 'Milk' }]])

export default ({ params, fail }) => notes.get(params.id) ?? fail(404, 'no_note', \`There is no note \${params.id}.\`)
\`\`\`

\`routes/errors/404.html\`:

\`\`\`html
<!doctype html>
<title>{{ title }}</title>
<p>{{ detail }}</p>
\`\`\`

\`\`\`sh
$ curl -s -H 'Accept: application/json' http://localhost:8080/notes/8
{"error":"no_note","detail":"There is no note 8."}
$ curl -s http://localhost:8080/notes/8
<!doctype html>
<title>Not Found</title>
<p>There is no note 8.</p>
\`\`\`

## What a client sees

A client is a program when its \`Accept\` names JSON (not with \`q=0\`), when it sends \`X-Requested-With: XMLHttpRequest\`,
or when the \`Content-Type\` of its body is JSON. A route can set the format with
[\`error_format\`](routes-and-actions.md#route-files).

- Programs should read the code in \`error\`: the wording of \`detail\` may change.
- From 500 on there is no \`detail\`; the general log has cause and stack, under module \`error\`. Any exception without a
  status is 500 \`internal_error\`.
- In \`dev\` a 500 shows its stack, and in a browser source lines and the request, with secrets masked, but only for a
  loopback Host or with \`server.allowed_hosts\` set.
- Input that \`ctx.validate\` or \`ctx.invalid\` refuses is a 422 with \`errors\` instead of \`detail\`, or a [redirect to
  the form](forms.md#when-the-input-is-wrong). A wrong parameter of the path is a 404.
- \`SVC_MwCsrf\`, \`SVC_MwCsrfCheck\` and \`SVC_MwJwt\` refuse with JSON for every client. A CSRF check sends a
  [\`reason\`](troubleshooting.md#reasons-of-a-refused-form) instead of \`detail\`, or with \`setup.csrf.redirect\` a 302.
- Refused on the connection are malformed (400) and slow (408) requests, CONNECT (405), and a header section (431) or
  chunk extension (413) that is too large. They get a page, unless the header section was complete. \`/svc-status\` counts
  them. The access log has \`-\` for method and path, the general log a line of module \`socket\`, at most one a second.
- A client that disconnects before its response has status 499 in the access log.

An error drops the header fields that described the reply, such as \`Content-Type\`, \`ETag\`, \`Location\`, and \`Cache-Control\`
other than \`no-store\` or \`private\`. Others stay, such as \`Content-Security-Policy\`. Cookies stay below 500 and are dropped
from 500 on.

## Pages of your own

Put [views](views.md) into \`paths.errors\` (\`routes/errors\`): \`404.html\` for one status, else \`4xx.html\` or \`5xx.html\`, else
\`error.html\`. They see these names, and no session, flash bag, token or other helpers:

| name | is |
| --- | --- |
| \`status\`, \`title\` | 404, \`Not Found\` |
| \`code\`, \`detail\` | as in the JSON; from 500 on \`detail\` is empty except in \`dev\` |
| \`id\` | the request id, as in the log |
| \`csp_nonce\` | the [nonce](security.md#header-fields), empty without \`SVC_MwHeaders\` |
| \`errors\`, \`input\` | for a 422 of [\`ctx.validate\` and \`ctx.invalid\`](forms.md#when-the-input-is-wrong), else empty; \`@error\`, \`errorsOf()\` and \`old()\` read them |

- Paths that begin with \`/svc-\`, requests refused on the connection and the 503 of a full queue always get the server's
  page.
- In \`dev\` your page for 500 hides source lines and stack.
- If your page fails, module \`error\` logs it, and the server's page is sent until the file changes. \`svc.js check\` compiles
  all these views.

## Codes

| status | code | meaning |
| --- | --- | --- |
`

const middle = `
Clients never see \`header_too_large\`, since the page shows no code, and \`request_timeout\` only for a late body.

## Exit status

| status | meaning |
| --- | --- |
`
