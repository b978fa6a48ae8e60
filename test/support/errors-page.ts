/** Renders `docs/errors.md` from the table of codes and from the places in `lib/` that use them. */
import { exitStatus } from '../../lib/cli/process.ts'
import { errorCodes, type ErrorCode } from '../../lib/http/errors.ts'
import { readSources } from './sources.ts'

/** Codes whose requests end before they are one: the connection answers, always with the page, which names no code. */
export const statusesOfConnection: Partial<Record<ErrorCode, number>> = { request_timeout: 408, header_too_large: 431 }

/** Codes that are replied and not thrown: always JSON. */
export const statusesOfReplies: Partial<Record<ErrorCode, number>> = {
  csrf_invalid: 403,
  csrf_requires_session: 500,
  invalid_token: 401,
}

type Exit = keyof typeof exitStatus

const meanings: Record<Exit, string> = {
  ok: 'Done, or stopped as asked.',
  failed:
    'A failure at run time: the port is taken, say, or something was thrown that nobody caught. Also a second ' +
    'SIGTERM or SIGINT, and an `init` that could not be done.',
  usage: 'The command line is wrong; standard error says where.',
  config: 'The configuration, the middleware or a route file is wrong; for `check`, anything at all.',
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

## What a client sees

A program gets JSON, a person a small page. A client is a program when its \`Accept\` names JSON (and not with \`q=0\`),
when it sends \`X-Requested-With: XMLHttpRequest\`, or when its body is JSON by its \`Content-Type\`.

\`\`\`json
{ "error": "not_found", "detail": "Nothing is here: /nowhere" }
\`\`\`

\`error\` is the code; programs should look at it and not at \`detail\`, whose wording may change. \`detail\` is there
when the status is below 500. From 500 on the client is told nothing but the code; the reason is in the general log
under module \`error\`, with its stack. In \`dev\` a 500 shows its stack to a program, and to a person the source lines around the place,
the stack and the request; but only when the Host is a loopback one or \`server.allowed_hosts\` is set, so that a page of
another site cannot read it. Cookies, \`Authorization\` and fields that look like secrets are masked there.

## Pages of your own

A view in \`paths.errors\` (\`routes/errors\`) takes the place of the small page: \`404.html\` for its status, else \`4xx.html\` or
\`5xx.html\` for its class, else \`error.html\`. It may use a layout, like every [view](views.md), and these names:

| name | is |
| --- | --- |
| \`status\`, \`title\` | 404, \`Not Found\` |
| \`code\`, \`detail\` | as in the JSON; \`detail\` is empty from 500 on, but in \`dev\` |
| \`id\` | the request id, which the log names too |
| \`csp_nonce\` | the [nonce](security.md#header-fields) of the answer, empty where \`SVC_MwHeaders\` did not run |
| \`errors\`, \`input\` | of a 422 by [\`ctx.validate\`](forms.md#when-the-input-is-wrong): what is wrong by field, and what was typed. Empty objects for other errors. \`@error\`, \`errorsOf()\` and \`old()\` read them |

There is no session, flash bag, token or other helper: an error may come from any of them. Header fields that were set so far are sent.
Not used for paths that begin with \`/svc-\`, for requests that are refused on the connection (below), and when the queue of the pool
is full: that answer must cost little. In \`dev\` a page of your own for 500 hides the one with source lines and stack: the demo has \`4xx.html\` alone. A view that fails is logged under module \`error\`, and the small page is sent until its
file has changed. \`svc.js check\` compiles them all.

## What is kept

An error drops the header fields that described the reply that never came, such as \`Content-Type\`, \`Cache-Control\`,
\`ETag\` and \`Location\`. Other fields stay, \`Content-Security-Policy\` for one, and a \`Cache-Control\` that is \`no-store\`
or \`private\`. Cookies that were set before stay below 500; from 500 on they are dropped, since they belong to work that
failed.

Input that \`ctx.validate\` refuses is 422 with \`errors\` in place of \`detail\`; a form may be [sent back to its
page](forms.md#when-the-input-is-wrong) instead, 303.

\`\`\`json
{ "error": "invalid", "errors": { "title": ["Required"], "tags.1": ["Must have at most 20 characters"] } }
\`\`\`

An action or middleware throws such an error with \`ctx.fail(status, code, message)\`, under a code of its own
(\`snake_case\`). Anything else that is thrown is 500 \`internal_error\`.

The refusals of \`SVC_MwCsrf\`, \`SVC_MwCsrfCheck\` and \`SVC_MwJwt\` are JSON for every client. That of a CSRF check has a
\`reason\` in place of \`detail\`; what each means is in
[troubleshooting](troubleshooting.md#reasons-of-a-refused-form). With \`setup.csrf.redirect\` it is a redirect, 302.

\`\`\`json
{ "error": "csrf_invalid", "reason": "expired" }
\`\`\`

Some requests are refused on the connection, before there is a request: a malformed one (400), one that comes too slowly
(408), a header section that is too large (431), an extension of a chunk that is too large (413), CONNECT (405).
They get the page, since nothing is known of the client, but for a request whose header section has come and whose body is
late or malformed. They are counted in \`/svc-status\`, and have \`-\` for method and path in the access log; the general log has a
line under module \`socket\`, at most one a second.

A client that leaves before it is answered is written as status 499 in the access log.

## Codes

| status | code | meaning |
| --- | --- | --- |
`

const middle = `
\`request_timeout\` and \`header_too_large\` are answered on the connection: the former shows its code where the header section
has come, the latter never does.

## Exit status

| status | meaning |
| --- | --- |
`
