// `docs/forms.md`: its application works, and its curl lines print what the page shows.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fields } from '../../lib/validation/fields.ts'
import { startApplication } from '../support/application.ts'
import { runCurlLines } from '../support/curl.ts'
import { readPage, shownFiles, tableBelow } from '../support/markdown.ts'
import { request } from '../support/request.ts'

describe('docs/forms.md', () => {
  const page = readPage('docs/forms.md')

  it('has an application that works', async (t) => {
    const { url, folder, app } = await startApplication(t, shownFiles(page))
    assert.deepEqual(app.warnings(), [])
    await runCurlLines(page, { 8080: url }, folder)
    const first = await request(`${url}/notes/new`)
    const cookie = first.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
    const token = /name="_csrf" value="([^"]+)"/.exec(first.text)?.[1] ?? ''
    const headers = { cookie, referer: `${url}/notes/new`, 'content-type': 'application/x-www-form-urlencoded' }
    const send = (body: string) => request(`${url}/notes`, { body: `_csrf=${token}&${body}`, headers })
    assert.equal((await send('title=&due=2023-02-29&tags=work&public=on')).headers['location'], '/notes/new')
    const { text } = await request(`${url}/notes/new`, { headers: { cookie } })
    assert.match(text, /value="" aria-invalid="true">\s*<p>Required<\/p>/)
    assert.match(text, /value="2023-02-29"[^]*value="home" >[^]*value="work" checked>[^]*name="public" type="checkbox" checked>/)
    assert.match((await request(`${url}/notes/new`, { headers: { cookie } })).text, /aria-invalid="false">\s*<input name="due"[^]*value="home" checked>/)
    assert.equal((await send('title=Milk&due=&tags=home')).text, 'Milk, due never, tags: home')
  })

  it('lists the fields', () => {
    const listed = tableBelow(page, '## Fields').flatMap(([cell = '']) => [...cell.matchAll(/`(\w+)\(/g)].map(([, name]) => name))
    assert.deepEqual(listed.sort(), Object.keys(fields).sort())
  })
})
