import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { tokenOf } from '../support/board.ts'
import { root } from '../support/launch.ts'
import { readPage, shownFiles } from '../support/markdown.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const page = readPage('docs/getting-started.md')
const source = (path: string): string => readFileSync(join(root, path), 'utf8')

interface RouteFile {
  readonly defaults: object
  readonly routes: readonly { readonly name: string }[]
}

describe('docs/getting-started.md', () => {
  it('shows the exact records of the route file', () => {
    const shown = page.blocks.find(({ above }) => above === 'Some of the records in `routes/board.json`:')
    const file = JSON.parse(source('routes/board.json')) as RouteFile
    const excerpt = JSON.parse(shown?.text ?? '{}') as RouteFile
    assert.ok(excerpt.routes.length > 0)
    const routes = file.routes.filter(({ name }) => excerpt.routes.some((record) => record.name === name))
    assert.deepEqual(new Set(excerpt.routes), new Set(routes))
    assert.deepEqual(excerpt.defaults, file.defaults)
    const ofApi = page.blocks.find(({ above }) => above.startsWith('In `routes/api.json`'))
    const api = JSON.parse(source('routes/api.json')) as RouteFile
    assert.deepEqual(JSON.parse(ofApi?.text ?? '{}'), { defaults: api.defaults })
  })

  it('shows the exact job file', () => {
    const shown = page.blocks.find(({ above }) => above.startsWith('`routes/jobs/digest.json` is a'))
    assert.equal(shown?.text, source('routes/jobs/digest.json'))
  })

  it('shows the exact lines of the layout', () => {
    const shown = page.blocks.find(({ text }) => text.startsWith("@if UFlash('board')"))
    assert.ok(shown !== undefined && source('routes/board/layout.html').includes(shown.text))
  })

  it('has a program that prints the token in its curl lines', () => {
    const file = join(temporaryFolder(), 'token.mjs')
    writeFileSync(file, shownFiles(page)['token.mjs'] ?? '')
    const printed = execFileSync(process.execPath, [file], { encoding: 'utf8' }).trim()
    assert.equal(printed, tokenOf({ sub: 'Robot' }))
    assert.ok(page.blocks.some(({ text }) => text.startsWith('$ curl') && text.includes(`Bearer ${printed}'`)))
  })
})
