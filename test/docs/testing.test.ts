// docs/testing.md and docs/jobs.md: the tests that they show pass; the tables of the first match the types.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { writeFiles } from '../support/application.ts'
import { optionsOfSources } from '../support/launch.ts'
import { readPage, root, shownFiles, tableBelow } from '../support/markdown.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

describe('docs/testing.md', () => {
  const page = readPage('docs/testing.md')

  it('shows a test that passes', async () => {
    await assertPasses(shownFiles(page), 'test/notes.test.mjs')
  })

  it('names existing options and members', () => {
    const source = readFileSync(fileURLToPath(new URL('lib/app.ts', root)), 'utf8')
    const names = tableBelow(page, '## A server in a program of your own').flatMap(([cell = '']) => [...cell.matchAll(/`(\w+)/g)].map((match) => match[1]))
    assert.ok(names.length >= 13)
    // `channel`, `queue` and `logger` come from the interface of `setup(app)`.
    for (const name of names) assert.ok(new RegExp(`\\b${name}(?:[?(:]| = \\()`).test(source), name)
  })
})

describe('docs/jobs.md', { skip: !hasSqlite && 'this Node has no SQLite' }, () => {
  it('shows a test that passes', async () => {
    await assertPasses(shownFiles(readPage('docs/jobs.md')), 'test/mail.test.mjs')
  })
})

/** Runs a test of an application in a process of its own: its three tests must pass. */
async function assertPasses(files: Readonly<Record<string, string>>, test: string): Promise<void> {
  const folder = temporaryFolder()
  writeFiles(folder, files)
  const compiled = process.env['SVC_TEST_TARGET'] === 'dist'
  const options = [...(compiled ? [] : optionsOfSources()), '--import', new URL(compiled ? 'dist/register.js' : 'lib/register.ts', root).href]
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const run = spawn(process.execPath, [...options, '--test', '--test-reporter=tap', join(folder, test)], { cwd: folder, env })
  let output = ''
  for (const stream of [run.stdout, run.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [status] = (await once(run, 'close')) as [number]
  assert.equal(status, 0, output)
  assert.match(output, /^# pass 3$/m)
}
