import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join, posix } from 'node:path'
import { describe, it, test, type TestContext } from 'node:test'
import { createApp } from '../support/app.ts'
import { helpText } from '../../lib/cli/options.ts'
import { initApplication } from '../../lib/commands/init.ts'
import { loadConfig, type LoadedConfig } from '../../lib/config/load.ts'
import { csrfReasons } from '../../lib/csrf/check.ts'
import { errorCodes } from '../../lib/http/errors.ts'
import { assertCurrent } from '../support/current.ts'
import { startApplication, writeFiles, type Files, type TestApplication } from '../support/application.ts'
import { curl, runCurlLines } from '../support/curl.ts'
import { builtInGroups } from '../support/documentation.ts'
import { renderErrors, statusesOfConnection, statusesOfReplies, usedCodes } from '../support/errors-page.ts'
import { withoutRequestId } from '../support/log-lines.ts'
import { codeOf, headingIds, links, readPage, readPages, root, shownFiles, tableBelow } from '../support/markdown.ts'
import { request } from '../support/request.ts'
import { readSources, roomOf } from '../support/sources.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const pages = readPages()
const quiet = { 'server.port': 0, 'log.console': false }
/** The smallest picture that every program can read: 1 by 1 pixels. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('every document', () => {
  it('is found', () => {
    const some = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/architecture.md']
    for (const file of some) assert.ok(pages.some((page) => page.file === file), file)
  })

  it('links to files and headings that exist', () => {
    const dead: string[] = []
    for (const page of pages) {
      for (const link of links(page).filter((target) => !/^https?:/.test(target))) {
        const [path = '', heading] = link.split('#')
        const file = path === '' ? page.file : posix.join(posix.dirname(page.file), path)
        if (!existsSync(new URL(file, root))) dead.push(`${page.file}: ${link}`)
        else if (heading !== undefined && !headingIds(readPage(file)).has(heading)) dead.push(`${page.file}: ${link}`)
      }
    }
    assert.deepEqual(dead, [])
  })

  it('is in the index by question, docs/README.md, except decisions and the index itself', () => {
    const listed = new Set(links(readPage('docs/README.md')).map((link) => posix.join('docs', link.split('#')[0] ?? '')))
    const asked = pages.map(({ file }) => file).filter((file) => /^docs\/(?!decisions\/|README)/.test(file))
    assert.deepEqual(asked.filter((file) => !listed.has(file)), [])
  })

  it('has JSON that parses', () => {
    for (const page of pages) {
      for (const { language, text } of page.blocks) {
        if (language === 'json') assert.doesNotThrow(() => JSON.parse(text), `${page.file}: ${text}`)
      }
    }
  })

  it('names files of the code that exist', () => {
    const missing: string[] = []
    for (const page of pages) {
      const shown = shownFiles(page)
      for (const [, path = ''] of page.prose.matchAll(/`((?:bin|lib|test)\/[\w./-]*)`/g)) {
        if (!(path in shown) && !existsSync(new URL(path, root))) missing.push(`${page.file}: ${path}`)
      }
    }
    assert.deepEqual(missing, [])
  })

  it('names npm scripts that exist, of which there are few', () => {
    const { scripts: own } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { scripts: object }
    assert.ok(Object.keys(own).length <= 14)
    const scripts = { ...own, dev: 'of an application made by init', check: 'of one made by init --ts' }
    for (const page of pages) {
      const text = page.prose + page.blocks.map((block) => block.text).join('')
      for (const [, name = ''] of text.matchAll(/npm run ([a-z:]+)/g)) {
        assert.ok(name in scripts, `${page.file}: ${name}`)
      }
    }
  })
})

describe('the curl lines', () => {
  for (const file of ['README.md', 'docs/getting-started.md']) {
    it(`of ${file} print what the page shows`, async (t) => {
      const page = readPage(file)
      const folder = temporaryFolder()
      for (const name of ['svc.json', 'routes']) cpSync(new URL(name, root), join(folder, name), { recursive: true })
      writeFiles(folder, { 'package.json': { type: 'module' }, 'picture.png': '' })
      writeFileSync(join(folder, 'picture.png'), png)
      for (const [path, text] of Object.entries(shownFiles(page))) {
        if (existsSync(join(folder, path))) assert.equal(readFileSync(join(folder, path), 'utf8'), text, path)
        else writeFiles(folder, { [path]: text })
      }
      const demo = await start(t, loadConfig(join(folder, 'svc.json'), { ...quiet, 'app.env': 'dev' }))
      const own = join(folder, 'my-board')
      initApplication(own)
      const made = await start(t, loadConfig(join(own, 'svc.json'), quiet))
      await runCurlLines(page, { 8080: demo, 8081: made }, folder)
    })
  }

  it('of docs/routes-and-actions.md print what the page shows', async (t) => {
    const page = readPage('docs/routes-and-actions.md')
    const { folder, url, app } = await startApplication(t, shownFiles(page), { 'paths.public': 'public' })
    assert.deepEqual(app.warnings(), [])
    writeFileSync(join(folder, 'picture.png'), png)
    await runCurlLines(page, { 8080: url }, folder)
  })

  it('of docs/errors.md print what the page shows', async (t) => {
    const page = readPage('docs/errors.md')
    const { folder, url, app } = await startApplication(t, shownFiles(page))
    assert.deepEqual(app.warnings(), [])
    await runCurlLines(page, { 8080: url }, folder)
  })

  it('of docs/configuration.md print what the page shows', async (t) => {
    const page = readPage('docs/configuration.md')
    const { 'svc.json': config = '', ...files } = shownFiles(page)
    const [, name = '', value] = /`(\w+)=(smtp:[^`]+)`/.exec(page.prose) ?? []
    process.env[name] = value
    t.after(() => delete process.env[name])
    const { url, folder, app } = await startApplication(t, files, JSON.parse(config) as Record<string, unknown>)
    assert.deepEqual(app.warnings(), [])
    await runCurlLines(page, { 8080: url }, folder)
  })

  it('of docs/security.md print what the page shows', async (t) => {
    const page = readPage('docs/security.md')
    const { 'svc.json': config = '', ...files } = shownFiles(page)
    const { url, folder, app } = await startApplication(t, files, JSON.parse(config) as Record<string, unknown>)
    assert.deepEqual(app.warnings(), [])
    assert.match((await request(`${url}/contact`)).text, /name="_csrf" value="[\w-]+\.[0-9a-f]{64}"/)
    await runCurlLines(page, { 8080: url }, folder)
  })

  it('are refused if the test cannot run them as curl would', async () => {
    const place = { origin: 'http://127.0.0.1:1', folder: '.' }
    await assert.rejects(curl('wget http://localhost:8080/', place), /begins with curl/)
    await assert.rejects(curl('curl --compressed http://localhost:8080/', place), /does not know --compressed/)
    await assert.rejects(curl('curl -s http://example.org/', place), /does not know http:\/\/example.org/)
  })
})

describe('docs/asvs.md', () => {
  it('has every requirement of levels 1 and 2 once, with one of four answers', () => {
    // How many requirements of levels 1 and 2 each section of ASVS 5.0.0 has; they come before those of level 3.
    const sections = {
      1.1: 2, 1.2: 9, 1.3: 11, 1.4: 3, 1.5: 2, 2.1: 3, 2.2: 3, 2.3: 4, 2.4: 1, 3.2: 2, 3.3: 4, 3.4: 6, 3.5: 5, 3.7: 2, 4.1: 3,
      4.2: 1, 4.4: 4, 5.1: 1, 5.2: 3, 5.3: 2, 5.4: 3, 6.1: 3, 6.2: 12, 6.3: 4, 6.4: 4, 6.5: 5, 6.6: 3, 6.8: 4, 7.1: 3, 7.2: 4, 7.3: 2,
      7.4: 5, 7.5: 2, 7.6: 2, 8.1: 2, 8.2: 3, 8.3: 1, 8.4: 1, 9.1: 3, 9.2: 4, 11.1: 2, 11.2: 3, 11.3: 3, 11.4: 4, 11.5: 1, 11.6: 1,
      12.1: 3, 12.2: 2, 12.3: 4, 13.1: 1, 13.2: 5, 13.3: 2, 13.4: 5, 14.1: 2, 14.2: 4, 14.3: 3, 15.1: 3, 15.2: 3, 15.3: 7, 16.1: 1,
      16.2: 5, 16.3: 4, 16.4: 3, 16.5: 3,
    }
    const numbered = (section: string, from: number, to: number): string[] =>
      Array.from({ length: to - from + 1 }, (_, at) => `${section}.${from + at}`)
    const wanted = Object.entries(sections).flatMap(([section, count]) => numbered(section, 1, count))
    const page = readPage('docs/asvs.md')
    const answered: string[] = []
    for (const chapter of page.prose.matchAll(/^## V.*$/gm)) {
      for (const [requirement = '', answer = ''] of tableBelow(page, chapter[0])) {
        assert.match(answer, /^(default|configuration|application|not met)$/, requirement)
        const [numbers = ''] = /^(?:\d[\d.]*(?:, | to | ))+/.exec(requirement) ?? []
        for (const [, section = '', first, last] of numbers.matchAll(/(\d+\.\d+)(?:\.(\d+)(?: to \d+\.\d+\.(\d+))?)?(?=,| )/g)) {
          const from = Number(first ?? 1)
          answered.push(...numbered(section, from, Number(last ?? first ?? sections[Number(section) as keyof typeof sections])))
        }
      }
    }
    assert.deepEqual(answered.sort(), wanted.sort())
  })
})

describe('docs/recipes/members.md', () => {
  const page = readPage('docs/recipes/members.md')

  it('has an application that works in a browser', async (t) => {
    const { url, app, folder } = await startApplication(t, shownFiles(page))
    assert.deepEqual(app.warnings(), [])
    await runCurlLines(page, { 8080: url }, folder)
    const browser = createBrowser(url)
    const signIn = (password: string): Promise<Answer> => browser.send('/login', { name: 'ann', password })
    await browser.open('/login')
    assert.equal((await signIn('wrong')).headers['location'], '/login')
    assert.match(await browser.open('/login'), /<p>Name or password is wrong\.<\/p>[^]*name="name" value="ann"/)
    assert.match(await browser.open('/login'), /<p><\/p>[^]*name="name" value=""/)
    const before = browser.cookie
    assert.equal((await signIn('correct-horse')).headers['location'], '/notes')
    assert.notEqual(browser.cookie, before)

    assert.match(await browser.open('/notes'), /<title>Notes of ann<\/title>[^]*value="Buy milk"/)
    assert.equal((await browser.send('/notes', { text: 'Buy tea' })).headers['location'], '/notes')
    assert.match(await browser.open('/notes'), /<p>Saved\.<\/p>[^]*value="Buy tea"/)
    const headers = { 'x-csrf-token': browser.fields['_csrf'] ?? '', cookie: browser.cookie }
    const counted = await request(`${url}/notes/count`, { method: 'POST', headers })
    assert.equal(counted.text, '{"clicks":1}')
    const [, signature = ''] = (browser.fields['_resource_id'] ?? '').split('.')
    const forged = `${Buffer.from('8|1').toString('base64')}.${signature}`
    assert.equal((await browser.send('/notes', { _resource_id: forged, text: 'x' })).status, 404)
    assert.doesNotMatch(await browser.open('/notes'), /Saved/)
    assert.equal((await browser.send('/notes', { _csrf: 'of an old page', text: 'x' })).headers['location'], '/notes')
    assert.match(await browser.open('/notes'), /<p>This form does not belong to your session\.[^]*value="Buy tea"/)

    assert.equal((await browser.send('/logout', {})).headers['location'], '/login')
    assert.equal((await request(`${url}/notes`, { headers: { cookie: headers.cookie } })).status, 302)
    const wanted = '/login?next=/notes%3Fday%3D7'
    await browser.open(wanted)
    assert.equal((await browser.send(wanted, { name: 'ann', password: 'wrong' })).headers['location'], wanted)
    await browser.open(wanted)
    const right = { name: 'ann', password: 'correct-horse' }
    assert.equal((await browser.send(wanted, right)).headers['location'], '/notes?day=7')
  })
})

describe('docs/routes-and-actions.md', () => {
  const page = readPage('docs/routes-and-actions.md')

  it('has a correct table of matches', async (t) => {
    const files = { ...shownFiles(page), 'users.mjs': '', 'greeting.html': '' }
    const answer = 'export default ({ route }) => route.name; export const me = ({ route }) => route.name'
    files['users.mjs'] = `${answer}; export { me as add, me as file }`
    const { url } = await startApplication(t, files)
    let asked = 0
    for (const [requests = '', name = ''] of tableBelow(page, '## Patterns and matching')) {
      for (const [, method = '', path = ''] of requests.matchAll(/`([A-Z]+) ([^`]+)`/g)) {
        assert.equal((await request(url + path, { method })).text, codeOf(name)[0], `${method} ${path}`)
        asked += 1
      }
    }
    assert.equal(asked, 6)
  })

  it('lists the built-in middleware', () => {
    const groups = builtInGroups().flatMap(({ middleware }) => [...middleware.keys()])
    const listed = tableBelow(page, '## Built-in middleware').flatMap(([cell = '']) => codeOf(cell))
    assert.deepEqual(listed.sort(), [...groups, 'SVC_MwLimit:<rule>'].sort())
  })

  it('has examples that work', async (t) => {
    const shown = (part: string): string => page.blocks.find(({ text }) => text.includes(part))?.text ?? assert.fail(part)
    const record = JSON.parse(shown('svc:openapi')) as object
    const routes = ['GET /numbers', 'GET /invoice/:id', 'GET /list', 'GET /slow', 'POST /join', 'GET /page/:id', 'GET /enter'].map((route) => {
      const [method = '', url = ''] = route.split(' ')
      const name = url.split('/')[1] ?? ''
      return { name, method, url, action: `a.mjs@${name}` }
    })
    const enter = `const users = new Map([['ann', { hash: await password.hash('x') }]])
      const [name, form] = ['ann', new Map([['password', 'x']])]`
    const actions = ["from 'svc'", 'function* numbers', 'const invoice', 'const list'].map(shown)
    const { url } = await startApplication(t, {
      'routes/a.json': [...routes, record],
      'routes/middleware/config.json': { load: ['orders.mjs', 'ready.mjs'] },
      'routes/middleware/orders.mjs': `const open = new Set([1, 2])\n${shown('metrics.counter')}`,
      'routes/middleware/ready.mjs': `const pool = { query: () => Promise.reject(new Error('down')) }\n${shown('app.ready')}`,
      'invoices/7.pdf': 'seven',
      'a.mjs': `${actions.join('')}
        const [version, entries] = [3, [1]]
        export async function* slow({ setHeader }) { setHeader('Content-Type', 'text/plain'); await new Promise(setImmediate); yield 'x'.repeat(5000) }
        export const enter = async ({ password }) => { ${enter}\n${shown('password.verify')} return { ok, stale } }`,
    }, { 'app.env': 'dev' })
    const get = (path: string, options = {}): ReturnType<typeof request> => request(url + path, options)
    assert.match((await get('/numbers')).text, /^1\n2\n[^]*\n1000\n$/)
    const slow = await get('/slow', { headers: { 'accept-encoding': 'br' } }) // A stream.
    assert.deepEqual([slow.headers['content-encoding'], slow.headers['content-length'], slow.text.length], [undefined, undefined, 5000])
    assert.match(String((await get('/invoice/7')).headers['content-disposition']), /^attachment; filename="Invoice 7.pdf"/)
    assert.equal((await get('/list', { headers: { 'if-none-match': '"v3"' } })).status, 304)
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    const joined = await get('/join', { method: 'POST', headers, body: '{"name":"Ann","email":"ann@example.org"}' })
    assert.deepEqual([joined.status, joined.text], [201, '{"id":7,"name":"Ann","email":"ann@example.org"}'])
    assert.deepEqual([(await get('/page/7')).text, (await get('/page/x')).status], ['{"id":7,"page":1}', 404])
    assert.equal((await get('/enter')).text, '{"ok":true,"stale":false}')
    assert.match((await get('/openapi.json')).text, /"openapi":\s*"3\.1/)
    assert.match((await get('/svc-metrics')).text, /^app_open_orders 2$/m)
    assert.equal((await get('/svc-ready')).status, 503)
  })
})

describe('docs/errors.md', () => {
  it('is current: npm run docs writes it', () => {
    assertCurrent('errors.md', renderErrors())
  })

  it('has a code for every HttpError of the server, and no unused one', () => {
    const used = [...usedCodes().keys(), ...Object.keys(statusesOfConnection)]
    assert.deepEqual(used.sort(), Object.keys(errorCodes).sort())
  })

  it('is right about replies that are not thrown: always JSON', async (t) => {
    const middleware = {
      csrf_invalid: 'SVC_MwCsrfCheck',
      csrf_requires_session: 'SVC_MwCsrf',
      invalid_token: 'SVC_MwJwt',
    }
    const routes = Object.entries(middleware).map(([name, one]) => {
      return { name, url: `/${name}`, action: 'a.mjs', middleware: one }
    })
    const { url } = await startApplication(t, {
      'routes/a.json': routes,
      'routes/middleware/config.json': { setup: { jwt: { key: 'x'.repeat(32) } } },
      'a.mjs': 'export default () => 1',
    })
    for (const [code, status] of Object.entries(statusesOfReplies)) {
      const headers = { accept: 'text/html', authorization: 'Bearer x' }
      const answer = await request(`${url}/${code}`, { method: 'POST', headers })
      assert.equal(answer.status, status, code)
      assert.equal((answer.json() as { error: string }).error, code)
    }
  })
})

describe('docs/architecture.md', () => {
  const page = readPage('docs/architecture.md')
  const order = (page.blocks.at(-1)?.text ?? '').trim().split('\n').map((line) => line.split(' '))
  const imports = readSources()
    .flatMap(({ file, imports: targets }) => targets.map((to) => ({ file, from: roomOf(file), to: roomOf(to) })))
    .filter(({ from, to }) => from !== to)

  it('names every room of the server', () => {
    const used = new Set(imports.flatMap(({ from, to }) => [from, to]))
    assert.deepEqual([...used].sort(), order.flat().sort())
    for (const room of used) assert.match(page.prose, new RegExp(`\`lib/${room}(?:/|\\.ts)\``))
  })

  it('is right about the direction of imports', () => {
    const level = (room: string): number => order.findIndex((line) => line.includes(room))
    const upwards = imports.filter(({ from, to }) => level(from) >= level(to))
    assert.deepEqual(upwards, [])
  })

  it('lists the files of all features', () => {
    const rows = [...page.prose.matchAll(/^- `(lib\/[\w/-]*feature\.ts)`: /gm)].map(([, file]) => file)
    const features = readdirSync(new URL('lib/', root), { recursive: true, encoding: 'utf8' })
      .filter((file) => /^(?:[\w-]+-)?feature\.ts$/.test(basename(file)))
      .map((file) => `lib/${file}`)
    assert.deepEqual(rows.sort(), features.sort())
  })
})

describe('docs/troubleshooting.md', () => {
  const tables = [
    ...['## Messages of commands and of the start', '## Messages of modules, actions and views'],
    ...['## Lines of processes, files and the engine', '## Lines of nodes', '## Lines of damaged input'],
  ]
  // The other tables are compared with the lines of servers. Node's own messages are not in the code.
  const ofNode = /^Cannot find (?:package|module)|^Cannot load \.\.\.: SyntaxError/
  const folder = new URL('lib/', root)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const code = files.map((name) => readFileSync(new URL(name, folder), 'utf8')).join('\n')

  it('quotes messages that the code has, part by part', () => {
    const page = readPage('docs/troubleshooting.md')
    const quoted = tables.flatMap((heading) => tableBelow(page, heading).flatMap(([cell = '']) => codeOf(cell)))
    const unknown = quoted.filter((text) => !ofNode.test(text)).flatMap((text) => {
      const parts = text.split(/\.\.\.|[:;,] /).map((part) => part.trim())
      return parts.filter((part) => part.length > 5 && !code.includes(part)).map((part) => `${text}: ${part}`)
    })
    assert.deepEqual(unknown, [])
    assert.ok(quoted.length > 90)
  })
})

describe('docs/troubleshooting.md on the built-in middleware', () => {
  const page = readPage('docs/troubleshooting.md')

  it('explains every reason of a refused form', () => {
    const reasons = tableBelow(page, '## Reasons of a refused form').map(([cell = '']) => cell.slice(1, -1))
    assert.deepEqual(reasons, Object.keys(csrfReasons))
  })

  it('explains every warning of the settings, and no other', async (t) => {
    const { privateKey } = generateKeyPairSync('ed25519')
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' })
    const given: readonly object[] = [
      { session: { path: 'x', tll_s: 1 }, csrf: { x: 1 }, auth: { x: 1 }, jwt: { x: 1 } },
      { jwt: { key: 'short' } },
      { jwt: { algorithms: ['EdDSA'], key } },
      { headers: { csp: "script-src 'nonce-a'" }, cors: { origins: ['https://a.example'], credentials: true } },
    ]
    const warnings: string[] = []
    for (const setup of given) {
      const { app } = await startApplication(t, {
        'routes/a.json': [
          { name: 'a', url: '/', action: 'a.mjs', middleware: 'SVC_MwJwt' },
          { name: 'b', url: '/b', action: 'a.mjs', middleware: 'SVC_MwCsrf' },
        ],
        'routes/middleware/config.json': { setup },
        'a.mjs': 'export default () => 1',
      })
      warnings.push(...app.warnings())
    }
    const texts = tableBelow(page, '### Of the built-in middleware').flatMap(([cell = '']) => codeOf(cell))
    compareWithRows(warnings, texts.map((text) => patternOf(text)))
  })

  it('explains every log line, and no other', async (t) => {
    const lines = [...(await linesOfMiddleware(t)), ...(await linesOfStores(t))]
    const rows = tableBelow(page, '## Lines of the built-in middleware')
    compareWithRows(lines, rows.flatMap(([cell = '']) => {
      const level = cell.startsWith('WARN `') ? 'WARN' : 'ERROR'
      return codeOf(cell).map((text) => patternOf(text, `${level} `))
    }))
  })
})

test('README.md lists the commands of --help', () => {
  const listed = tableBelow(readPage('README.md'), '## Command line').map(([cell = '']) => /`(\w+)/.exec(cell)?.[1] ?? '')
  const offered = [...helpText.matchAll(/^(?:Usage:| {6}) svc \[?(\w+)/gm)].map(([, word]) => word)
  assert.deepEqual(listed.filter((word) => word !== '').sort(), offered.sort())
})

describe('the version of package.json', () => {
  const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { version: string }
  const minor = version.replace(/\.\d+$/, '')
  const changes = readPage('CHANGELOG.md').prose

  it('is in README.md and CHANGELOG.md', () => {
    assert.ok(changes.includes(`\n## [${version}] - `))
    assert.ok(readPage('README.md').prose.includes(`\n${version} has `))
  })

  it('has a year of security fixes from the release of its minor version, in docs/versions.md and SECURITY.md', () => {
    const [, year = '', rest = ''] = new RegExp(`^## \\[${minor}\\.0\\] - (\\d{4})(-\\d\\d-\\d\\d)$`, 'm').exec(changes) ?? []
    const end = `${Number(year) + 1}${rest}`
    const [row] = tableBelow(readPage('docs/versions.md'), '## Support')
    assert.deepEqual([row?.[0], row?.[1], row?.[3]], [minor, year + rest, end])
    assert.deepEqual(tableBelow(readPage('SECURITY.md'), '## Supported versions')[0], [`${minor}.x`, end])
  })

  it('has a section on upgrading to its minor version', () => {
    assert.match(readPage('docs/upgrading.md').prose, new RegExp(`^## From \\S+ to ${minor}$`, 'm'))
  })
})

async function start(t: TestContext, loaded: LoadedConfig): Promise<string> {
  const app = createApp({ loaded })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  const { url } = await app.start()
  return url
}

/** Returns the pattern for a text of a table; `...` is any text. */
function patternOf(text: string, before = ''): RegExp {
  const parts = text.split('...').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`^${before}${parts.join('[^]*')}$`)
}

function compareWithRows(texts: readonly string[], rows: readonly RegExp[]): void {
  assert.deepEqual(texts.filter((text) => !rows.some((row) => row.test(text))), [])
  assert.deepEqual(rows.filter((row) => !texts.some((text) => row.test(text))), [])
}

/** Returns level and message of the WARN and ERROR lines of module `error`. */
function problemsOf({ lines }: Pick<TestApplication, 'lines'>): string[] {
  const found = lines().map((line) => /^\[[^\]]+\] \[(WARN|ERROR) *\] \[error\] (.*)$/.exec(line))
  return found.flatMap((match) => (match === null ? [] : [withoutRequestId(`${match[1]} ${match[2]}`)]))
}

/** Returns the log lines of middleware and helpers that are used wrongly in every way. */
async function linesOfMiddleware(t: TestContext): Promise<string[]> {
  const actions = {
    check: ['SVC_MwCsrfCheck', '() => 1'],
    stateful: ['SVC_MwCsrf', '() => 1'],
    auth: ['SVC_MwIsAuth', '() => 1'],
    jwt: ['SVC_MwJwt', '() => 1'],
    session: ['', '({ session }) => session.get("a")'],
    flash: ['', '({ flash }) => { flash("a").set("b", 1) }'],
    late: ['SVC_MwSession', `(ctx) => {
      ctx.response.writeHead(200)
      ctx.response.flushHeaders()
      ctx.session.set('a', 1)
      return ctx.session.save()
    }`],
    value: ['SVC_MwSession', '({ session }) => { session.set("a", 1n) }'],
    key: ['SVC_MwSession', '({ session }) => { session.set(7, 1) }'],
    bag: ['SVC_MwSession', '({ flash }) => { flash("a").set("b", 1n) }'],
    noId: ['SVC_MwSession', '({ flash }) => flash("")'],
    render: ['', '({ resourceInput }) => resourceInput(undefined)'],
    sign: ['', '({ resourceInput }) => resourceInput("\\ud800")'],
  }
  const entries = Object.entries(actions)
  const routes = entries.map(([name, [middleware]]) => ({ name, url: `/${name}`, action: `a.mjs@${name}`, middleware }))
  const application = await startApplication(t, {
    'routes/a.json': routes,
    'a.mjs': entries.map(([name, [, text]]) => `export const ${name} = ${text}\n`).join(''),
  })
  for (const name of Object.keys(actions)) {
    await request(`${application.url}/${name}`, { method: 'POST' }).catch(() => {}) // One closes its connection.
  }
  const secure = await startSessions(t, { cookie: '__Host-a' })
  await request(`${secure.url}/set`)
  return [...problemsOf(application), ...problemsOf(secure)]
}

/** Returns the log lines of stores that are full, damaged, unreadable or not writable. */
async function linesOfStores(t: TestContext): Promise<string[]> {
  const full = await startSessions(t, { max: 1 })
  for (let count = 0; count < 3; count += 1) await request(`${full.url}/set`)

  const files = await startSessions(t, { store: 'file', path: 'sessions', sweep_every: 1 })
  const begin = async (): Promise<Record<string, string>> => {
    const { headers } = await request(`${files.url}/set`)
    return { cookie: String(headers['set-cookie']).split(';', 1)[0] ?? '' }
  }
  const folder = join(files.folder, 'sessions')
  const damaged = await begin()
  for (const name of readdirSync(folder)) {
    writeFileSync(join(folder, name), '{')
    utimesSync(join(folder, name), new Date(), new Date(Date.now() + 3_600_000)) // the end of the session
  }
  await request(`${files.url}/get`, { headers: damaged })

  const failing = async (call: 'opendir' | 'readFile' | 'unlink', work: () => Promise<unknown>): Promise<void> => {
    const broken = t.mock.method(fsPromises, call, () => Promise.reject(new Error('no')))
    syncBuiltinESMExports()
    await work()
    broken.mock.restore()
    syncBuiltinESMExports()
  }
  const headers = await begin()
  await failing('readFile', () => request(`${files.url}/get`, { headers }))
  await failing('unlink', () => request(`${files.url}/destroy`, { headers }))
  await failing('opendir', async () => {
    await begin()
    await until(() => problemsOf(files).some((line) => line.includes('Cannot sweep')))
  })
  rmSync(folder, { recursive: true })
  writeFileSync(folder, '')
  await request(`${files.url}/set`)
  return [...problemsOf(full), ...problemsOf(files)]
}

async function startSessions(t: TestContext, session: object): Promise<TestApplication> {
  const routes = ['set', 'get', 'destroy'].map((name) => {
    return { name, url: `/${name}`, action: `a.mjs@${name}`, middleware: 'SVC_MwSession' }
  })
  const files: Files = {
    'routes/a.json': routes,
    'routes/middleware/config.json': { setup: { session } },
    'a.mjs': `export const set = ({ session }) => { session.set('a', 1) }
      export const get = ({ session }) => ({ a: session.get('a') })
      export const destroy = ({ session }) => { session.destroy() }`,
  }
  return startApplication(t, files)
}

type Answer = Awaited<ReturnType<typeof request>>

/** A minimal browser for forms: it keeps the last cookie, and the hidden fields of the current page. */
function createBrowser(origin: string): {
  readonly cookie: string
  readonly fields: Record<string, string>
  open(path: string): Promise<string>
  send(path: string, fields: Record<string, string>): Promise<Answer>
} {
  let cookie = ''
  let fields: Record<string, string> = {}
  const keep = (answer: Answer): Answer => {
    const [set] = answer.headers['set-cookie'] ?? []
    if (set !== undefined) cookie = set.split(';', 1)[0] ?? ''
    return answer
  }
  return {
    get cookie() {
      return cookie
    },
    get fields() {
      return fields
    },
    async open(path) {
      const { text } = keep(await request(origin + path, { headers: { cookie } }))
      const inputs = text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)
      fields = Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, value]))
      return text
    },
    async send(path, more) {
      const body = new URLSearchParams({ ...fields, ...more }).toString()
      const headers = { cookie, origin, 'content-type': 'application/x-www-form-urlencoded' }
      return keep(await request(origin + path, { method: 'POST', headers, body }))
    },
  }
}
