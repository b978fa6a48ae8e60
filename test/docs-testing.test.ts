// docs/testing.md: the test of an application that it shows passes, and the tables are those of the types.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { writeFiles } from './support/application.ts'
import { readPage, root, shownFiles, tableBelow } from './support/markdown.ts'
import { temporaryFolder } from './support/temporary-folder.ts'

describe('docs/testing.md', () => {
  const page = readPage('docs/testing.md')

  it('shows a test that passes', async () => {
    const folder = temporaryFolder()
    const index = JSON.stringify(new URL('lib/index.ts', root).href)
    const files = Object.entries(shownFiles(page)).map(([name, text]) => [name, text.replace("'../../svc/lib/index.ts'", index)])
    writeFiles(folder, Object.fromEntries(files) as Record<string, string>)
    const loader = 'typescript' in process.features && process.features.typescript ? [] : ['--import', new URL('node_modules/tsx/dist/esm/index.mjs', root).href]
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const run = spawn(process.execPath, [...loader, '--test', '--test-reporter=tap', join(folder, 'test/notes.test.mjs')], { cwd: folder, env })
    let output = ''
    for (const stream of [run.stdout, run.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    const [status] = (await once(run, 'close')) as [number]
    assert.equal(status, 0, output)
    assert.match(output, /^# pass 3$/m)
  })

  it('names options and members that there are', () => {
    const source = readFileSync(fileURLToPath(new URL('lib/app.ts', root)), 'utf8')
    const names = tableBelow(page, '## A server in a program of your own').flatMap(([cell = '']) => [...cell.matchAll(/`(\w+)/g)].map((match) => match[1]))
    assert.ok(names.length >= 13)
    // Some come from the interface of `setup(app)`, which has `channel`, `queue` and `logger`.
    for (const name of names) assert.match(source, new RegExp(`(?:readonly )?${name}[?(]|${name}:`), name)
  })
})
