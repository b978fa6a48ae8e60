/** Checks `docs/audit.md` against the code, and against the files on disk after a server has written all of them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, it, test, type TestContext } from 'node:test'
import { createApp } from '../support/app.ts'
import { initApplication } from '../../lib/commands/init.ts'
import { RunMark } from '../../lib/process/run-mark.ts'
import { configTable } from '../../lib/config/table.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { UsedCodesFile } from '../../lib/control/used-codes-file.ts'
import { renderAudit } from '../support/audit-page.ts'
import { renderTested } from '../support/tested-page.ts'
import { assertCurrent } from '../support/current.ts'
import { tokenize, type Token } from '../support/lexer.ts'
import { tierOne } from '../sizes/measures.ts'
import { writeFiles } from '../support/application.ts'
import { readPage, tableBelow } from '../support/markdown.ts'
import { request } from '../support/request.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readPage('docs/audit.md')

/** A source file, by its path from the root, with its tokens except comments. */
interface Source {
  readonly file: string
  readonly tokens: readonly Token[]
}

const sources: readonly Source[] = ['bin', 'lib'].flatMap((folder) =>
  filesBelow(folder)
    .filter((file) => /\.[jt]s$/.test(file))
    .map((file) => ({ file, tokens: tokensOf(readFileSync(join(root, file), 'utf8')) })),
)

describe('tier 1', () => {
  const own = sources.filter(({ file }) => tierOne.test(file.slice('lib/'.length)))

  it('imports only Node modules from outside, for values and types', () => {
    assert.ok(own.length > 50)
    const outward = own.flatMap(({ file, tokens }) => outsideOf(file, tokens).map((name) => `${file}: ${name}`))
    assert.deepEqual(outward, [])
    const texts = own.filter(({ file }) => readFileSync(join(root, file), 'utf8').includes('/// <'))
    assert.deepEqual(texts, [])
  })

  it('detects every kind of import', () => {
    const rows: readonly (readonly [code: string, found: readonly string[]])[] = [
      ["import { a } from '../log/logger.ts'", ['../log/logger.ts']],
      ["import type { A } from '../log/logger.ts'", ['../log/logger.ts']],
      ["export * from '../app.ts'", ['../app.ts']],
      ["import '../views/cache.ts'", ['../views/cache.ts']],
      ["type A = import('../log/logger.ts').Logger", ['../log/logger.ts']],
      ["await import('../shared.ts')", ['../shared.ts']],
      ['await import(name)', ['import(name)']],
      ["createRequire(import.meta.url)('../shared.ts')", ['createRequire']],
      ["import { a } from 'left-pad'", ['left-pad']],
      ["process.getBuiltinModule('node:os')", []],
      ["import { a } from '../http/host.ts'\nimport { join } from 'node:path'", []],
      ["import { a } from '../http/../config/table.ts'", ['../http/../config/table.ts']],
    ]
    for (const [code, found] of rows) assert.deepEqual(outsideOf('lib/core/x.ts', tokensOf(code)), found, code)
  })

  it('has types that no other file extends', () => {
    const adding = sources.filter(({ file }) => file !== 'lib/svc.d.ts').filter(({ tokens }) => follows(tokens, 'declare', 'module') || follows(tokens, 'declare', 'global'))
    assert.deepEqual(adding.map(({ file }) => file), [])
  })

  it('is completely listed in docs/audit.md', () => {
    const parts = ['### Request processing', '### Sessions, tokens and access', '### Shared by all rooms']
    const listed = parts.flatMap((heading) => {
      return tableBelow(page, heading).map(([name = '', lines = '']) => {
        assert.match(lines, /^\d+$/, name)
        return `lib/${name.slice(1, -1)}`
      })
    })
    const missing = own.filter(({ file }) => !listed.includes(file))
    assert.deepEqual(missing.map(({ file }) => `${file}: add its row to docs/audit.md, then run npm run docs`), [])
    assert.equal(listed.length, own.length)
  })
})

test('no import cycles exist, not even of types', () => {
  const imports = new Map(sources.map((source) => [source.file, importedFiles(source)]))
  const circles: string[] = []
  const done = new Set<string>()
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' -> '))
    if (done.has(file) || way.includes(file)) return
    for (const next of imports.get(file) ?? []) visit(next, [...way, file])
    done.add(file)
  }
  for (const file of imports.keys()) visit(file, [])
  assert.ok([...imports.values()].flat().length > 1000)
  assert.deepEqual(circles, [])
})

describe('what Node does not document', () => {
  it('is used in one file', () => {
    const found = sources.flatMap(({ file, tokens }) => undocumented(tokens).map((use) => `${file}: ${use}`))
    const elsewhere = found.filter((use) => !use.startsWith('lib/core/node-internals.ts: '))
    assert.deepEqual(elsewhere, [])
    assert.ok(found.length >= 8)
  })

  it('is detected in every notation', () => {
    const rows: readonly (readonly [code: string, ...found: string[]])[] = [
      ['response._header', '_header'],
      ["response['_header'] += 'x'", '_header'],
      ['const { _header: section } = response', '_header'],
      ['const { statusCode, _header } = response', '_header'],
      ['response.assignSocket(socket)', 'assignSocket'],
      ["response['detachSocket'](socket)", 'detachSocket'],
      ['const { assignSocket } = response', 'assignSocket'],
      ["response.emit('close')", 'emit'],
      ["socket['emit']('close')", 'emit'],
      ['const { emit } = response', 'emit'],
      ['socket.destroySoon = () => socket.end()', 'destroySoon ='],
      ["socket['destroySoon'] = () => socket.end()", 'destroySoon ='],
      ['response.writeHead = function (): void {}', 'writeHead ='],
      ['socket.destroySoon = close', 'destroySoon ='],
      ["Object.defineProperty(socket, 'remoteAddress', { value: '' })", 'defineProperty socket'],
      ['Object.assign(request.socket, { destroySoon })', 'assign socket'],
      ['Reflect.set(response, name, value)', 'set response'],
      ['NetServer.prototype.close.call(server)', 'prototype.close'],
      ['ServerResponse.prototype.end = end', 'prototype.end'],
      ['get upgrade(): boolean {}', 'get upgrade'],
      ['parser?.onIncoming?.(request)', 'onIncoming'],
      ['Object.getOwnPropertySymbols(socket)', 'getOwnPropertySymbols'],
      ["server.on('connect', (_request, stream) => stream)"],
      ['new Writable({ write: (chunk, _encoding, done) => done() })'],
      ['const a = Object.assign(new IncomingMessage(socket), { method })'],
      ['response.statusCode = status'],
      ['socket.destroySoon()'],
      ["socket.on('close', () => {})"],
    ]
    for (const [code, ...found] of rows) assert.deepEqual(undocumented(tokensOf(code)), found, code)
  })
})

describe('docs/audit.md', () => {
  it('has a command that prints every import that is neither relative nor from Node: none', () => {
    const command = page.blocks.find(({ text }) => text.startsWith('grep '))?.text ?? ''
    const [, all = ''] = /^(grep [^]*?)\\\n/.exec(command) ?? []
    const print = (text: string, cwd = root): string => spawnSync('sh', ['-c', text], { cwd, encoding: 'utf8' }).stdout
    assert.ok(print(all).split('\n').length > 1000)
    assert.equal(print(command), '')
    const folder = temporaryFolder()
    const packages = ["import a from 'a'", "} from 'a'", "export * from 'a'", "import 'a'", 'import a from "a"', "  await import('a')", "const a = require('a')"]
    writeFiles(folder, { 'lib/a.ts': packages.join('\n'), 'bin/a.js': "import a from './a.ts'\nimport { b } from 'node:b'\n" })
    assert.deepEqual(print(command, folder).trimEnd().split('\n'), packages.map((line, at) => `lib/a.ts:${at + 1}:${line}`))
  })

  it('is right that every import is relative, of Node, or the types of svc', () => {
    assert.deepEqual(sources.flatMap(({ file, tokens }) => packagesIn(tokens).map((name) => `${file}: ${name}`)), [])
    const rows: readonly (readonly [code: string, ...found: string[]])[] = [
      ["import {\n  a,\n} from 'left-pad'", 'left-pad'],
      ["await import(\n  'left-pad'\n)", 'left-pad'],
      ['const a = require("left-pad")', 'left-pad'],
      ["import { createApp } from 'svc'", 'svc'],
      ["import type { App } from 'svc'"],
      ["import { a } from './a.ts'\nimport { b } from 'node:b'"],
    ]
    for (const [code, ...found] of rows) assert.deepEqual(packagesIn(tokensOf(code)), found, code)
  })

  it('has the lines of each file and tier: npm run docs writes them', () => {
    const page = renderAudit()
    assert.match(page, /^[\d,]{6} lines to read first[^]*^Tier 2 has [\d,]+ lines with comments, tier 3, .* [\d,]+\./m)
    assertCurrent('audit.md', page)
  })

  it('has a page on tests whose numbers of lines, files and faults npm run docs writes', () => {
    const tested = renderTested()
    assert.match(tested, /^\| lines of the server, of its tests \| [\d,]{6} and [\d,]{6} \|[^]*^\| faults put into the code/m)
    assertCurrent('tested.md', tested)
  })

  it('names every unusual place, and no other', () => {
    const documented = tableBelow(page, '## What is unusual in the code').flatMap<[string, (string | undefined)[]]>(([what = '', where = '']) => {
      if (where === 'nowhere') return what.split(', ').map((one) => [one, []])
      return [[what, [...where.matchAll(/`([^`]+)`/g)].map(([, file]) => file).sort()]]
    })
    const undocumentedOnes = sectionBelow('### What Node does not document')
    const [, only = ''] = /^\n*All of it is in `([^`]+)`/.exec(undocumentedOnes) ?? []
    for (const [, what = ''] of undocumentedOnes.matchAll(/^- (.+)$/gm)) documented.push([what, [only]])
    const finders: Record<string, (tokens: readonly Token[]) => boolean> = {
      '`node:child_process`': names('node:child_process'),
      '`node:vm`': names('node:vm'),
      '`eval`': called('eval'),
      '`Function`': (tokens) => called('Function')(tokens) || follows(tokens, 'new', 'Function'),
      '`import()` of a computed name': (tokens) =>
        tokens.some(({ text }, at) => text === 'import' && tokens[at + 1]?.text === '(' && tokens[at + 2]?.kind !== 'string'),
      '`node:cluster`': names('node:cluster'),
      '`node:inspector`': names('node:inspector'),
      '`node:inspector/promises`': names('node:inspector/promises'),
      '`node:module`': names('node:module'),
      '`node:sqlite`': names('node:sqlite'),
      '`node:worker_threads`': names('node:worker_threads'),
      '`process.getBuiltinModule`': (tokens) => follows(tokens, '.', 'getBuiltinModule'),
      '`destroySoon` of a socket, replaced': (tokens) => uses(tokens, 'destroySoon ='),
      '`remoteAddress` of a socket, set': (tokens) => uses(tokens, 'defineProperty socket'),
      '`close` of `net.Server`, of an HTTP server': (tokens) => uses(tokens, 'prototype.close'),
      '`emit` of a socket and of a response': (tokens) => uses(tokens, 'emit'),
      '`assignSocket`, `detachSocket`': (tokens) => uses(tokens, 'assignSocket') || uses(tokens, 'detachSocket'),
      '`outputData` of a response': (tokens) => uses(tokens, 'outputData'),
      "`onIncoming` of a socket's `parser`": (tokens) => uses(tokens, 'onIncoming'),
      "`writeQueueSize` of a socket's handle": (tokens) => uses(tokens, 'writeQueueSize'),
      '`httpAllowHalfOpen` of a server': (tokens) => uses(tokens, 'httpAllowHalfOpen'),
      '`process.binding`': (tokens) => tokens.some(({ text }) => /^(?:_linkedBinding|binding|dlopen)$/.test(text)),
    }
    const internal = sources.flatMap(({ tokens }) => undocumented(tokens).filter((use) => use.startsWith('_')))
    for (const name of new Set(internal)) finders[`\`${name}\``] = (tokens) => uses(tokens, name)
    const found = Object.entries(finders).map(([what, finds]) => {
      return [what, sources.filter(({ tokens }) => finds(tokens)).map(({ file }) => file).sort()]
    })
    assert.deepEqual(documented.sort(), found.sort())
  })

  it('names the Node modules in use', () => {
    const used = sources.flatMap(({ tokens }) =>
      tokens.filter(({ kind, text }) => kind === 'string' && text.startsWith("'node:")).map(({ text }) => text.slice(1, -1)),
    )
    const documented = [...sectionBelow('### Modules of Node').matchAll(/`(node:[^`]+)`/g)].map(([, name]) => name)
    assert.deepEqual(documented, [...new Set(used)].sort())
  })

  it('is right about what opens connections', () => {
    const served = sources.filter(({ file }) => !/\/svc-\w+\.js$/.test(file)) // Those run in browsers.
    const outward = ['fetch', 'connect', 'createConnection', 'get', 'request', 'lookup', 'resolve4', 'WebSocket', 'EventSource']
    const modules = /^(?:http|https|net|tls|dns|dgram|http2)$/
    const openers = served.filter(({ tokens }) =>
      tokens.some(({ text }, at) => {
        if (!outward.includes(text) || tokens[at + 1]?.text !== '(') return false
        const [object, dot] = [tokens[at - 2]?.text ?? '', tokens[at - 1]?.text]
        return dot !== '.' ? ['fetch', 'WebSocket', 'EventSource'].includes(text) : modules.test(object)
      }),
    )
    assert.deepEqual(openers.map(({ file }) => file), [])
    const imported = sources.flatMap(({ file, tokens }) =>
      tokens.flatMap(({ text }, at) => {
        if (!/^'node:(?:http|https|net|tls)'$/.test(text) || tokens[at - 1]?.text !== 'from') return []
        const start = tokens.findLastIndex((token, before) => before < at && token.text === 'import')
        const names = tokens.slice(start, at).filter(({ kind }) => kind === 'name').map((token) => token.text)
        return names.some((name) => outward.includes(name) || name === 'Agent') ? [file] : []
      }),
    )
    const documented = /opens one kind of connection[^`]*(`shared.url`)[^`]*`([^`]+)`/.exec(page.prose)?.[2]
    assert.deepEqual([...new Set(imported)], [documented])
  })

  it('names the environment variables in use', () => {
    const read = sources.filter(({ tokens }) => tokens.some(({ text }) => text === 'env')).flatMap(({ tokens }) =>
      tokens
        .filter(({ kind }) => kind === 'name' || kind === 'string')
        .map(({ text }) => text.replace(/^'|'$/g, ''))
        .filter((name) => /^(?:PATH|[A-Z]+(?:_[A-Z]+)+)$/.test(name)),
    )
    const listed = [...sectionBelow('## Environment variables').matchAll(/^- (`[^:]+): /gm)].flatMap(([, names = '']) => names.split(', '))
    assert.deepEqual(listed.sort(), [...new Set(read)].map((name) => `\`${name}\``).sort())
  })

  it('names the handled signals', () => {
    const heard = sources.flatMap(({ tokens }) => tokens.map(({ text }) => /^'(SIG[A-Z0-9]+)'$/.exec(text)?.[1] ?? ''))
    const documented = [...sectionBelow('## Signals').matchAll(/`(SIG\w+)`/g)].map(([, name]) => name)
    assert.deepEqual(documented.sort(), [...new Set(heard.filter((name) => name !== ''))].sort())
  })

  it('names every secret of the configuration', () => {
    const secrets = Object.entries(configTable).filter(([, row]) => 'secret' in row && row.secret)
    const documented = namesIn('## Secrets')
    for (const name of [...secrets.map(([key]) => key), 'setup.jwt.key', 'server.tls.key']) {
      assert.ok(documented.includes(name), name)
    }
  })

  /** The text below a heading, up to the next one. */
  function sectionBelow(heading: string): string {
    return page.prose.split(`\n${heading}\n`)[1]?.split(/\n#{1,6} /, 1)[0] ?? ''
  }

  /** The names in backquotes in the first cells of the table below a heading. */
  function namesIn(heading: string): string[] {
    return tableBelow(page, heading).flatMap(([cell = '']) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
  }
})

const writingApplication = {
  'routes/write.json': [
    { name: 'visit', url: '/visit', action: 'write.mjs@visit', middleware: 'SVC_MwSession' },
    { name: 'talk', url: '/talk', action: 'write.mjs@talk' },
    { name: 'upload', url: '/upload', method: 'POST', action: 'write.mjs@upload' },
    { name: 'show', url: '/show', action: 'show.html' },
  ],
  'routes/middleware/config.json': { setup: { session: { store: 'file', path: 'sessions' } } },
  ...(hasSqlite && { 'jobs/write.json': [{ name: 'write', action: 'write.mjs@visit' }] }),
  'show.html': '<p>{{ path }}</p>\n',
  'write.mjs': `
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
const modeOf = (path) => '0' + (statSync(path).mode & 0o7777).toString(8)

export const visit = ({ session }) => session.set('visited', true)
export const talk = ({ log }) => String(Array.from({ length: 1500 }, () => log("x".repeat(1000))).length)
export const upload = async ({ readForm }) => {
  const { path } = (await readForm()).files[0]
  return [modeOf(dirname(path)), modeOf(path)]
}
`,
}

test('written files have the modes in docs/audit.md', async (t) => {
  const umask = process.umask(0) // Do not reduce the modes.
  t.after(() => process.umask(umask))
  const folder = join(temporaryFolder(), 'app')
  initApplication(folder)
  writeFiles(folder, writingApplication)
  const { modeOfUpload, stop } = await writeEverything(t, folder)
  await until(() => readdirSync(join(folder, '.cached/temp')).length === 0)
  await stop()
  new RunMark(join(folder, '.cached')).begin()
  new UsedCodesFile(join(folder, '.cached'), assert.fail).write({})
  const files: Readonly<Record<string, readonly string[]>> = {
    'svc.local.json': ['svc.local.json'],
    'routes/admin.json': ['routes/admin.json'],
    '.logs': ['.logs'],
    '.logs/svc.log': ['.logs/svc.log'],
    '.logs/svc_*.log': entries('.logs', /^svc_.*\.log$/),
    '.logs/access.log': ['.logs/access.log'],
    '.logs/audit.log': ['.logs/audit.log'],
    '.cached/events': ['.cached/events'],
    '.cached/running': ['.cached/running'],
    '.cached/totp-used': ['.cached/totp-used'],
    '.cached/views': ['.cached', '.cached/views'],
    '.cached/views/*.hrb': entries('.cached/views', /\.hrb$/),
    ...(hasSqlite && { '.data': ['.data'], '.data/svc.db': ['.data/svc.db'], '.data/svc.db-lock': ['.data/svc.db-lock'] }),
    'setup.session.path': ['sessions'],
    'setup.session.path/*': entries('sessions', /./),
  }
  const modes = Object.entries(files).map(([where, paths]) => {
    assert.ok(paths.length > 0, where)
    return [where, [...new Set(paths.map((path) => modeOf(join(folder, path))))].join(' ')]
  })
  // A cell has paths, then the mode that they share.
  const documented = tableBelow(page, '## What is written').flatMap(([, ...cells]) =>
    cells.filter((cell) => cell !== '').flatMap((cell) => {
      const [, paths = '', mode = ''] = /^((?:`[^`]+` )+)(\d{4})$/.exec(cell) ?? []
      assert.ok(mode !== '', cell)
      return paths.trim().split(' ').map((path) => [path.slice(1, -1), mode])
    }),
  ).filter(([path]) => hasSqlite || path?.startsWith('.data') !== true)
  assert.deepEqual(documented, [...modes, ['.cached/temp/svc-upload-*', modeOfUpload[0]], ['.cached/temp/svc-upload-*/*', modeOfUpload[1]]])

  function entries(below: string, pattern: RegExp): string[] {
    return readdirSync(join(folder, below), { recursive: true, encoding: 'utf8' })
      .filter((name) => pattern.test(name) && statSync(join(folder, below, name)).isFile())
      .map((name) => join(below, name))
  }
})

/** Makes a server write each kind of file. Returns the modes of an upload's folder and file, and a stop function. */
async function writeEverything(t: TestContext, folder: string): Promise<{ modeOfUpload: string[]; stop: () => Promise<unknown> }> {
  const file = join(folder, 'svc.json')
  const given = JSON.parse(readFileSync(file, 'utf8')) as object
  writeFileSync(file, JSON.stringify({ ...given, log: { max_size_mb: 1 } }))
  const app = createApp({ loaded: loadConfig(file, { 'server.port': 0, 'log.console': false }) })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  const { url } = await app.start()
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const ask = async (path: string, status: number, question: Parameters<typeof request>[1] = {}) => {
    const answer = await request(url + path, question)
    assert.equal(answer.status, status, `${path}: ${answer.text}`)
    return answer
  }
  await ask('/svc-setup', 302, { headers: form, body: 'user=ann&password=correct-horse&password2=correct-horse' })
  const { headers } = await ask('/svc-login', 302, { headers: form, body: 'user=ann&password=correct-horse' })
  const cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? ''
  const record = { name: 'kept', url: '/kept', action: 'write.mjs@visit', middleware: 'SVC_MwSession', persist: true }
  await ask('/svc-routes/add', 200, { headers: { cookie }, body: JSON.stringify(record) })
  await ask('/visit', 204)
  for (const path of ['/show', '/talk', '/talk']) await ask(path, 200)
  const body = `--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n${'x'.repeat(100_000)}\r\n--b--\r\n`
  const upload = await ask('/upload', 200, { headers: { 'content-type': 'multipart/form-data; boundary=b' }, body })
  app.flushLogs()
  void app.channel('news').publish('kept over a restart')
  return { modeOfUpload: upload.json() as string[], stop: () => app.stop() }
}

function modeOf(path: string): string {
  return `0${(statSync(path).mode & 0o7777).toString(8)}`
}

/** The files below a folder of the checkout, by their paths from the root. */
function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.join(posix.relative(root, entry.parentPath), entry.name))
}

/** Returns a check whether a module is named as a string. */
function names(module: string): (tokens: readonly Token[]) => boolean {
  return (tokens) => tokens.some(({ text }) => text === `'${module}'`)
}

/** Returns a check whether a global is called by its name. */
function called(name: string): (tokens: readonly Token[]) => boolean {
  return (tokens) => tokens.some(({ text }, at) => text === name && tokens[at + 1]?.text === '(' && tokens[at - 1]?.text !== '.')
}

function follows(tokens: readonly Token[], first: string, second: string): boolean {
  return tokens.some(({ text }, at) => text === second && tokens[at - 1]?.text === first)
}

/** Returns the tokens of a source except comments. */
function tokensOf(source: string): Token[] {
  return [...tokenize(source)].filter(({ kind }) => kind !== 'comment')
}

/** Returns the imports of a tier 1 file, of values or types, from outside tier 1 and Node. */
function outsideOf(file: string, tokens: readonly Token[]): string[] {
  return tokens.flatMap(({ kind, text }, at) => {
    const after = tokens[at + 1]
    if (text === 'createRequire' || text === 'require') return [text]
    if (text === 'import' && after?.text === '(' && tokens[at + 2]?.kind !== 'string') return [`import(${tokens[at + 2]?.text})`]
    if (kind !== 'string' || !isImported(tokens, at)) return []
    const name = text.slice(1, -1)
    const target = posix.join(posix.dirname(file), name).slice('lib/'.length)
    return name.startsWith('node:') || (name.startsWith('.') && tierOne.test(target)) ? [] : [name]
  })
}

/** Whether a token that is a string names a module of an import, static, dynamic or of a type. */
function isImported(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1]?.text ?? ''
  return before === 'from' || before === 'import' || (before === '(' && tokens[at - 2]?.text === 'import')
}

/** The names of the packages that a file imports or requires, except types of `svc`. */
function packagesIn(tokens: readonly Token[]): string[] {
  return tokens.flatMap(({ kind, text }, at) => {
    const isRequired = tokens[at - 1]?.text === '(' && tokens[at - 2]?.text === 'require'
    const name = text.slice(1, -1)
    if (kind !== 'string' || !(isRequired || isImported(tokens, at)) || /^(?:\.|node:)/.test(name)) return []
    const start = tokens.findLastIndex((token, before) => before < at && token.text === 'import')
    return name === 'svc' && tokens[start + 1]?.text === 'type' ? [] : [name]
  })
}

/** The files that a file imports, by their paths from the root. */
function importedFiles({ file, tokens }: Source): string[] {
  return tokens
    .filter(({ kind, text }, at) => kind === 'string' && text.startsWith('.', 1) && isImported(tokens, at))
    .map(({ text }) => posix.join(posix.dirname(file), text.slice(1, -1)))
}

/** Names of Node objects in the sources. */
const nodeObject = /^(?:socket|response|request|server|stream|incoming)$/

/** The methods of these objects, including inherited ones. */
const nodeMethods = new Set([Socket, HttpServer, IncomingMessage, ServerResponse].flatMap(({ prototype }) => {
  const methods: string[] = []
  for (let of: object | null = prototype as object; of !== null && of !== Object.prototype; of = Object.getPrototypeOf(of) as object | null) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(of))) {
      if (typeof value === 'function') methods.push(name)
    }
  }
  return methods
}))

/** Returns the uses of undocumented Node parts, in order: private fields, replaced and borrowed methods, own events. */
function undocumented(tokens: readonly Token[]): string[] {
  const open: string[] = []
  return tokens.flatMap(({ kind, text }, at) => {
    if (['(', '[', '{'].includes(text)) open.push(text)
    if ([')', ']', '}'].includes(text)) open.pop()
    const [before, after] = [tokens[at - 1]?.text ?? '', tokens[at + 1]?.text ?? '']
    const isIndex = kind === 'string' && before === '[' && after === ']'
    const name = isIndex ? text.slice(1, -1) : kind === 'name' ? text : ''
    const isParameter = open.at(-1) === '(' && ['(', ','].includes(before)
    if (/^_[a-z]/i.test(name) && !isParameter) return [name]
    if (/^(?:assignSocket|detachSocket|getOwnPropertySymbols|httpAllowHalfOpen|onIncoming|outputData|writeQueueSize|emit)$/.test(name)) return [name]
    if (name === 'upgrade' && before === 'get') return ['get upgrade']
    if (before === 'prototype' || (before === '.' && tokens[at - 2]?.text === 'prototype')) {
      const isBorrowed = after === '=' || (after === '.' && /^(?:call|apply|bind)$/.test(tokens[at + 2]?.text ?? ''))
      if (isBorrowed) return [`prototype.${name}`]
    }
    const object = isIndex ? tokens[at - 2]?.text : before === '.' ? tokens[at - 2]?.text : undefined
    const assigned = tokens[at + (isIndex ? 2 : 1)]?.text === '='
    if (assigned && nodeObject.test(object ?? '') && nodeMethods.has(name)) return [`${name} =`]
    if (/^(?:defineProperty|defineProperties|assign|set)$/.test(name) && ['Object', 'Reflect'].includes(tokens[at - 2]?.text ?? '')) {
      const last = tokens[tokens.findIndex((token, behind) => behind > at + 1 && token.text === ',') - 1]?.text ?? ''
      const first = tokens[at + 2]?.text
      if (nodeObject.test(last) && first !== 'new') return [`${name} ${last}`]
    }
    return []
  })
}

function uses(tokens: readonly Token[], use: string): boolean {
  return undocumented(tokens).includes(use)
}
