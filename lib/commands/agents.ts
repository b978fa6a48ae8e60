/**
 * The `AGENTS.md` of a new application: its rules for coding assistants, and the commands that check them. A test runs
 * each command and holds the text to 60 lines.
 */

/** The parts of the text that differ between applications. Paths are relative to the application's folder. */
interface AgentsOptions {
  /** `bin/svc.js` of the server. */
  readonly launcher: string
  readonly docs: string
  /** The ending of its modules: `.mjs` or `.ts`. */
  readonly ending: string
}

/** Returns the text. */
export function agentsText({ launcher, docs, ending }: AgentsOptions): string {
  const svc = `node "${launcher}"`
  const isTyped = ending === '.ts'
  const types = isTyped ? '- `npm run check`: checks the types, after `npm install`\n' : ''
  return `# Rules for this application

It runs on svc, a web application server for Node.js without dependencies: JSON route files map URLs to ES modules and
views. Its documents are Markdown in \`${docs}\`.

## Layout

- \`routes/*.json\`: the routes: name, url, method, action, middleware
- \`routes/*${ending}\`: actions, the modules that the routes name as \`path\` or \`path@export\`, from this folder
- \`routes/*.html\`: views: \`{{ expression }}\`, \`@if\`, \`@foreach\`, \`@csrf\`, \`@section\`, a line each
- \`public/\`: static files, such as \`/style.css\`
- \`routes/middleware/config.json\`: modules of middleware to load, settings of the built-in middleware
- \`jobs/*.json\`: background jobs, if there are any
- \`svc.json\`: the configuration; \`svc.local.json\`: the secrets of this machine
- \`test/*.test${ending}\`: tests with \`node:test\` and \`testApp\`

## Commands

Run the first two after every change.

- \`npm test\`: runs the tests
- \`${svc} check\`: checks configuration, routes, modules, views, and the addresses in them
${types}- \`${svc} routes\`: prints the route table
- \`${svc} types\`: writes \`svc.routes.d.ts\`, the types of the routes
- \`${svc} openapi\`: describes the routes as OpenAPI 3.1
- \`${svc} docs\`: serves the documents with a search on 127.0.0.1:8090; \`/llms.txt\` lists them
- \`npm run dev\`: runs the server on port 8080, and applies saved files

## Rules

- A URL exists only as a record of a route file. Do not start another HTTP server, and add no router.
- An action takes \`ctx\` and returns the reply: a string is HTML, an object JSON; else \`ctx.view(file, data)\`,
  \`ctx.redirect(to)\`, \`ctx.file(path)\`, \`ctx.fail(404)\`. Never write to \`ctx.response\`.
- Look up a member of \`ctx\` in \`context.md\` of the documents before you use it; it is not Express.
- Read input with \`ctx.validate(fields({...}))\` and \`import { fields } from 'svc'\`, query and parameters with
  \`{ from: 'query' }\`.
- A form that changes something is a POST with \`@csrf\`. Its route and that of its page have
  \`SVC_MwSession, SVC_MwCsrf\`. Reply with a redirect, 303. A GET changes nothing.
- Build addresses with \`url('name', { parameter })\`, in views and as \`ctx.url\`, never by joining texts.
- Never print what a user typed with \`{!! !!}\`, which does not escape.
- The Content-Security-Policy blocks \`onclick\`, \`style="..."\` and other sites: use
  \`<script nonce="{{ csp_nonce }}">\`.
- Only \`SVC_MwIsAuth\` on the route protects it; check in the action whose record it is. Passwords: \`ctx.password\`.
- Do not keep data in variables of a module: a reload and other processes do not have them. Use a database, the
  session, a channel.
- Work that outlives the response is a job (\`ctx.enqueue\`), updates of open pages are a channel (\`ctx.live\`).
- Secrets are in \`svc.local.json\` or references in \`settings\`; never in \`svc.json\`, in code, or in a commit.
- Add no package for what the server has: sessions, CSRF, validation, uploads, logs, limits, JWT, WebSockets, jobs.
- Test each route that you add: what it shows, what it refuses, that it needs the sign-in.

Start from a recipe of \`${docs}/recipes\` where one fits.
\`${docs}/troubleshooting.md\` explains messages by their text.
`
}
