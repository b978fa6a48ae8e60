// The tour of the demo: what it names exists, and its buttons do what they say.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { startBoard } from '../support/board.ts'
import { root } from '../support/launch.ts'
import { complaintsIn } from '../support/log-lines.ts'
import { request } from '../support/request.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { until } from '../support/until.ts'
import { saidBy, signedUp, Visitor } from '../support/visitor.ts'

const html = { accept: 'text/html' }
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')

/** The targets of the links of a page, without the parts of a page. */
function linksOf(text: string): string[] {
  return [...new Set([...text.matchAll(/ href="([^"#]+)[^"]*"/g)].map(([, target = '']) => target))]
}

describe('the tour', () => {
  it('is what a new visitor is offered first, and every page leads to it', async (t) => {
    const { url } = await startBoard(t)
    assert.match((await request(url)).text, /<a class="button" href="\/tour">What you see here<\/a>/)
    const ann = await signedUp(url, 'Ann')
    await ann.add('One')
    assert.doesNotMatch((await ann.get('/')).text, /<a class="button"/)
    for (const path of ['/', '/notices/1', '/notices/1/edit', '/tour', '/code/routes/board.json', '/nowhere']) {
      const { text } = await ann.get(path, html)
      assert.match(text, /<nav>\s*<a href="\/tour"[^>]*>What you see here<\/a>/, path)
      assert.match(text, /<footer>\s*<span>The demo application of svc<\/span>\s*<a href="\/tour">/, path)
    }
  })

  it('links to pages that exist, and to files that it shows', async (t) => {
    const { url } = await startBoard(t, { 'app.env': 'dev' })
    const visitor = new Visitor(url)
    const links = linksOf((await visitor.get('/tour')).text)
    const files = links.filter((link) => link.startsWith('/code/')).map((link) => link.slice('/code/'.length))
    assert.ok(files.length > 20 && files.includes('routes/jobs/digest.json') && files.includes('docs/jobs.md'))
    assert.deepEqual(files.filter((file) => !existsSync(join(root, file))), [])
    for (const file of files.filter((each) => !each.startsWith('docs/'))) { // The board of this test has no documents.
      const { status, text } = await visitor.get(`/code/${file}`)
      assert.equal(status, 200, file)
      assert.ok(text.includes(escaped(readFileSync(join(root, file), 'utf8'))), file)
    }
    const pages = links.filter((link) => !/^\/(?:code\/|notices\/0$|alike$)/.test(link))
    assert.ok(pages.includes('/svc-profile') && pages.includes('/svc-openapi') && pages.includes('/svc-monitor'))
    for (const page of pages) assert.equal((await visitor.get(page, html)).status, 200, page)
    assert.equal((await visitor.get('/notices/0', html)).status, 404)
  })

  it('shows no other file', async (t) => {
    const { url } = await startBoard(t)
    for (const file of [
      'svc.json', 'routes/middleware/config.json', 'docs/nowhere.md', '.cached/board.json', 'package.json', '',
      '..%2fsvc.json', 'routes/..%2fsvc.json', 'routes%2fboard%2f..%2f..%2fsvc.json', '%2fetc%2fpasswd', 'routes/board', 'routes/board/',
    ]) {
      const { status, text } = await request(`${url}/code/${file}`)
      assert.ok(status === 404 || status === 400, `${file}: ${status}`)
      assert.doesNotMatch(text, /app_key|published with the demo|root:/)
    }
  })

  it('posts a sample notice for anyone, but not without the token, and limits it', async (t) => {
    const { url } = await startBoard(t)
    const visitor = new Visitor(url)
    const notices = async (): Promise<string[]> => {
      return ((await visitor.get('/api/notices')).json() as { author: string; text: string }[]).map(({ text }) => text)
    }
    const form = await visitor.form('/tour', '/tour/notice')
    const refused = await visitor.send({ ...form, hidden: {} })
    assert.deepEqual([refused.status, refused.headers.location, await notices()], [302, '/', []])
    assert.match(saidBy(await visitor.follow(refused)).messages.join(), /^danger: This form came without its security token\./)

    const posted = await visitor.send(form)
    assert.deepEqual([posted.status, posted.headers.location], [303, '/tour#live'])
    const said = async (): Promise<string[]> => {
      return saidBy(await visitor.get('/tour')).messages.filter((message) => !message.startsWith('info: Jobs are kept in SQLite'))
    }
    assert.deepEqual([await said(), await said()], [['success: Posted. It is in the other window already.'], []])
    await visitor.send(form)
    const [second, first] = await notices()
    assert.ok(first !== undefined && second !== undefined && first !== second)
    assert.match((await visitor.get('/')).text, new RegExp(`${first}[^]*The tour`))
    assert.equal((await visitor.get('/notices/1/edit')).status, 302) // It belongs to nobody.

    const rest = await Promise.all(Array.from({ length: 10 }, () => visitor.send(form)))
    const limited = rest.filter(({ status }) => status === 429)
    assert.ok(limited.length > 0 && limited.every(({ headers }) => Number(headers['retry-after']) > 0))
  })
})

describe('the digest', () => {
  if (!hasSqlite) {
    it('is left out on a Node without SQLite, and the tour says why', async (t) => {
      const { url, lines } = await startBoard(t, { 'app.env': 'dev' })
      const { text } = await request(`${url}/tour`)
      const { node } = process.versions
      assert.ok(text.includes(`Jobs are kept in SQLite, which Node ${node} does not have, so they are left out: run Node 22.13 or later.`))
      assert.doesNotMatch(text, /action="\/tour\/digest"|tour\.js/)
      const [complaint, ...others] = complaintsIn(lines())
      assert.match(complaint ?? '', /runs without jobs, which are optional: .*node:sqlite/)
      assert.deepEqual(others, [])
    })
    return
  }

  it('is written as a mail by a job, and shown', async (t) => {
    const { url, folder, lines } = await startBoard(t, { 'app.env': 'dev' })
    assert.deepEqual(complaintsIn(lines()), [])
    const ann = await signedUp(url, 'Ann')
    const before = (await ann.get('/tour')).text
    assert.match(before, /<p role="status">No digest has been written yet\.<\/p>\s*<pre [^>]*hidden><\/pre>/)
    const cursor = /data-last-id="(\d+)"/.exec(before)?.[1] ?? ''
    await ann.add('Bring a <cake>\r\nat noon')
    const answer = await ann.submit('/tour', '/tour/digest')
    assert.deepEqual([answer.status, answer.headers.location], [303, '/tour#digest'])
    const { events } = (await request(`${url}/tour/live?since=${cursor}`)).json() as { events: { data: { text: string } }[] }
    const mail = readFileSync(join(folder, '.cached/mail/digest.eml'), 'utf8')
    assert.match(mail, /^From: .*\r\nTo: .*\r\nSubject: .*\r\nDate: \w{3}, \d\d? \w{3} \d{4} [\d:]{8} \+0000\r\nMIME-Version: 1\.0\r\n/)
    assert.match(mail, /\r\n\r\n- Ann: Bring a <cake>\r\n {2}at noon\r\n$/)
    assert.deepEqual(events.map(({ data }) => data.text), [mail.replaceAll('\r\n', '\n')])

    const after = await ann.get('/tour')
    assert.deepEqual(saidBy(after).messages, ['success: Job 1 is stored. It runs beside the requests.'])
    assert.match(after.text, /Written \S+Z to \.cached\/mail\/digest\.eml<[^]*<pre [^>]*>From: [^]*- Ann: Bring a &lt;cake&gt;\n {2}at noon/)
    const jobs = await request(`${url}/svc-jobs?format=json`)
    const [job] = (jobs.json() as { names: { name: string; next: number }[] }).names
    assert.equal(job?.name, 'board.digest')
    assert.equal(new Date(job.next).getHours(), 7)
  })

  it('says so where the job cannot be stored, and the board runs without', async (t) => {
    const { url, lines } = await startBoard(t, { 'paths.data': 'routes/board.json' })
    const visitor = new Visitor(url)
    await visitor.submit('/tour', '/tour/digest')
    assert.deepEqual(saidBy(await visitor.get('/tour')).messages, ['danger: The job could not be stored: the log says why.'])
    await until(() => lines().some((line) => line.includes('the digest was not enqueued')))
  })
})
