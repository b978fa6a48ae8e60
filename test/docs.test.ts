import assert from 'node:assert/strict'
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { describe, it, test, type TestContext } from 'node:test'
import { createApp } from '../lib/app.ts'
import { initApplication } from '../lib/cli/init.ts'
import { loadConfig, type LoadedConfig } from '../lib/config/load.ts'
import { errorCodes } from '../lib/http/errors.ts'
import { startApplication, writeFiles } from './support/application.ts'
import { curl, runCurlLines } from './support/curl.ts'
import { renderErrors, statusesOfConnection, usedCodes } from './support/errors-page.ts'
import { headingIds, links, readPage, readPages, root, shownFiles, tableBelow } from './support/markdown.ts'
import { exchange, parseAnswer } from './support/raw.ts'
import { request } from './support/request.ts'
import { readSources, roomOf } from './support/sources.ts'
import { temporaryFolder } from './support/temporary-folder.ts'

const pages = readPages()
const quiet = { 'server.port': 0, 'log.console': false }
/** The smallest picture that every program can read: 1 by 1 pixel. */
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

  it('names npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { scripts: object }
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
    it(`of ${file} print what stands there`, async (t) => {
      const page = readPage(file)
      const folder = temporaryFolder(t)
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

  it('of docs/routes-and-actions.md print what stands there', async (t) => {
    const page = readPage('docs/routes-and-actions.md')
    const { folder, url, app } = await startApplication(t, shownFiles(page), { 'paths.public': 'public' })
    assert.deepEqual(app.warnings(), [])
    writeFileSync(join(folder, 'picture.png'), png)
    await runCurlLines(page, { 8080: url }, folder)
  })

  it('are refused where the test could not run them as curl would', async () => {
    const place = { origin: 'http://127.0.0.1:1', folder: '.' }
    await assert.rejects(curl('wget http://localhost:8080/', place), /begins with curl/)
    await assert.rejects(curl('curl --compressed http://localhost:8080/', place), /does not know --compressed/)
    await assert.rejects(curl('curl -s http://example.org/', place), /does not know http:\/\/example.org/)
  })
})

describe('docs/routes-and-actions.md', () => {
  const page = readPage('docs/routes-and-actions.md')
  /** Members of the class that are for the server's own parts. */
  const internal = `
    request response services body run running counted sentBytes receivedBytes holdsWorker expectsContinue givenId hasBody hostField hostCount header
    routeName sentStatus durationMs idToSend closed left outgoing outgoingIfAny lastOnConnection neverCompressed matched replyOf
    currentReply memo close`.trim().split(/\s+/)

  it('lists the members of the context', async (t) => {
    const members = await askForMembers(t)
    const documented = tableBelow(page, '### Members').map(([cell = '']) => /^`(\w+)/.exec(cell)?.[1] ?? cell)
    assert.deepEqual(documented.sort(), members.filter((name) => !internal.includes(name)).sort())
  })

  it('names no member as internal that is none', async (t) => {
    const members = await askForMembers(t)
    assert.deepEqual(internal.filter((name) => !members.includes(name)), [])
  })

  it('gives the routes of its matching table their names', async (t) => {
    const files = { ...shownFiles(page), 'users.mjs': '', 'greeting.html': '' }
    const answer = 'export default ({ route }) => route.name; export const me = ({ route }) => route.name'
    files['users.mjs'] = `${answer}; export { me as add, me as file }`
    const { url } = await startApplication(t, files)
    let asked = 0
    for (const [requests = '', name = ''] of tableBelow(page, '## Patterns and matching')) {
      for (const [, method = '', path = ''] of requests.matchAll(/`([A-Z]+) ([^`]+)`/g)) {
        assert.equal((await request(url + path, { method })).text, name.slice(1, -1), `${method} ${path}`)
        asked += 1
      }
    }
    assert.equal(asked, 6)
  })
})

describe('docs/errors.md', () => {
  it('is current: npm run docs writes it', () => {
    assert.equal(readFileSync(new URL('docs/errors.md', root), 'utf8'), renderErrors())
  })

  it('has a code for every HttpError of the server, and none that nobody uses', () => {
    const used = [...usedCodes().keys(), ...Object.keys(statusesOfConnection)]
    assert.deepEqual(used.sort(), Object.keys(errorCodes).sort())
  })

  it('is right about what is answered on the connection', async (t) => {
    const { port, lines } = await startApplication(t, {}, { 'server.header_timeout_s': 1 })
    const late = exchange(port, 'GET / HTTP/1.1\r\nHost: a\r\n')
    const large = await exchange(port, `GET / HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(17_000)}\r\n\r\n`)
    const answers = [parseAnswer(await late), parseAnswer(large)]
    assert.deepEqual(answers.map(({ status }) => status), Object.values(statusesOfConnection))
    for (const { headers, body } of answers) {
      assert.match(headers['content-type'] ?? '', /^text\/html/)
      assert.match(body, /^<!doctype html>/)
    }
    assert.deepEqual(lines('access.log'), [])
  })
})

describe('docs/architecture.md', () => {
  const page = readPage('docs/architecture.md')
  const order = (page.blocks.at(-1)?.text ?? '').trim().split('\n').map((line) => line.split(' '))
  const imports = readSources()
    .flatMap(({ file, imports: targets }) => targets.map((to) => ({ file, from: roomOf(file), to: roomOf(to) })))
    .filter(({ from, to }) => from !== to)

  it('names every room that the server is made of', () => {
    const used = new Set(imports.flatMap(({ from, to }) => [from, to]))
    assert.deepEqual([...used].sort(), order.flat().sort())
    for (const room of used) assert.match(page.prose, new RegExp(`\`lib/${room}(?:/|\\.ts)\``))
  })

  it('is right about the direction of imports', () => {
    const level = (room: string): number => order.findIndex((line) => line.includes(room))
    const upwards = imports.filter(({ from, to }) => level(from) >= level(to))
    assert.deepEqual(upwards, [])
  })

  it('lists the features with their members', () => {
    const rows = tableBelow(page, '## The context and its features').map(([, file = '']) => file.slice(1, -1))
    const features = readdirSync(new URL('lib/', root), { recursive: true, encoding: 'utf8' })
      .filter((file) => basename(file) === 'feature.ts')
      .map((file) => `lib/${file}`)
    assert.deepEqual(rows.sort(), features.sort())
  })
})

test('SECURITY.md and CHANGELOG.md know the version of package.json', () => {
  const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { version: string }
  assert.ok(readPage('CHANGELOG.md').prose.includes(`\n## [${version}]`))
  assert.ok(readPage('SECURITY.md').prose.includes(`| ${version.replace(/\d+$/, 'x')} | yes |`))
  assert.ok(readPage('README.md').prose.includes(`\n${version} has `))
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

async function askForMembers(t: TestContext): Promise<string[]> {
  const names = `export default (ctx) => {
    const names = new Set()
    for (let at = ctx; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
      for (const name of Object.getOwnPropertyNames(at)) names.add(name)
    }
    names.delete('constructor')
    return [...names]
  }`
  const { url } = await startApplication(t, {
    'routes/a.json': [{ name: 'names', url: '/', action: 'names.mjs' }],
    'names.mjs': names,
  })
  return (await request(url)).json() as string[]
}
