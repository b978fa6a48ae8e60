import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { freePort } from '../support/free-port.ts'
import { launch, root } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { loadedFiles } from '../sizes/loaded.ts'
import { until } from '../support/until.ts'
import { openStream, page } from './dev-support.ts'

const dev = { 'app.env': 'dev' }
const module = (text: string): string => `export default () => '${text}'`

/** Saves a file atomically, so that no process sees half of it. */
function save(folder: string, name: string, content: string): void {
  writeFileSync(join(folder, `${name}.tmp`), content)
  renameSync(join(folder, `${name}.tmp`), join(folder, name))
}

describe('the command line in dev', () => {
  test('prints a line for each request on the console, and in no file', async (t) => {
    const cwd = applicationFolder({}, dev)
    const launched = launch(t, [], { cwd })
    const url = await launched.listening()
    for (const path of ['/?query=1', '/a%0Ab', '/svc-status', '/svc-dev.js']) await request(url + path)
    await until(() => launched.stdout().includes('GET /a%0Ab'))
    const lines = launched.stdout().split('\n').filter((line) => line.startsWith('GET '))
    assert.deepEqual(lines.map((line) => line.replace(/[\d.]+ ms/, 'N ms')), ['GET / 200 N ms home', 'GET /a%0Ab 404 N ms'])
    launched.child.kill('SIGTERM')
    assert.equal(await launched.ended, 0)
  })

  test('prints none if the console is off, and none in prod', async (t) => {
    for (const config of [{ ...dev, 'log.console': false }, { 'app.env': 'prod', 'log.level': 'debug' }]) {
      const cwd = applicationFolder({}, config)
      const port = await freePort()
      const launched = launch(t, ['--port', String(port)], { cwd })
      const url = `http://127.0.0.1:${port}`
      await until(() => request(url).then(({ status }) => status === 200, () => false))
      launched.child.kill('SIGTERM')
      await launched.ended
      assert.deepEqual(launched.stdout().split('\n').filter((line) => line.startsWith('GET ')), [])
    }
  })

  test('watches for all processes, and refreshes the pages of all', async (t) => {
    const cwd = applicationFolder({ 'v.html': page('one') }, { ...dev, 'server.processes': 2 })
    const launched = launch(t, [], { cwd })
    const url = await launched.listening()
    // The kernel chooses the process of a connection: with eight streams each has one.
    const streams = await Promise.all(Array.from({ length: 8 }, () => openStream(t, url)))
    await request(`${url}/svc-routes/add`, { body: JSON.stringify({ name: 'x', url: '/x', method: 'GET', scope: '', action: 'home.mjs' }) })
    const all = (count: number): Promise<unknown> => Promise.all(streams.map((stream) => stream.told(count)))
    save(cwd, 'home.mjs', module('two'))
    await all(1)
    for (let round = 0; round < 8; round++) assert.equal((await request(url)).text, 'two')
    save(cwd, 'home.mjs', 'export default () => {')
    await all(2)
    for (const { news } of streams) assert.match(String(news.at(-1)), /home\.mjs:1/)
    for (let round = 0; round < 8; round++) assert.equal((await request(url)).text, 'two')
    save(cwd, 'home.mjs', module('three'))
    await all(3)
    for (const path of ['/', '/x']) {
      for (let round = 0; round < 8; round++) assert.equal((await request(url + path)).text, 'three')
    }
    save(cwd, 'v.html', page('two'))
    await all(4)
    save(cwd, 'svc.json', JSON.stringify({ ...dev, 'server.processes': 2, 'log.level': 'warn' }))
    await until(() => launched.stdout().includes('svc.json was saved: restart the server for '))
    const times = (text: string): number => launched.stdout().split(text).length - 1
    assert.deepEqual([times('] routes reloaded'), times('Cannot reload the routes'), times('was saved')], [2, 1, 1])
    launched.child.kill('SIGTERM')
    assert.equal(await launched.ended, 0)
  })
})

test('prod loads none of it', async (t) => {
  const ofDev = (files: readonly string[]): string[] => files.filter((file) => file.startsWith('dev/'))
  assert.deepEqual(ofDev(await loadedFiles(t, root, 'prod')), [])
  assert.ok(ofDev(await loadedFiles(t, root, 'dev')).length > 3)
})
