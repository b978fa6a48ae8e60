import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { mock, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { init, initApplication, typeScriptFiles } from '../../lib/commands/init.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { readMiddlewareConfig } from '../../lib/modules/middleware-config.ts'
import { readRouteFiles } from '../../lib/application/route-files.ts'
import { Views } from '../../lib/views/cache.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const files = [
  'svc.json',
  'svc.local.json',
  '.gitignore',
  'routes/app.json',
  'routes/home.mjs',
  'routes/home.html',
  'public/style.css',
  'routes/middleware/config.json',
  'test/app.test.mjs',
  'package.json',
  'AGENTS.md',
]

test('creates the files of an application, even if the folder and its parents do not exist', () => {
  const folder = join(temporaryFolder(), 'a', 'b')
  assert.deepEqual(initApplication(folder), files)
  for (const file of files) assert.ok(statSync(join(folder, file)).size > 0, file)
})

test('its configuration is for prod; the local file has a new key of 32 bytes, and only its owner can read it', () => {
  const [one, two] = [join(temporaryFolder(), 'one'), join(temporaryFolder(), 'two')] as const
  const keys = [one, two].map((folder) => {
    initApplication(folder)
    const { config, warnings } = loadConfig(join(folder, 'svc.json'))
    assert.deepEqual(warnings, [])
    assert.equal(config['app.env'], 'prod')
    assert.equal(statSync(join(folder, 'svc.local.json')).mode & 0o7777, 0o600)
    const { app_key: _, $schema, ...shown } = JSON.parse(readFileSync(join(folder, 'svc.json'), 'utf8')) as Record<string, unknown>
    assert.deepEqual([_, 'admin' in shown, existsSync(join(folder, $schema as string))], [undefined, false, true])
    return config.app_key
  })
  for (const key of keys) assert.match(key, /^[A-Za-z0-9_-]{43}$/)
  assert.notEqual(keys[0], keys[1])
  const ignored = readFileSync(join(one, '.gitignore'), 'utf8').split('\n')
  for (const line of ['svc.local.json', '.cached/', '.data/', '.logs/', '*.db', '*.db-*']) assert.ok(ignored.includes(line), line)
})

test('its npm test names a file of the server that every Node can load', () => {
  const folder = join(temporaryFolder(), 'app')
  initApplication(folder)
  const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { scripts: { test: string } }
  const [, file = ''] = /--import "([^"]+)"/.exec(scripts.test) ?? []
  assert.equal(resolve(folder, file), fileURLToPath(new URL('../../bin/register.js', import.meta.url)))
})

test('its routes, middleware configuration, actions and view work', async () => {
  const folder = join(temporaryFolder(), 'app')
  initApplication(folder)
  const { config } = loadConfig(join(folder, 'svc.json'))
  const { files: routeFiles, problems } = readRouteFiles(join(folder, config['paths.routes']), {
    root: folder,
    middlewareKnown: (name) => name === 'SVC_MwHeaders',
  })
  assert.deepEqual(problems, [])
  const records = routeFiles.flatMap((file) => file.records.map(({ record }) => record))
  assert.deepEqual(records.map(({ name, action }) => [name, action]), [
    ['home', 'routes/home.mjs'],
    ['hello', 'routes/home.mjs@hello'],
  ])
  const { load, setup } = readMiddlewareConfig(join(folder, config['paths.middleware']), ['headers'])
  assert.deepEqual([load, setup], [[], { headers: {} }])

  const module = (await import(pathToFileURL(join(folder, 'routes/home.mjs')).href)) as Record<
    'default' | 'hello',
    (context: object) => unknown
  >
  assert.deepEqual(module.hello({ params: { name: 'ann' } }), { hello: 'ann' })

  const views = new Views({
    root: folder,
    cacheFolder: join(folder, '.cached'),
    ram: true,
    disk: false,
    readable: false,
    version: '1',
    onProblem: assert.fail,
  })
  const html = module.default({
    url: (name: string, parameters: { name: string }) => `/${name}/${parameters.name}`,
    view: (file: string, data: Record<string, unknown>) => views.render(file, data, { csp_nonce: '' }),
  })
  for (const part of ['<h1>It works</h1>', '<dt>routes/app.json</dt>', '<a href="/hello/world">/hello/world</a>']) {
    assert.ok(String(html).includes(part), part)
  }
  assert.doesNotMatch(String(html), /@|\{\{/)
})

test('its configuration, routes and middleware configuration name their schemas first, for editors', () => {
  const folder = join(temporaryFolder(), 'app')
  initApplication(folder)
  const rows = [
    ['svc.json', 'docs/svc.schema.json'],
    ['routes/app.json', 'docs/schemas/routes.schema.json'],
    ['routes/middleware/config.json', 'docs/schemas/middleware.schema.json'],
  ] as const
  for (const [file, schema] of rows) {
    const content = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Record<string, string>
    const { $schema = '' } = content
    assert.equal(Object.keys(content)[0], '$schema', file)
    assert.ok($schema.startsWith('../'), $schema)
    const found = resolve(folder, dirname(file), $schema)
    assert.equal(found, fileURLToPath(new URL(`../../${schema}`, import.meta.url)))
    assert.ok(existsSync(found), found)
  }
})

test('refuses a folder that is not empty, and keeps it unchanged', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, '.hidden'), '')
  assert.throws(() => initApplication(folder), {
    message: `Cannot create an application in ${folder}: it is not empty; name a new folder`,
  })
  assert.deepEqual(readdirSync(folder), ['.hidden'])
})

test('refuses a file at the path of the folder', () => {
  const file = join(temporaryFolder(), 'file')
  writeFileSync(file, 'mine')
  assert.throws(() => initApplication(file), /Cannot create an application in .*: EEXIST/)
  assert.equal(readFileSync(file, 'utf8'), 'mine')
})

test('leaves no file behind when it fails half-way', () => {
  const folder = temporaryFolder()
  const tooLong = 'x'.repeat(300)
  assert.throws(() => initApplication(join(folder, tooLong)), /ENAMETOOLONG/)
  assert.deepEqual(readdirSync(folder), [])

  const file = { name: 'routes/deep/a.json', text: '[]', mode: 0o644 }
  for (const bad of [{ ...file, name: tooLong }, { ...file, name: `new/${tooLong}` }, file]) {
    assert.throws(() => initApplication(join(folder, 'a', 'app'), () => [file, bad]), /Cannot create .*(ENAMETOOLONG|EEXIST)/)
    assert.deepEqual(readdirSync(folder), [])
  }
})

test('keeps an existing folder when it fails', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'app'))
  chmodSync(folder, 0o755)
  const root = process.geteuid?.() === 0
  chmodSync(join(folder, 'app'), 0o555)
  if (root) process.seteuid?.(65534)
  try {
    assert.throws(() => initApplication(join(folder, 'app')), /Cannot create an application in .*EACCES/)
  } finally {
    if (root) process.seteuid?.(0)
  }
  assert.ok(existsSync(join(folder, 'app')))
})

test('init prints the created files or the error, and returns the exit status', () => {
  const folder = join(temporaryFolder(), 'app')
  const output = mock.method(process.stdout, 'write', () => true)
  const errors = mock.method(process.stderr, 'write', () => true)
  const statuses = [init(folder), init(folder)]
  const written = output.mock.calls.map(({ arguments: [text] }) => text).join('')
  const failed = errors.mock.calls.map(({ arguments: [text] }) => text).join('')
  output.mock.restore()
  errors.mock.restore()
  assert.deepEqual(statuses, [0, 1])
  for (const file of files) assert.ok(written.includes(`  ${file}\n`), file)
  assert.equal(failed, `Cannot create an application in ${folder}: it is not empty; name a new folder\n`)
})

test('in TypeScript there are types for checks, from beside the folder, and running needs no package', () => {
  const folder = join(temporaryFolder(), 'app')
  const made = initApplication(folder, typeScriptFiles)
  assert.deepEqual(made, [...files.map((file) => file.replace('.mjs', '.ts')), 'tsconfig.json'])
  const read = (file: string) => JSON.parse(readFileSync(join(folder, file), 'utf8'))
  const { dependencies, devDependencies, type } = read('package.json')
  assert.deepEqual([dependencies, Object.keys(devDependencies), type], [undefined, ['@types/node', 'typescript'], 'module'])
  const [types] = read('tsconfig.json').compilerOptions.paths.svc as string[]
  assert.match(types ?? '', /^\.\.?\//)
  assert.ok(existsSync(join(folder, types ?? '')))
  assert.deepEqual(read('routes/app.json').routes.map(({ action }: { action: string }) => action), ['routes/home.ts', 'routes/home.ts@hello'])
})

test('a folder behind a link gets paths relative to its real location', () => {
  const real = join(temporaryFolder(), 'deep/er')
  const link = join(temporaryFolder(), 'link')
  mkdirSync(real, { recursive: true })
  symlinkSync(real, link)
  initApplication(join(link, 'app'), typeScriptFiles)
  const { compilerOptions } = JSON.parse(readFileSync(join(real, 'app/tsconfig.json'), 'utf8'))
  assert.ok(existsSync(join(real, 'app', compilerOptions.paths.svc[0])))
})

test('init --ts requires a Node that runs TypeScript, names the versions, and creates nothing without one', () => {
  const folder = join(temporaryFolder(), 'app')
  const runs = Boolean(Reflect.get(process.features, 'typescript'))
  const output = mock.method(process.stdout, 'write', () => true)
  const errors = mock.method(process.stderr, 'write', () => true)
  const status = init(folder, true)
  const failed = errors.mock.calls.map(({ arguments: [text] }) => text).join('')
  output.mock.restore()
  errors.mock.restore()
  assert.deepEqual([status, existsSync(folder)], runs ? [0, true] : [1, false])
  const why = `Node ${process.versions.node} cannot run it; use Node 22.18 or later, 24 or 26`
  assert.equal(failed, runs ? '' : `Cannot create an application in TypeScript: ${why}\n`)
})

test('AGENTS.md has at most 60 lines, and paths that lead to the server and its documents', () => {
  for (const [files, ending] of [[undefined, '.mjs'], [typeScriptFiles, '.ts']] as const) {
    const folder = join(temporaryFolder(), 'app')
    initApplication(folder, files)
    const text = readFileSync(join(folder, 'AGENTS.md'), 'utf8')
    assert.ok(text.trimEnd().split('\n').length <= 60)
    const paths = new Set([...text.matchAll(/[`"](\.\.?\/[^`"]+)[`"]/g)].map(([, path = '']) => path))
    assert.ok(paths.size >= 4)
    for (const path of paths) assert.ok(existsSync(join(folder, path)), path)
    assert.equal(text.includes(`test/*.test${ending}`), true)
    assert.equal(text.includes('npm run check'), ending === '.ts')
    assert.doesNotMatch(text, /undefined|\[object/)
  }
})
