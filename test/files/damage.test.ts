// The server's own files, damaged in one byte: the server starts, or names the file, and serves correctly.
import assert from 'node:assert/strict'
import { cpSync, existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { startApplication, type TestApplication } from '../support/application.ts'
import { post, route } from '../support/node-panel.ts'
import { request } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const files = {
  'routes/a.json': [
    { name: 'user', url: '/user', action: 'a.mjs@user', middleware: 'SVC_MwSession' },
    { name: 'page', url: '/page', action: 'page.html' },
    { name: 'news', url: '/news', action: 'a.mjs@news' },
  ],
  'routes/middleware/config.json': { setup: { session: { store: 'file', path: 'sessions' } } },
  'page.html': '<p>{{ 1 + 1 }}</p>\n@foreach name in ["a", "b"]\n<b>{{ name }}</b>\n@endforeach\n',
  'a.mjs': `
    export const same = () => 'same'
    export const user = (ctx) => { ctx.session.set('user', 'Ada'); return { count: 1 } }
    export const news = (ctx) => ctx.longPoll(ctx.channel('news'), { timeout_s: 0 })`,
}
const config = { 'app.env': 'dev', cache_ram: false }
const page = '<p>2</p>\n<b>a</b>\n<b>b</b>\n'

/** A folder in which a server has written each of its files, and the cookie of a session. */
async function written(t: TestContext): Promise<{ folder: string; cookie: string; paths: string[] }> {
  const one = await startApplication(t, files, config)
  assert.equal((await post(one.url, '/svc-routes/add', route('kept', { persist: true }))).status, 200)
  const cookie = (await request(`${one.url}/user`)).headers['set-cookie']?.[0]?.split(';')[0] ?? ''
  assert.equal((await request(`${one.url}/page`)).text, page)
  void one.app.channel('news').publish('event')
  await one.app.stop()
  const [session = ''] = readdirSync(join(one.folder, 'sessions'))
  const paths = ['routes/admin.json', `sessions/${session}`, '.cached/views/page.hrb', '.cached/events']
  for (const path of paths) assert.ok(existsSync(join(one.folder, path)), path)
  return { folder: one.folder, cookie, paths }
}

async function assertServes({ url, lines }: TestApplication, cookie: string): Promise<void> {
  assert.equal((await request(`${url}/page`)).text, page)
  assert.equal((await request(`${url}/user`, { headers: { cookie } })).status, 200)
  assert.equal((await request(`${url}/news?since=0`)).status, 200)
  assert.ok([200, 409, 500].includes((await post(url, '/svc-routes/add', route('later', { persist: true }))).status))
  assert.deepEqual(lines().filter((line) => line.includes('[FATAL]')), [])
}

describe('a damaged file of the server', () => {
  it('does no harm: the server starts or names it, and serves correctly', async (t) => {
    const { folder, cookie, paths } = await written(t)
    const random = new Seeded(20_261)
    let refused = 0
    for (let round = 0; round < 60; round += 1) {
      const own = temporaryFolder()
      cpSync(folder, own, { recursive: true, preserveTimestamps: true })
      const path = paths[round % paths.length] ?? ''
      const file = join(own, path)
      const { atimeMs, mtimeMs } = statSync(file)
      const bytes = readFileSync(file)
      bytes[random.integer(bytes.length)] = random.integer(256)
      writeFileSync(file, bytes)
      utimesSync(file, atimeMs / 1000, mtimeMs / 1000) // The time of a session file is its expiry.
      let one: TestApplication
      try {
        one = await startApplication(t, {}, config, { folder: own })
      } catch (error) {
        assert.equal(path, 'routes/admin.json', String(error)) // A route file, which people may edit and have to correct themselves.
        assert.match(String(error), /admin\.json/)
        refused += 1
        continue
      }
      await assertServes(one, cookie)
      await one.app.stop()
    }
    assert.ok(refused > 0)
  })
})
