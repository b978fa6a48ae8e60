import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startBoard } from './support/board.ts'
import { root } from './support/launch.ts'
import { request, type Answer } from './support/request.ts'
import { Seeded } from './support/seeded.ts'

const png = (size: number): Buffer =>
  Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), new Seeded(size).bytes(size - 8)])

/** Sends the form of the board as a browser does. */
async function add(url: string, fields: Record<string, string>, picture?: File): Promise<Answer> {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  form.set('picture', picture ?? new File([], ''))
  const encoded = new Response(form)
  return request(`${url}/notices`, {
    headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
    body: new Uint8Array(await encoded.arrayBuffer()),
  })
}

test('the board begins empty, in its layout', async (t) => {
  const { url, lines } = await startBoard(t, { 'app.env': 'dev' })
  const page = await request(url)
  assert.equal(page.status, 200)
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  assert.match(page.text, /^<!doctype html>[^]*<form method="post"[^]*Nothing here yet\.[^]*<\/html>\s*$/)
  assert.match(String(page.headers['content-security-policy']), /default-src 'self'/)
  assert.deepEqual((await request(`${url}/api/notices`)).json(), [])
  assert.deepEqual(lines().filter((line) => /WARN|ERROR|FATAL/.test(line)), [])
})

test('a notice is put up, and is on the board, on its page and in the JSON list', async (t) => {
  const { url, lines } = await startBoard(t)
  const answer = await add(url, { author: ' Ann ', text: 'Two lines\nof text' })
  assert.deepEqual([answer.status, answer.headers.location], [303, '/'])
  await add(url, { author: 'Bob', text: 'Later' })

  const page = (await request(url)).text
  assert.match(page, /Later[^]*Bob[^]*Two lines\nof text[^]*Ann/)
  assert.doesNotMatch(page, /Nothing here yet|<img/)
  const notice = await request(`${url}/notices/1`)
  assert.equal(notice.status, 200)
  assert.match(notice.text, /Two lines/)
  assert.doesNotMatch(notice.text, /Later/)

  const list = (await request(`${url}/api/notices`)).json() as Record<string, unknown>[]
  assert.deepEqual(list.map(({ id, author, text }) => [id, author, text]), [
    [2, 'Bob', 'Later'],
    [1, 'Ann', 'Two lines\nof text'],
  ])
  assert.ok(list.every(({ written_at: time }) => new Date(String(time)).toISOString() === time))
  assert.ok(lines().some((line) => line.endsWith('[INFO ] [app] notice 1 by Ann')))
})

test('the form may come urlencoded as well', async (t) => {
  const { url } = await startBoard(t)
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const answer = await request(`${url}/notices`, { headers, body: 'author=Ann&text=a+%C3%A4+%26' })
  assert.equal(answer.status, 303)
  assert.match((await request(url)).text, /a ä &amp;/)
})

test('a wrong form comes back as 422 with what was typed and what is wrong', async (t) => {
  const { url } = await startBoard(t)
  const long = '"&'.repeat(600)
  const answer = await add(url, { author: '', text: long })
  assert.equal(answer.status, 422)
  assert.match(answer.text, /role="alert"[^]*<li>Who are you\?[^]*<li>The notice may have 1000 characters: it has 1200\./)
  assert.ok(answer.text.includes(`required>${'&quot;&amp;'.repeat(600)}</textarea>`))
  const other = await add(url, { author: '"><b>', text: ' ' })
  assert.equal(other.status, 422)
  assert.match(other.text, /value="&quot;&gt;&lt;b&gt;"/)
  assert.match(other.text, /<li>The notice is empty\.<\/li>/)
  assert.deepEqual((await request(`${url}/api/notices`)).json(), [])
})

test('a line end counts as one character, as it does for the browser', async (t) => {
  const { url } = await startBoard(t)
  assert.equal((await add(url, { author: 'Ann', text: `${'x\n'.repeat(499)}xx` })).status, 303)
})

test('markup in a notice is text', async (t) => {
  const { url } = await startBoard(t)
  await add(url, { author: '<i>Eve</i>', text: '<script>alert(1)</script>' })
  for (const path of ['/', '/notices/1']) {
    const { text } = await request(url + path)
    assert.match(text, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/)
    assert.match(text, /&lt;i&gt;Eve&lt;\/i&gt;/)
    assert.doesNotMatch(text, /<script|<i>/)
  }
})

test('a picture, held in memory or above 64 KiB in a file, comes back as it was sent', async (t) => {
  const { url } = await startBoard(t)
  for (const [index, size] of [100, 300_000].entries()) {
    const bytes = png(size)
    // What the client says of it does not count.
    const answer = await add(url, { author: 'Ann', text: 'Look' }, new File([bytes], 'a.html', { type: 'text/html' }))
    assert.equal(answer.status, 303)
    const path = `/pictures/${index + 1}`
    const picture = await request(url + path)
    assert.deepEqual([picture.status, picture.headers['content-type']], [200, 'image/png'])
    assert.equal(picture.headers['x-content-type-options'], 'nosniff')
    assert.ok(picture.bytes.equals(bytes))
    assert.match((await request(url)).text, new RegExp(`<img src="${path}" alt="Picture by Ann">`))
    assert.equal(((await request(`${url}/api/notices`)).json() as { picture: string }[])[0]?.picture, path)
  }
})

test('what is no picture is refused, and what was typed is kept', async (t) => {
  const { url } = await startBoard(t)
  const answer = await add(url, { author: 'Ann', text: 'Look' }, new File(['<svg/>'], 'a.png', { type: 'image/png' }))
  assert.equal(answer.status, 422)
  assert.match(answer.text, /The picture must be a PNG, JPEG, GIF or WebP file\.[^]*value="Ann"[^]*>Look<\/textarea>/)
})

test('a picture past the limit of a body is refused with 413', async (t) => {
  const { url } = await startBoard(t)
  const answer = await add(url, { author: 'Ann', text: 'Look' }, new File([png(1_100_000)], 'a.png'))
  assert.equal(answer.status, 413)
})

test('a notice or picture that is not there is 404', async (t) => {
  const { url } = await startBoard(t)
  await add(url, { author: 'Ann', text: 'No picture' })
  for (const path of ['/notices/2', '/notices/x', '/pictures/1', '/pictures/2']) {
    assert.equal((await request(url + path)).status, 404, path)
  }
})

test('the style sheet is a static file', async (t) => {
  const { url } = await startBoard(t)
  const sheet = await request(`${url}/board.css`)
  assert.deepEqual([sheet.status, sheet.headers['content-type']], [200, 'text/css; charset=utf-8'])
  assert.equal(sheet.text, readFileSync(join(root, 'routes/public/board.css'), 'utf8'))
  const headers = { 'if-none-match': String(sheet.headers.etag) }
  assert.equal((await request(`${url}/board.css`, { headers })).status, 304)
  assert.equal((await request(`${url}/board.json`)).status, 404)
})

test('the board drops its oldest notice past a hundred', async (t) => {
  const { url } = await startBoard(t)
  for (let count = 1; count <= 101; count += 1) await add(url, { author: 'Ann', text: `Notice ${count}` })
  const list = (await request(`${url}/api/notices`)).json() as { id: number }[]
  assert.deepEqual([list.length, list[0]?.id, list.at(-1)?.id], [100, 101, 2])
})
