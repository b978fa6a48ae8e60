// docs/jobs.md: its curl lines print what the page shows. test/docs/testing.test.ts runs its test.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { runCurlLines } from '../support/curl.ts'
import { readPage, shownFiles } from '../support/markdown.ts'
import { request } from '../support/request.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { until } from '../support/until.ts'

describe('docs/jobs.md', { skip: !hasSqlite && 'this Node has no SQLite' }, () => {
  const page = readPage('docs/jobs.md')

  it('has curl lines that print what the page shows', async (t) => {
    const { url, folder, app } = await startApplication(t, shownFiles(page), { 'app.env': 'dev' })
    assert.deepEqual(app.warnings(), [])
    writeFileSync(join(folder, 'cookies.txt'), '')
    const [orders, panel] = page.blocks.filter(({ text }) => text.startsWith('$ curl'))
    assert.ok(orders !== undefined && panel !== undefined)
    await runCurlLines({ ...page, blocks: [orders] }, { 8080: url }, folder)
    const counts = async () => ((await request(`${url}/svc-jobs?format=json`)).json() as { names: { dead: number; done: number }[] }).names[0]
    await until(async () => {
      const found = await counts()
      return found?.dead === 1 && found.done === 1
    })
    await runCurlLines({ ...page, blocks: [panel] }, { 8080: url }, folder)
    await until(async () => (await counts())?.done === 2) // The digest has sent its mail.
  })
})
