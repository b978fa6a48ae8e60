import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startBoard } from '../support/board.ts'
import { root } from '../support/launch.ts'
import { complaintsIn } from '../support/log-lines.ts'
import { request } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { saidBy, shownOf, signedUp } from '../support/visitor.ts'

const png = (size: number): Buffer =>
  Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), new Seeded(size).bytes(size - 8)])

test('the board starts empty, in its layout', async (t) => {
  const { url, lines } = await startBoard(t, { 'app.env': 'dev' })
  const page = await request(url)
  assert.equal(page.status, 200)
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  assert.match(page.text, /^<!doctype html>[^]*<a href="\/sign-in">Sign in<\/a>[^]*Nothing here yet\.[^]*<\/html>\s*$/)
  assert.doesNotMatch(page.text, /<form/)
  assert.match(String(page.headers['content-security-policy']), /default-src 'self'/)
  assert.equal(page.headers['cache-control'], 'no-store')
  assert.deepEqual((await request(`${url}/api/notices`)).json(), [])
  assert.deepEqual(complaintsIn(lines()).filter((line) => hasSqlite || !line.includes('runs without jobs')), [])
})

test('a signed-in user posts a notice, which is on the board, on its page and in the JSON list', async (t) => {
  const { url, lines } = await startBoard(t)
  const [ann, bob] = [await signedUp(url, 'Ann'), await signedUp(url, 'Bob')]
  const answer = await ann.submit('/', '/notices', { text: ' Two lines\r\nof text ', author: 'Bob' })
  assert.deepEqual([answer.status, answer.headers.location], [303, '/'])
  assert.deepEqual(saidBy(await ann.follow(answer)).messages, ['success: Your notice was posted.'])
  await bob.add('Later')

  const page = shownOf(await request(url))
  assert.match(page, /Later[^]*Bob[^]*Two lines\nof text[^]*Ann/)
  assert.doesNotMatch(page, /Nothing here yet|<img|message|Edit/)
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
  assert.deepEqual(Object.keys(list[0] ?? {}), ['id', 'author', 'owner', 'text', 'written_at'])
  assert.ok(lines().some((line) => line.endsWith('[INFO ] [app] notice 1 by Ann')))
})

test('the form may come urlencoded as well', async (t) => {
  const { url } = await startBoard(t)
  const ann = await signedUp(url, 'Ann')
  const form = await ann.form('/', '/notices')
  assert.equal((await ann.send({ ...form, multipart: false }, { text: 'a ä &' })).status, 303)
  assert.match((await request(url)).text, /a ä &amp;/)
})

test('an invalid notice leads back to the form, once with the input and the errors', async (t) => {
  const { url } = await startBoard(t)
  const ann = await signedUp(url, 'Ann')
  const answer = await ann.add('"&'.repeat(600))
  assert.deepEqual([answer.status, answer.headers.location], [303, '/'])
  const page = await ann.follow(answer)
  assert.deepEqual(saidBy(page), { messages: [], errors: ['The notice may have at most 1000 characters: it has 1200.'] })
  assert.ok(page.text.includes(`aria-invalid="true">${'&quot;&amp;'.repeat(600)}</textarea>`))
  const again = await ann.get('/')
  assert.deepEqual(saidBy(again).errors, [])
  assert.match(again.text, /aria-invalid="false"><\/textarea>/)

  assert.deepEqual(saidBy(await ann.follow(await ann.add(' \r\n'))).errors, ['The notice is empty.'])
  await ann.add('x'.repeat(500_000))
  assert.ok((await ann.get('/')).text.length < 10_000)
  assert.deepEqual((await request(`${url}/api/notices`)).json(), [])
})

test('a line end counts as one character, as it does for the browser', async (t) => {
  const { url } = await startBoard(t)
  const ann = await signedUp(url, 'Ann')
  await ann.add(`${'x\r\n'.repeat(499)}xx`)
  assert.equal(((await request(`${url}/api/notices`)).json() as unknown[]).length, 1)
})

test('markup in a notice and in a name is text', async (t) => {
  const { url } = await startBoard(t)
  const eve = await signedUp(url, '<i>Eve</i>')
  await eve.add('<script>alert(1)</script>')
  for (const path of ['/', '/notices/1', '/notices/1/edit']) {
    const { text } = await eve.get(path)
    assert.match(text, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/)
    assert.match(text, /&lt;i&gt;Eve&lt;\/i&gt;/)
    assert.doesNotMatch(text, /<script>|<i>/)
  }
})

test('a picture, held in memory or above 64 KiB in a file, is returned unchanged', async (t) => {
  const { url } = await startBoard(t)
  const ann = await signedUp(url, 'Ann')
  for (const [index, size] of [100, 300_000].entries()) {
    const bytes = png(size)
    // The type sent by the client is ignored.
    assert.equal((await ann.add('Look', new File([bytes], 'a.html', { type: 'text/html' }))).status, 303)
    const path = `/pictures/${index + 1}`
    const picture = await request(url + path)
    assert.deepEqual([picture.status, picture.headers['content-type']], [200, 'image/png'])
    assert.equal(picture.headers['x-content-type-options'], 'nosniff')
    assert.ok(picture.bytes.equals(bytes))
    assert.match((await request(url)).text, new RegExp(`<img src="${path}" alt="Picture by Ann">`))
    assert.equal(((await request(`${url}/api/notices`)).json() as { picture: string }[])[0]?.picture, path)
  }
})

test('refuses a file that is not a picture, and keeps the input', async (t) => {
  const { url } = await startBoard(t)
  const ann = await signedUp(url, 'Ann')
  const page = await ann.follow(await ann.add('Look', new File(['<svg/>'], 'a.png', { type: 'image/png' })))
  assert.deepEqual(saidBy(page).errors, ['The picture must be a PNG, JPEG, GIF or WebP file.'])
  assert.match(page.text, />Look<\/textarea>/)
  const empty = await ann.follow(await ann.add('', new File([png(100)], 'a.png')))
  assert.deepEqual(saidBy(empty).errors, ['The notice is empty.', 'Please choose the picture again.'])
})

test('a picture above the body limit is refused with 413', async (t) => {
  const { url } = await startBoard(t)
  const ann = await signedUp(url, 'Ann')
  assert.equal((await ann.add('Look', new File([png(1_100_000)], 'a.png'))).status, 413)
})

test('a missing notice or picture is 404', async (t) => {
  const { url } = await startBoard(t)
  const ann = await signedUp(url, 'Ann')
  await ann.add('No picture')
  for (const path of ['/notices/2', '/notices/x', '/notices/2/edit', '/pictures/1', '/pictures/2']) {
    assert.equal((await ann.get(path)).status, 404, path)
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
  const ann = await signedUp(url, 'Ann')
  const form = await ann.form('/', '/notices') // Its token is valid as long as the session.
  for (let count = 1; count <= 101; count += 1) await ann.send(form, { text: `Notice ${count}` })
  const list = (await request(`${url}/api/notices`)).json() as { id: number }[]
  assert.deepEqual([list.length, list[0]?.id, list.at(-1)?.id], [100, 101, 2])
})
