/**
 * The command `init`: makes a new application in an empty or missing folder, wholly or not at all.
 *
 * Actions are `.mjs` files, so that they are ES modules without a `package.json` beside them. In TypeScript there is
 * one: it lists what checks the types, which running does not need.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, realpathSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, relative, resolve, sep } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { exitStatus } from './process.ts'
import { calledFolder, codeName } from './server-folder.ts'

/** A file to make: its name relative to the application's folder, its content and its mode. */
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
/** Makes `import ... from 'svc'` this server in programs that it did not load. */
const registerFile = join(server, codeName, `register${extname(import.meta.url)}`)
/** Editors complete and check `svc.json` with it. */
const schemaFile = join(server, 'docs/svc.schema.json')
/** What `svc` means to the TypeScript compiler. */
const typesFile = join(server, 'lib/svc.d.ts')
/** The package that checks types; the tests of this server use this version. */
const typeScriptRange = '^7.0.2'

const gitignore = `# What this machine has of its own: app_key, which signs tokens, and the admin's password.
svc.local.json
.svc.local.json.*.tmp
.cached/
.logs/
node_modules/
`

const routes = (module: string): string => `{
  "defaults": { "middleware": "SVC_MwHeaders" },
  "routes": [
    { "name": "home", "url": "/", "method": "GET", "action": "${module}" },
    { "name": "hello", "url": "/hello/:name", "method": "GET", "action": "${module}@hello" }
  ]
}
`

const about = `// What the routes in app.json run. An action takes the context of the request and returns the reply:
// a string is HTML, an object is JSON, and ctx.view() renders a view.
`

const page = (module: string): string => `ctx.view('routes/home.html', {
    title: 'It works',
    hello: ctx.url('hello', { name: 'world' }),
    files: [
      { name: 'routes/app.json', use: 'the routes: which address runs what' },
      { name: '${module}', use: 'the actions that they run' },
      { name: 'routes/home.html', use: 'the view of this page' },
      { name: 'routes/middleware/config.json', use: 'the middleware to load' },
      { name: 'svc.json', use: 'the configuration' },
      { name: 'svc.local.json', use: 'what this machine has of its own: its key, and later the admin' },
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

// The pattern of its route says which parameters there are.
export const hello: Action<'/hello/:name'> = (ctx) => ({ hello: ctx.params.name })
`

const view = `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>{{ title }}</title>
  <style nonce="{{ csp_nonce }}">
    :root { color-scheme: light dark }
    body { max-width: 40rem; margin: 4rem auto; padding: 0 1rem; font: 1.1rem/1.6 system-ui, sans-serif }
    dt { font-family: ui-monospace, monospace; font-size: 1rem }
    dd { margin: 0 0 .8rem 1.5rem }
  </style>
</head>
<body>
  <h1>{{ title }}</h1>
  <p>This page is yours to change. It is made of these files:</p>
  <dl>
    @foreach file in files
    <dt>{{ file.name }}</dt>
    <dd>{{ file.use }}</dd>
    @endforeach
  </dl>
  <p>An action can answer with data as well: <a href="{{ hello }}">{{ hello }}</a></p>
</body>
</html>
`

const middleware = `{
  "load": [],
  "setup": { "headers": {} }
}
`

/** Makes an application, prints which files were made or why none, and returns the exit status, 0 or 1. */
export function init(folder: string, typeScript = false): number {
  try {
    if (typeScript && !Reflect.get(process.features, 'typescript')) {
      const why = `Node ${process.versions.node} does not run it as it is; Node 22.18 and later, 24 and 26 do`
      throw new Error(`Cannot make an application in TypeScript: ${why}`)
    }
    const files = initApplication(folder, typeScript ? typeScriptFiles : applicationFiles)
    process.stdout.write(`Made in ${resolve(folder)}:\n${files.map((file) => `  ${file}\n`).join('')}`)
    process.stdout.write('Start the server in that folder, with --env dev while you build.\n')
    if (typeScript) process.stdout.write('npm install gets what npm run check needs. Running needs no package.\n')
    return exitStatus.ok
  } catch (error) {
    process.stderr.write(`${reasonOf(error)}\n`)
    return exitStatus.failed
  }
}

/**
 * Makes an application in a folder, which must be empty or missing.
 * @param filesFor gives the files for the folder, a real path
 * @returns the files that were made, relative to the folder
 * @throws Error with the reason: the folder is not empty, or cannot be written. No file is left behind then.
 */
export function initApplication(folder: string, filesFor = applicationFiles): string[] {
  const root = resolve(folder)
  try {
    const first = mkdirSync(root, { recursive: true }) // The uppermost folder that was missing.
    if (readdirSync(root).length > 0) throw new Error('it is not empty; name a new folder')
    const files = filesFor(realpathSync(root))
    makeFiles(root, first, files)
    return files.map(({ name }) => name)
  } catch (error) {
    throw new Error(`Cannot make an application in ${root}: ${reasonOf(error)}`, { cause: error })
  }
}

function makeFiles(root: string, first: string | undefined, files: readonly ApplicationFile[]): void {
  try {
    for (const { name, text, mode } of files) {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      writeFileSync(join(root, name), text, { mode, flag: 'wx' })
    }
  } catch (error) {
    // The folder was empty: what is in it was made here.
    for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true })
    for (let path = root; first !== undefined && path.length >= first.length; path = dirname(path)) rmdirSync(path)
    throw error
  }
}

/**
 * The files in the order in which they are made, with a new random `app_key`.
 * @param folder of the application, a real path
 */
function applicationFiles(folder: string): ApplicationFile[] {
  return filesWith(folder, 'routes/home.mjs', action)
}

/** The files of the same application in TypeScript. */
export function typeScriptFiles(folder: string): ApplicationFile[] {
  return [
    ...filesWith(folder, 'routes/home.ts', typedAction),
    { name: 'package.json', text: jsonText(manifest(folder)), mode: publicMode },
    { name: 'tsconfig.json', text: jsonText(compilerOptions(folder)), mode: publicMode },
  ]
}

function filesWith(folder: string, module: string, textOf: (module: string) => string): ApplicationFile[] {
  const appKey = randomBytes(appKeyBytes).toString('base64url')
  return [
    { name: 'svc.json', text: jsonText(configuration(folder)), mode: publicMode },
    { name: 'svc.local.json', text: jsonText({ app_key: appKey }), mode: privateMode },
    { name: '.gitignore', text: gitignore, mode: publicMode },
    { name: 'routes/app.json', text: routes(module), mode: publicMode },
    { name: module, text: textOf(module), mode: publicMode },
    { name: 'routes/home.html', text: view, mode: publicMode },
    { name: 'routes/middleware/config.json', text: middleware, mode: publicMode },
  ]
}

/** Contains what an application is likely to change; every other key has its default. */
function configuration(folder: string): object {
  return {
    $schema: pathTo(schemaFile, folder),
    app: { env: 'prod' },
    config: { local: true },
    server: { host: '127.0.0.1', port: 8080, trusted_proxies: [], allowed_hosts: [] },
    paths: { routes: 'routes', middleware: 'routes/middleware', cache: '.cached', log: '.logs', public: '' },
    log: { level: 'info' },
  }
}

/** For the types alone: the server runs the application without any package. */
function manifest(folder: string): object {
  const [major] = process.versions.node.split('.', 1)
  return {
    private: true,
    type: 'module',
    scripts: {
      dev: `node "${pathTo(launcher, folder)}" --env dev`,
      check: 'tsc',
      test: `node --import "${pathTo(registerFile, folder)}" --test`,
    },
    devDependencies: { '@types/node': `^${major}.0.0`, typescript: typeScriptRange },
  }
}

/** Allows what Node can run by erasing the types. */
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

/** A path as such files have it: relative to the folder, with `/`, beginning with a dot. */
function pathTo(file: string, folder: string): string {
  const path = relative(folder, file).split(sep).join('/')
  return path.startsWith('.') ? path : `./${path}`
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
