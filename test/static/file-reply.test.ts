// `ctx.file`: which files it sends, and how.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { startApplication, type TestApplication } from '../support/application.ts'
import { Connection, requestText } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'

const large = randomBytes(3 * 2 ** 20)
/** More than the kernel takes for a client that reads nothing. */
const vastBytes = 2 ** 26
const text = 'one two three four'

/** Starts an application whose actions are the given expressions of `ctx`. */
async function serveFiles(t: TestContext, actions: Record<string, string>): Promise<TestApplication> {
  const names = Object.keys(actions)
  const module = names.map((name, at) => `export const a${at} = (ctx) => ${actions[name]}`).join('\n')
  const app = await startApplication(t, {
    'actions.mjs': module,
    'routes/r.json': names.map((name, at) => (
      { name: `a${at}`, url: `/${name}`, method: '*', middleware: '', scope: '', action: `actions.mjs@a${at}` }
    )),
    'files/a.txt': text,
    'files/page.html': '<script>1</script>',
    'files/picture.svg': '<svg/>',
    'files/feed.rss': '<rss/>',
    'files/deep/b.txt': 'b',
    'files/.hidden': 'no',
    'files/.git/config': 'no',
    'files/video.mp4': large,
    'secret.txt': 'secret',
  })
  return app
}

describe('ctx.file', () => {
  it('sends a file with its length, type and validators, and answers conditions', async (t) => {
    const { url, folder } = await serveFiles(t, {
      a: "ctx.file('files/a.txt')",
      absolute: "ctx.file(ctx.query.get('path'))",
      video: "ctx.file('files/video.mp4')",
    })
    const plain = await request(`${url}/a`)
    assert.equal(plain.text, text)
    const { etag = '', 'last-modified': modified = '', ...headers } = plain.headers
    assert.match(etag, /^"[\w-]{22}"$/)
    assert.deepEqual(
      [headers['content-length'], headers['content-type'], headers['accept-ranges'], headers['cache-control']],
      [String(text.length), 'text/plain; charset=utf-8', 'bytes', 'private, no-cache'],
    )
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal((await request(`${url}/absolute?path=${encodeURIComponent(join(folder, 'files/a.txt'))}`)).text, text)

    const rows: [string, Record<string, string>, number][] = [
      ['GET', { 'if-none-match': etag }, 304],
      ['HEAD', { 'if-none-match': etag }, 304],
      ['GET', { 'if-modified-since': modified }, 304],
      ['GET', { 'if-none-match': '"other"' }, 200],
      ['GET', { 'if-match': '"other"' }, 412],
      ['POST', { 'if-none-match': etag }, 200],
    ]
    for (const [method, conditions, status] of rows) {
      const answer = await request(`${url}/a`, { method, headers: conditions })
      assert.equal(answer.status, status, `${method} ${JSON.stringify(conditions)}`)
      assert.equal(answer.text, status === 200 ? text : '')
      assert.equal(answer.headers['x-content-type-options'], 'nosniff', String(status))
    }
    const head = await request(`${url}/video`, { method: 'HEAD' })
    assert.deepEqual([head.status, head.headers['content-length'], head.text], [200, String(large.length), ''])
    const video = await request(`${url}/video`)
    assert.ok(video.bytes.equals(large))
    assert.equal(video.headers['content-type'], 'video/mp4')
  })

  it('sends ranges, of small and large files', async (t) => {
    const { url } = await serveFiles(t, { a: "ctx.file('files/a.txt')", video: "ctx.file('files/video.mp4')" })
    for (const [path, content] of [['a', Buffer.from(text)], ['video', large]] as const) {
      const size = content.length
      const { etag = '' } = (await request(`${url}/${path}`, { method: 'HEAD' })).headers
      const rows: [string, number, number][] = [
        ['bytes=0-1', 0, 2],
        ['bytes=4-', 4, size],
        ['bytes=-5', size - 5, size],
        [`bytes=2-${size * 2}`, 2, size],
      ]
      for (const [range, start, end] of rows) {
        const answer = await request(`${url}/${path}`, { headers: { range, 'if-range': etag } })
        assert.deepEqual([answer.status, answer.headers['content-range']], [206, `bytes ${start}-${end - 1}/${size}`])
        assert.ok(answer.bytes.equals(content.subarray(start, end)), `${path} ${range}`)
      }
      const changed = await request(`${url}/${path}`, { headers: { range: 'bytes=0-1', 'if-range': '"older"' } })
      assert.deepEqual([changed.status, changed.bytes.length], [200, size])
      const past = await request(`${url}/${path}`, { headers: { range: `bytes=${size}-` } })
      assert.deepEqual([past.status, past.headers['content-range']], [416, `bytes */${size}`])
      const many = await request(`${url}/${path}`, { headers: { range: `bytes=0-1${',0-1'.repeat(3000)}` } })
      assert.deepEqual([many.status, many.bytes.length], [200, size])
      const unread = await request(`${url}/${path}`, { method: 'HEAD', headers: { range: 'bytes=0-1' } })
      assert.equal(unread.status, 200)
    }
    const quarter = large.length / 4
    const parts = await Promise.all([0, 1, 2, 3].map((at) =>
      request(`${url}/video`, { headers: { range: `bytes=${at * quarter}-${(at + 1) * quarter - 1}` } })))
    assert.ok(Buffer.concat(parts.map(({ bytes }) => bytes)).equals(large))
  })

  it('with a folder, sends only files in it', async (t) => {
    const { url, folder } = await serveFiles(t, { in: "ctx.file(ctx.query.get('path'), { in: 'files' })" })
    const files = join(folder, 'files')
    symlinkSync('../secret.txt', join(files, 'out.txt'))
    symlinkSync('..', join(files, 'up'))
    symlinkSync('deep/b.txt', join(files, 'within.txt'))
    symlinkSync('.hidden', join(files, 'shown.txt'))
    execFileSync('mkfifo', [join(files, 'fifo')])
    const rows: [string, number][] = [
      ['a.txt', 200], ['deep/b.txt', 200], ['within.txt', 200],
      ['../secret.txt', 404], ['deep/../a.txt', 404], ['deep/../../secret.txt', 404], ['./a.txt', 404],
      [join(files, 'a.txt'), 404], ['/etc/passwd', 404], ['out.txt', 404], ['up/secret.txt', 404],
      ['a.txt\0', 404], ['\0', 404], ['.hidden', 404], ['.git/config', 404], ['shown.txt', 404], ['..', 404],
      ['', 404], ['deep', 404], ['deep/', 404], ['a.txt/', 404], ['fifo', 404], ['none', 404], ['deep\\b.txt', 404],
      ['x'.repeat(300), 404], [`${'x/'.repeat(3000)}y`, 404],
    ]
    for (const [path, status] of rows) {
      const answer = await request(`${url}/in?path=${encodeURIComponent(path)}`)
      assert.equal(answer.status, status, path)
      assert.doesNotMatch(answer.text, /secret|no$/, path)
    }
    rmSync(files, { recursive: true })
    assert.equal((await request(`${url}/in?path=a.txt`)).status, 404)
  })

  it('refuses a folder that a text from the client leads elsewhere', async (t) => {
    const { url, folder } = await serveFiles(t, {
      above: "ctx.file('files/a.txt', { in: '../' + ctx.query.get('name') })",
      each: "ctx.file('a.txt', { in: 'deeper/' + ctx.query.get('id') })",
      own: "ctx.file('a.txt', { in: './x/../files' })",
    })
    for (const id of ['..', '../files', 'x/../../files', '..\0']) {
      assert.equal((await request(`${url}/each?id=${encodeURIComponent(id)}`)).status, 404, id)
    }
    assert.equal((await request(`${url}/own`)).status, 404)
    assert.equal((await request(`${url}/above?name=${basename(folder)}`)).text, text)
  })

  it('without a folder, a path that is no readable file is 404, and one that cannot be one is a 500', async (t) => {
    const { url, folder, lines } = await serveFiles(t, {
      none: "ctx.file('files/none.txt')",
      folder: "ctx.file('files')",
      fifo: "ctx.file('fifo')",
      nul: "ctx.file('a\\0b')",
      link: "ctx.file('link.txt')",
      missing: "ctx.file(ctx.query.get('path'))",
      option: "ctx.file('files/a.txt', { download: 'a' })",
      age: "ctx.file('files/a.txt', { maxAge_s: -1 })",
    })
    execFileSync('mkfifo', [join(folder, 'fifo')])
    symlinkSync('files/a.txt', join(folder, 'link.txt'))
    for (const path of ['none', 'folder', 'fifo', 'nul']) assert.equal((await request(`${url}/${path}`)).status, 404, path)
    assert.equal((await request(`${url}/link`)).text, text)
    for (const path of ['missing', 'option', 'age']) assert.equal((await request(`${url}/${path}`)).status, 500, path)
    const log = lines().join('\n')
    assert.match(log, /Cannot send a file: its path must be a string: it is null/)
    assert.match(log, /Cannot send a file: there is no option "download": there are in, name, inline, type, maxAge_s/)
    assert.match(log, /Cannot send a file: maxAge_s must be a whole number from 0: it is -1/)
  })

  it('names a download in both forms, and shows a file inline on request', async (t) => {
    const { url } = await serveFiles(t, {
      name: "ctx.file('files/a.txt', { name: ctx.query.get('name') })",
      inline: "ctx.file('files/a.txt', { name: 'a.txt', inline: true })",
      plain: "ctx.file('files/a.txt')",
    })
    const rows = [
      ['a b.pdf', 'attachment; filename="a b.pdf"; filename*=UTF-8\'\'a%20b.pdf'],
      ['Rechnung für "Öl".pdf', 'attachment; filename="Rechnung f_r __l_.pdf"; filename*=UTF-8\'\'Rechnung%20f%C3%BCr%20%22%C3%96l%22.pdf'],
      ['../../x\\y%41;"\r\nX: y', 'attachment; filename=".._.._x_y_41;_X: y"; filename*=UTF-8\'\'.._.._x_y%2541%3B%22X%3A%20y'],
      ["it's (1)*.txt", "attachment; filename=\"it's (1)*.txt\"; filename*=UTF-8''it%27s%20%281%29%2A.txt"],
      ['\ud800', 'attachment; filename="_"; filename*=UTF-8\'\'%EF%BF%BD'],
    ] as const
    for (const [name, expected] of rows) {
      const asked = `${url}/name?name=${name === '\ud800' ? '%ED%A0%80' : encodeURIComponent(name)}`
      const { headers } = await request(asked)
      if (name !== '\ud800') assert.equal(headers['content-disposition'], expected)
      else assert.match(headers['content-disposition'] ?? '', /^attachment; filename="_+"; filename\*=UTF-8''(?:%EF%BF%BD)+$/)
    }
    const { headers } = await request(`${url}/inline`)
    assert.equal(headers['content-disposition'], 'inline; filename="a.txt"; filename*=UTF-8\'\'a.txt')
    assert.equal((await request(`${url}/plain`)).headers['content-disposition'], undefined)
  })

  it('sandboxes markup from a folder that is shown inline', async (t) => {
    const show = (more: string): string => `ctx.file(ctx.query.get('f'), { in: 'files', ${more} })`
    const { url } = await serveFiles(t, {
      in: show(''),
      inline: show("name: 'x', inline: true"),
      saved: show("name: 'x'"),
      typed: show("type: 'image/svg+xml'"),
      own: `(ctx.setHeader('Content-Security-Policy', "default-src 'none'"), ${show('')})`,
      trusted: "ctx.file('files/page.html')",
    })
    const policyOf = async (path: string): Promise<unknown> =>
      (await request(`${url}/${path}`)).headers['content-security-policy']
    for (const name of ['page.html', 'picture.svg', 'feed.rss']) assert.equal(await policyOf(`in?f=${name}`), 'sandbox', name)
    assert.equal(await policyOf('inline?f=page.html'), 'sandbox')
    assert.equal(await policyOf('typed?f=a.txt'), 'sandbox')
    assert.equal(await policyOf('own?f=page.html'), "default-src 'none', sandbox")
    for (const path of ['in?f=a.txt', 'saved?f=page.html', 'trusted']) assert.equal(await policyOf(path), undefined, path)
  })

  it('keeps the fields and the status that the application has set', async (t) => {
    const { url } = await serveFiles(t, {
      age: "ctx.file('files/a.txt', { maxAge_s: 60 })",
      cache: "(ctx.setHeader('Cache-Control', 'public, max-age=5'), ctx.file('files/a.txt'))",
      type: "(ctx.setHeader('Content-Type', 'text/css'), ctx.file('files/a.txt'))",
      chosen: "ctx.file('files/a.txt', { type: 'text/x-own' })",
      tag: "(ctx.setHeader('ETag', '\"v1\"'), ctx.file('files/a.txt'))",
      gone: "(ctx.status = 410, ctx.file('files/a.txt'))",
      fine: "(ctx.status = 200, ctx.file('files/a.txt'))",
      dropped: "(ctx.file('files/a.txt'), ctx.json({ ok: true }))",
      kept: '{ ctx.file("files/a.txt") }',
    })
    const get = (path: string, headers = {}) => request(`${url}/${path}`, { headers })
    assert.equal((await get('age')).headers['cache-control'], 'private, max-age=60')
    assert.equal((await get('cache')).headers['cache-control'], 'public, max-age=5')
    assert.equal((await get('type')).headers['content-type'], 'text/css')
    assert.equal((await get('chosen')).headers['content-type'], 'text/x-own')
    assert.equal((await get('tag', { 'if-none-match': '"v1"' })).status, 304)
    const gone = await get('gone', { range: 'bytes=0-1' })
    assert.deepEqual([gone.status, gone.text], [410, text])
    assert.equal((await get('fine', { range: 'bytes=0-1' })).status, 206)
    assert.equal((await get('dropped')).text, '{"ok":true}')
    assert.equal((await get('kept')).text, text)
  })

  it('lets curl resume a download, and serves the probe of Safari', async (t) => {
    const { url, folder } = await serveFiles(t, { video: "ctx.file('files/video.mp4', { name: 'video.mp4' })" })
    const target = join(folder, 'downloaded.mp4')
    writeFileSync(target, large.subarray(0, 1_000_000))
    const curl = spawn('curl', ['-sS', '-C', '-', '-o', target, `${url}/video`], { stdio: 'inherit' })
    assert.deepEqual(await once(curl, 'close'), [0, null])
    assert.ok(readFileSync(target).equals(large))
    const probe = await request(`${url}/video`, { headers: { range: 'bytes=0-1' } })
    assert.deepEqual(
      [probe.status, probe.headers['content-range'], probe.headers['content-length'], probe.headers['accept-ranges']],
      [206, `bytes 0-1/${large.length}`, '2', 'bytes'],
    )
  })

  it('closes a file that is sent, refused, or whose client leaves', async (t) => {
    const { url, port, folder, app } = await serveFiles(t, { video: "ctx.file('files/video.mp4')" })
    const file = join(folder, 'files/video.mp4')
    truncateSync(file, vastBytes)
    const opened = (): number => readdirSync('/proc/self/fd').filter((fd) => linkOf(fd) === file).length
    await request(`${url}/video`)
    await request(`${url}/video`, { headers: { range: `bytes=${vastBytes}-` } })
    await request(`${url}/video`, { method: 'HEAD' })
    await until(() => opened() === 0)
    for (let time = 0; time < 5; time += 1) {
      const client = new Connection(t, port)
      client.socket.pause()
      await client.send(requestText('GET /video'))
      await until(() => opened() > 0)
      await client.reset()
      await until(() => opened() === 0)
    }
    assert.equal(app.warnings().length, 0)
  })

  it('sends what was announced when the file goes or grows, and is cut when it shrinks', async (t) => {
    const { port, folder, lines } = await serveFiles(t, { video: "ctx.file('files/video.mp4')" })
    const file = join(folder, 'files/video.mp4')
    const changes: [string, () => void, number][] = [
      ['grows', () => appendFileSync(file, 'more'), vastBytes],
      ['shrinks', () => truncateSync(file, 1000), 0],
      ['goes', () => rmSync(file), vastBytes],
    ]
    for (const [name, change, length] of changes) {
      mkdirSync(join(folder, 'files'), { recursive: true })
      writeFileSync(file, '')
      truncateSync(file, vastBytes)
      const client = new Connection(t, port)
      await client.send(requestText('GET /video', ['Connection: close']))
      await until(() => client.received.length > 0)
      client.socket.pause()
      change()
      client.socket.resume()
      const received = await client.closed()
      const body = received.length - received.indexOf('\r\n\r\n') - 4
      if (length > 0) assert.equal(body, length, name)
      else assert.ok(body < vastBytes, name)
    }
    assert.equal(lines().filter((line) => line.includes('could not be sent completely')).length, 1)
  })
})

function linkOf(descriptor: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return undefined // It has been closed meanwhile.
  }
}
