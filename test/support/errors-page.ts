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

A program gets JSON, a person a small page. A client is a program when its \`Accept\` names JSON (not with \`q=0\`), when it sends
\`X-Requested-With: XMLHttpRequest\`, or when the \`Content-Type\` of its body is JSON. A route's
[\`error_format\`](routes-and-actions.md#route-files) may fix the form.

\`\`\`json
{ "error": "not_found", "detail": "Nothing is here: /nowhere" }
\`\`\`

Programs should read the code in \`error\`: the wording of \`detail\` may change. From 500 on there is no \`detail\`. The reason is in the general
log under module \`error\`, with its stack. In \`dev\` a 500 shows its stack, and to a person also the source lines and the request, with secrets
masked, but only for a loopback Host or with \`server.allowed_hosts\` set.

## Pages of your own

A view in \`paths.errors\` (\`routes/errors\`) replaces the small page: \`404.html\` for its status, else \`4xx.html\` or \`5xx.html\`, else
\`error.html\`. It may use a layout, like every [view](views.md), and these names:

| name | is |
| --- | --- |
| \`status\`, \`title\` | 404, \`Not Found\` |
| \`code\`, \`detail\` | as in the JSON; from 500 on \`detail\` is empty except in \`dev\` |
| \`id\` | the request id, which the log names too |
| \`csp_nonce\` | the [nonce](security.md#header-fields), empty without \`SVC_MwHeaders\` |
| \`errors\`, \`input\` | of a 422 by [\`ctx.validate\`](forms.md#when-the-input-is-wrong), else empty objects; \`@error\`, \`errorsOf()\` and \`old()\` read them |

There is no session, flash bag, token or other helper. Your page is not used for paths that begin with \`/svc-\`, for requests refused on the
connection (below), and for the 503 of a full queue. In \`dev\` your page for 500 hides the one with source lines and stack. If your page
fails, module \`error\` logs it and the small page is sent until the file changes. \`svc.js check\` compiles them all.

## What is kept

An error drops the header fields that described the reply, such as \`Content-Type\`, \`Cache-Control\`, \`ETag\` and \`Location\`. Other fields stay,
such as \`Content-Security-Policy\`, and \`Cache-Control\` if it is \`no-store\` or \`private\`. Cookies stay below 500 and are dropped from 500 on.

An action or middleware throws an error with \`ctx.fail(status, code, message)\` and a code of its own (\`snake_case\`). Anything else that is
thrown is 500 \`internal_error\`. These differ:

- Input that \`ctx.validate\` refuses is 422 with \`errors\` in place of \`detail\`, or a [redirect to the form](forms.md#when-the-input-is-wrong).
- \`SVC_MwCsrf\`, \`SVC_MwCsrfCheck\` and \`SVC_MwJwt\` refuse with JSON for every client. A CSRF check gives a
  [\`reason\`](troubleshooting.md#reasons-of-a-refused-form) in place of \`detail\`, or with \`setup.csrf.redirect\` a 302.
- Some requests are refused on the connection: a malformed one (400), a slow one (408), a header section (431) or an extension of a chunk (413)
  that is too large, CONNECT (405). They get the page, unless the header section has come. \`/svc-status\` counts them. The access log has \`-\`
  for method and path, and the general log a line of module \`socket\`, at most one a second.
- A client that leaves before its answer is status 499 in the access log.

## Codes

| status | code | meaning |
| --- | --- | --- |
`

const middle = `
\`request_timeout\` and \`header_too_large\` are answered on the connection: the page names no code, and only a body that is late shows
\`request_timeout\`.

## Exit status

| status | meaning |
| --- | --- |
`
