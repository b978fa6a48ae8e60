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
    'A failure at run time, such as a taken port or an uncaught error; a second SIGTERM or SIGINT; an `init` that ' +
    'failed.',
  usage: 'A wrong command line; standard error says where.',
  config: 'A wrong configuration, middleware or route file; for `check`, anything at all.',
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

Programs should read the code in \`error\`: the wording of \`detail\` may change. From 500 on there is no \`detail\`; the general log has
reason and stack, under module \`error\`. In \`dev\` a 500 shows its stack, and to a person source lines and the request, with
secrets masked, but only for a loopback Host or with \`server.allowed_hosts\` set.

## Pages of your own

A view in \`paths.errors\` (\`routes/errors\`) replaces the small page: \`404.html\` for its status, else \`4xx.html\` or \`5xx.html\`, else
\`error.html\`. It is a [view](views.md) with these names, and without session, flash bag, token or other helpers:

- \`status\`, \`title\`: 404, \`Not Found\`
- \`code\`, \`detail\`: as in the JSON; from 500 on \`detail\` is empty except in \`dev\`
- \`id\`: the request id, which the log names too
- \`csp_nonce\`: the [nonce](security.md#header-fields), empty without \`SVC_MwHeaders\`
- \`errors\`, \`input\`: of a 422 by [\`ctx.validate\`](forms.md#when-the-input-is-wrong), else empty; \`@error\`, \`errorsOf()\` and \`old()\`
  read them

Paths that begin with \`/svc-\`, requests refused on the connection (below) and the 503 of a full queue keep the small page. In
\`dev\` your page for 500 hides source lines and stack. If your page fails, module \`error\` logs it and the small page is sent
until the file changes. \`svc.js check\` compiles them all.

## What is kept

An error drops the header fields that described the reply, such as \`Content-Type\`, \`ETag\`, \`Location\` and \`Cache-Control\` other than
\`no-store\` or \`private\`. Others stay, such as \`Content-Security-Policy\`. Cookies stay below 500 and are dropped from 500 on.

\`ctx.fail(status, code, message)\` throws an error with a code of your own (\`snake_case\`). Anything else that is thrown is 500
\`internal_error\`. These differ:

- Input that \`ctx.validate\` refuses is 422 with \`errors\` in place of \`detail\`, or a
  [redirect to the form](forms.md#when-the-input-is-wrong).
- \`SVC_MwCsrf\`, \`SVC_MwCsrfCheck\` and \`SVC_MwJwt\` refuse with JSON for every client. A CSRF check gives a
  [\`reason\`](troubleshooting.md#reasons-of-a-refused-form) in place of \`detail\`, or with \`setup.csrf.redirect\` a 302.
- Refused on the connection: malformed (400) and slow (408) requests, CONNECT (405), and too large a header section (431) or
  extension of a chunk (413). They get the page, unless the header section has come. \`/svc-status\` counts them. The access log has \`-\`
  for method and path, the general log a line of module \`socket\`, at most one a second.
- A client that leaves before its answer is status 499 in the access log.

## Codes

| status | code | meaning |
| --- | --- | --- |
`

const middle = `
\`header_too_large\` never shows, since the page names no code; \`request_timeout\` shows only for a late body.

## Exit status

| status | meaning |
| --- | --- |
`
