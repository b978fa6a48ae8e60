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
    const { url, folder, app } = await startApplication(t, { 'package.json': { type: 'module' }, ...shownFiles(page) })
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

  it('has an application with rows and an error that only the action finds', async (t) => {
    const shown = (part: string): string => page.blocks.find(({ text }) => text.includes(part))?.text ?? assert.fail(part)
    const { url } = await startApplication(t, {
      'routes/a.json': [
        { name: 'page', method: 'GET', url: '/', action: 'rows.html', middleware: 'SVC_MwSession, SVC_MwCsrf' },
        { name: 'send', method: 'POST', url: '/', action: 'a.mjs', middleware: 'SVC_MwSession' },
        { name: 'register', method: 'POST', url: '/register', action: 'a.mjs@register' },
      ],
      'rows.html': `@csrf\n${shown('[at, line]')}`,
      'a.mjs': `import { fields } from 'svc'
        const account = fields({ email: fields.email(), password: fields.secret() })
        const users = new Set(['ann@example.org'])
        const teams = { find: async () => undefined }
        const rows = fields({ lines: fields.list(fields.object({ name: fields.text() })), address: fields.object({ city: fields.text() }) })
        export default async ({ validate }) => validate(rows)
        ${shown('ctx.invalid({ email')}`,
    })
    const cookie = (await request(url)).headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
    const form = { cookie, referer: `${url}/`, 'content-type': 'application/x-www-form-urlencoded' }
    const body = 'lines.0.name=Milk&lines.1.name=+&address.city=Oslo'
    assert.equal((await request(url, { headers: form, body })).status, 303)
    const { text } = await request(url, { headers: { cookie } })
    assert.match(text, /name="lines.0.name" value="Milk">\n<p><\/p>\n<input name="lines.1.name" value=" ">\n<p>Required<\/p>[^]*value="Oslo"/)
    const refusal = async (email: string): Promise<unknown> => {
      const body = JSON.stringify({ email, password: 'x' })
      return (await request(`${url}/register`, { headers: { 'content-type': 'application/json' }, body })).json()
    }
    assert.deepEqual(await refusal('ann@example.org'), { error: 'invalid', errors: { email: ['This address is taken.'] } })
    assert.deepEqual(await refusal('bob@example.org'), {
      error: 'invalid',
      errors: { email: ['No team has this address.'], '': ['Ask for an invitation.'] },
    })
  })

  it('is right about the results of check and toJsonSchema', () => {
    const [checks, schema] = ['note.check', '.toJsonSchema()'].map((part) => page.blocks.find(({ text }) => text.includes(part))?.text ?? '')
    const run = (code: string): unknown => structuredClone(new Function('fields', code)(fields) as unknown)
    const [definition = '', ...lines] = (checks ?? '').trim().split('\n')
    for (const line of lines) {
      const [call, result] = line.split(' // ')
      assert.deepEqual(run(`${definition}; return ${call}`), run(`return (${result})`))
    }
    assert.equal(lines.length, 2)
    const [call, result] = (schema ?? '').split(/\/\*|\*\//)
    assert.deepEqual(run(`return ${call}`), run(`return (${result})`))
  })

  it('lists the fields', () => {
    const listed = tableBelow(page, '## Fields').flatMap(([cell = '']) => [...cell.matchAll(/`(\w+)\(/g)].map(([, name]) => name))
    assert.deepEqual(listed.sort(), Object.keys(fields).sort())
  })
})
