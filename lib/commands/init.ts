/**
 * The command `init`: creates a new application in an empty or missing folder, completely or not at all.
 *
 * Its `package.json` has scripts for development and tests. In TypeScript it also lists the packages that check the
 * types; running does not need them.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, realpathSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, relative, resolve, sep } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { exitStatus } from '../process/process.ts'
import { agentsText } from './agents.ts'
import { calledFolder } from './server-folder.ts'

/** A file to create: its name relative to the application's folder, its content and its mode. */
interface ApplicationFile {
  readonly name: string
  readonly text: string
  readonly mode: number
}

const privateMode = 0o600
const publicMode = 0o644
const appKeyBytes = 32
const server = calledFolder()
const launcher = join(server, 'bin/svc.js')
/** Resolves `import ... from 'svc'` to this server in programs that it did not load. */
const registerFile = join(server, 'bin/register.js')
const docsFolder = join(server, 'docs')
/** The schemas with which editors complete and check `svc.json`, route files and the middleware configuration. */
const schemaFile = join(docsFolder, 'svc.schema.json')
const routeSchemaFile = join(docsFolder, 'schemas/routes.schema.json')
const middlewareSchemaFile = join(docsFolder, 'schemas/middleware.schema.json')
/** The types of `svc` for the TypeScript compiler. */
const typesFile = join(server, 'lib/svc.d.ts')
/** The version of the package that checks types; the server's tests use it too. */
const typeScriptRange = '^7.0.2'

const gitignore = `# Secrets of this machine: app_key, which signs tokens, and the admin's password.
svc.local.json
.svc.local.json.*.tmp
.cached/
.data/
.logs/
node_modules/
# Databases of the application.
*.db
*.db-*
`

const routes = (module: string, schema: string): string => `{
  "$schema": ${JSON.stringify(schema)},
  "defaults": { "middleware": "SVC_MwHeaders" },
  "routes": [
    { "name": "home", "url": "/", "method": "GET", "action": "${module}" },
    { "name": "hello", "url": "/hello/:name", "method": "GET", "action": "${module}@hello" }
  ]
}
`

const about = `// The actions of the routes in app.json. An action takes the context of the request and returns the
// reply: a string is HTML, an object is JSON, and ctx.view() renders a view.
`

const page = (module: string): string => `ctx.view('routes/home.html', {
    title: 'It works',
    hello: ctx.url('hello', { name: 'world' }),
    files: [
      { name: 'routes/app.json', use: 'the routes: which action each URL runs' },
      { name: '${module}', use: 'the actions' },
      { name: 'routes/home.html', use: 'the view of this page' },
      { name: 'public/style.css', use: 'its style sheet; public has the static files' },
      { name: 'routes/middleware/config.json', use: 'the middleware to load' },
      { name: 'svc.json', use: 'the configuration' },
      { name: 'svc.local.json', use: 'secrets of this machine: its key, and later the admin' },
    ],
  })
`

const action = (module: string): string => `${about}
export default (ctx) =>
  ${page(module)}
export const hello = (ctx) => ({ hello: ctx.params.name })
`

const typedAction = (module: string): string => `${about}import type { Action } from 'svc'

const home: Action = (ctx) =>
  ${page(module)}
export default home

// The pattern of the route types its parameters.
export const hello: Action<'/hello/:name'> = (ctx) => ({ hello: ctx.params.name })
`

const view = `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>{{ title }}</title>
  <link rel="stylesheet" href="/style.css">
</head>
<body>
  <h1>{{ title }}</h1>
  <p>Start here: this page comes from the following files.</p>
  <dl>
    @foreach file in files
    <dt>{{ file.name }}</dt>
    <dd>{{ file.use }}</dd>
    @endforeach
  </dl>
  <p>An action can also return data: <a href="{{ hello }}">{{ hello }}</a></p>
</body>
</html>
`

const styleSheet = `:root { color-scheme: light dark }
body { max-width: 40rem; margin: 4rem auto; padding: 0 1rem; font: 1.1rem/1.6 system-ui, sans-serif }
dt { font-family: ui-monospace, monospace; font-size: 1rem }
dd { margin: 0 0 .8rem 1.5rem }
`

const test = `// The tests of the application: npm test. docs/testing.md of the server describes the client.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { testApp } from 'svc'

// Where the application of a test keeps its files and databases, instead of yours.
const folder = mkdtempSync(join(tmpdir(), 'app-test-'))
process.env.STATE_DIRECTORY = folder
const app = await testApp(new URL('..', import.meta.url))
after(async () => {
  await app.close()
  rmSync(folder, { recursive: true })
})
const client = app.client()

test('the start page links to the greeting', async () => {
  const response = await client.get('/')
  assert.equal(response.status, 200)
  const page = await response.text()
  assert.ok(page.includes('<a href="/hello/world">'), page)
})

test('greets by name', async () => {
  const response = await client.get('/hello/Ada')
  assert.deepEqual(await response.json(), { hello: 'Ada' })
})
`

const middleware = (schema: string): string => `{
  "$schema": ${JSON.stringify(schema)},
  "load": [],
  "setup": { "headers": {} }
}
`

/** Creates an application, prints the created files or the error, and returns the exit status, 0 or 1. */
export function init(folder: string, typeScript = false): number {
  try {
    if (typeScript && !Reflect.get(process.features, 'typescript')) {
      const why = `Node ${process.versions.node} cannot run it; use Node 22.18 or later, 24 or 26`
      throw new Error(`Cannot create an application in TypeScript: ${why}`)
    }
    const files = initApplication(folder, typeScript ? typeScriptFiles : applicationFiles)
    process.stdout.write(`Created in ${resolve(folder)}:\n${files.map((file) => `  ${file}\n`).join('')}`)
    process.stdout.write('In that folder, npm run dev starts it on http://127.0.0.1:8080, and npm test tests it.\n')
    if (typeScript) process.stdout.write('Run npm install for npm run check. Running the server needs no package.\n')
    return exitStatus.ok
  } catch (error) {
    process.stderr.write(`${reasonOf(error)}\n`)
    return exitStatus.failed
  }
}

/**
 * Creates an application in a folder, which must be empty or missing.
 * @param filesFor returns the files for the folder, a real path
 * @returns the created files, relative to the folder
 * @throws Error with the reason: the folder is not empty, or is not writable. It leaves no file behind.
 */
export function initApplication(folder: string, filesFor = applicationFiles): string[] {
  const root = resolve(folder)
  try {
    const first = mkdirSync(root, { recursive: true }) // The topmost folder that was missing.
    if (readdirSync(root).length > 0) throw new Error('it is not empty; name a new folder')
    const files = filesFor(realpathSync(root))
    createFiles(root, first, files)
    return files.map(({ name }) => name)
  } catch (error) {
    throw new Error(`Cannot create an application in ${root}: ${reasonOf(error)}`, { cause: error })
  }
}

function createFiles(root: string, first: string | undefined, files: readonly ApplicationFile[]): void {
  try {
    for (const { name, text, mode } of files) {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      writeFileSync(join(root, name), text, { mode, flag: 'wx' })
    }
  } catch (error) {
    // The folder was empty: everything in it was created here.
    for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true })
    for (let path = root; first !== undefined && path.length >= first.length; path = dirname(path)) rmdirSync(path)
    throw error
  }
}

/**
 * Returns the files in the order of creation, with a new random `app_key`.
 * @param folder of the application, a real path
 */
function applicationFiles(folder: string): ApplicationFile[] {
  return filesWith(folder, { module: 'routes/home.mjs', textOf: action, test: 'test/app.test.mjs' })
}

/** Returns the files of the same application in TypeScript. */
export function typeScriptFiles(folder: string): ApplicationFile[] {
  const [major] = process.versions.node.split('.', 1)
  const packages = { '@types/node': `^${major}.0.0`, typescript: typeScriptRange }
  const names = { module: 'routes/home.ts', textOf: typedAction, test: 'test/app.test.ts', packages }
  const compiler = { name: 'tsconfig.json', text: jsonText(compilerOptions(folder)), mode: publicMode }
  return [...filesWith(folder, names), compiler]
}

/** How the files of an application in one language differ. */
interface Language {
  readonly module: string
  readonly textOf: (module: string) => string
  readonly test: string
  /** The packages that check its types. */
  readonly packages?: object
}

function filesWith(folder: string, language: Language): ApplicationFile[] {
  const { module, textOf } = language
  const appKey = randomBytes(appKeyBytes).toString('base64url')
  const routeSchema = pathTo(routeSchemaFile, join(folder, 'routes'))
  const places = { launcher: pathTo(launcher, folder), docs: pathTo(docsFolder, folder), ending: extname(module) }
  const middlewareSchema = pathTo(middlewareSchemaFile, join(folder, 'routes/middleware'))
  return [
    { name: 'svc.json', text: jsonText(configuration(folder)), mode: publicMode },
    { name: 'svc.local.json', text: jsonText({ app_key: appKey }), mode: privateMode },
    { name: '.gitignore', text: gitignore, mode: publicMode },
    { name: 'routes/app.json', text: routes(module, routeSchema), mode: publicMode },
    { name: module, text: textOf(module), mode: publicMode },
    { name: 'routes/home.html', text: view, mode: publicMode },
    { name: 'public/style.css', text: styleSheet, mode: publicMode },
    { name: 'routes/middleware/config.json', text: middleware(middlewareSchema), mode: publicMode },
    { name: language.test, text: test, mode: publicMode },
    { name: 'package.json', text: jsonText(manifest(folder, language)), mode: publicMode },
    { name: 'AGENTS.md', text: agentsText(places), mode: publicMode },
  ]
}

/** Contains the keys that an application is likely to change; all others have their defaults. */
function configuration(folder: string): object {
  return {
    $schema: pathTo(schemaFile, folder),
    app: { env: 'prod' },
    config: { local: true },
    server: { host: '127.0.0.1', port: 8080, trusted_proxies: [], allowed_hosts: [] },
    paths: { routes: 'routes', middleware: 'routes/middleware', cache: '.cached', log: '.logs', public: 'public' },
    log: { level: 'info' },
  }
}

/** The scripts of an application, which needs no package to run. `ls` fails if there are no tests; Node does not. */
function manifest(folder: string, { test, packages }: Language): object {
  const tests = `test/*${test.slice(test.indexOf('.'))}`
  return {
    private: true,
    type: 'module',
    scripts: {
      dev: `node "${pathTo(launcher, folder)}" --env dev`,
      ...(packages && { check: 'tsc' }),
      test: `ls ${tests} && node --import "${pathTo(registerFile, folder)}" --test ${tests}`,
    },
    ...(packages && { devDependencies: packages }),
  }
}

/** Allows only syntax that Node can run by erasing the types. */
function compilerOptions(folder: string): object {
  return {
    compilerOptions: {
      target: 'es2024',
      lib: ['es2024'],
      module: 'nodenext',
      types: ['node'],
      strict: true,
      noEmit: true,
      allowImportingTsExtensions: true,
      erasableSyntaxOnly: true,
      verbatimModuleSyntax: true,
      skipLibCheck: true,
      paths: { svc: [pathTo(typesFile, folder)] },
    },
  }
}

/** Returns a path for these files: relative to the folder, with `/`, beginning with a dot. */
function pathTo(file: string, folder: string): string {
  const path = relative(folder, file).split(sep).join('/')
  return path.startsWith('.') ? path : `./${path}`
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
