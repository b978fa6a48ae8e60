// docs/typescript.md: its application compiles, replies as shown, and passes a test.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createApp } from '../support/app.ts'
import { initApplication, typeScriptFiles } from '../../lib/commands/init.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { parseAction } from '../../lib/routing/action.ts'
import { writeFiles } from '../support/application.ts'
import { runCurlLines } from '../support/curl.ts'
import { optionsOfTarget } from '../support/launch.ts'
import { readPage, root, shownFiles } from '../support/markdown.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const page = readPage('docs/typescript.md')
/** A test of the page's application, like the one in `docs/testing.md`. */
const testOfNotes = `import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createApp } from 'svc'

const aside = mkdtempSync(join(tmpdir(), 'notes-'))
const app = createApp({
  folder: join(import.meta.dirname, '..'),
  config: { log: { console: false }, paths: { log: aside, cache: aside } },
  appKey: 'a key for the tests, of no use elsewhere',
})
const headers = { authorization: 'Bearer ann' }

after(async () => {
  await app.stop()
  app.closeLogs()
})

test('keeps a note', async () => {
  const post = (text: string) => app.request('/notes', { method: 'POST', headers, body: new URLSearchParams({ text }) })
  assert.deepEqual(await (await post('Buy milk')).json(), { text: 'Buy milk', author: 'ann' })
  assert.equal((await post('')).status, 422)
})
`
const path = (file: string): string => fileURLToPath(new URL(file, root))
/** On Node 20 the compiled server cannot run TypeScript. */
const runsTypeScript = parseAction('a.ts').kind === 'module'

async function run(args: readonly string[], cwd: string): Promise<{ status: number; output: string }> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawn(process.execPath, args, { cwd, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [status] = (await once(child, 'close')) as [number]
  return { status, output }
}

describe('docs/typescript.md', () => {
  const folder = join(temporaryFolder(), 'my-notes')
  before(() => {
    initApplication(folder, typeScriptFiles)
    writeFiles(folder, { ...shownFiles(page), 'test/notes.test.ts': testOfNotes })
    symlinkSync(path('node_modules'), join(folder, 'node_modules'))
  })

  it('compiles with the settings of init --ts', async () => {
    assert.deepEqual(await run([path('node_modules/typescript/bin/tsc'), '-p', folder], folder), { status: 0, output: '' })
  })

  it('replies as shown', async (t) => {
    if (!runsTypeScript) return t.diagnostic('this Node cannot run TypeScript')
    const app = createApp({ loaded: loadConfig(join(folder, 'svc.json'), { 'server.port': 0, 'log.console': false }) })
    t.after(async () => {
      await app.stop()
      app.closeLogs()
    })
    const { url } = await app.start()
    assert.deepEqual(app.warnings(), [])
    await runCurlLines(page, { 8081: url }, folder)
  })

  it('passes a test run as described', async (t) => {
    if (!runsTypeScript) return t.diagnostic('this Node cannot run TypeScript')
    const compiled = process.env['SVC_TEST_TARGET'] === 'dist'
    const register = path(compiled ? 'dist/register.js' : 'lib/register.ts')
    const options = compiled ? [] : optionsOfTarget()
    const test = join(folder, 'test/notes.test.ts')
    const { status, output } = await run([...options, '--import', register, '--test', '--test-reporter=tap', test], folder)
    assert.equal(status, 0, output)
    assert.match(output, /^# pass 1$/m)
  })
})
