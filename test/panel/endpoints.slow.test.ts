import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testKey, writeFiles } from '../support/application.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { cookieOf, credentials, greeting, nowSeconds, startPanel } from './panel-server.ts'
import { isJson } from '../access/support.ts'

const json = 'application/json; charset=utf-8'

test('slow answers after three seconds, with the time of day', async (t) => {
  const server = await startPanel(t, { 'admin.enabled': false })
  const began = performance.now()
  const answer = await server.ask('/svc-slow')
  assert.ok(performance.now() - began >= 2990)
  const { status, time, ...rest } = answer.json() as { status: string; time: string }
  assert.deepEqual([answer.status, answer.headers['content-type'], status, rest], [200, json, 'ok', {}])
  assert.match(time, /^([01]\d|2[0-3]):[0-5]\d:[0-5]\d$/)
})

test('stop answers, closes its connection, and the process ends with 0', async (t) => {
  const folder = temporaryFolder()
  writeFiles(folder, { 'routes/.keep': '', 'svc.json': { 'server.port': 0, app_key: testKey, ...credentials } })
  const server = launch(t, ['start'], { cwd: folder })
  const url = await server.listening()
  const answer = await request(`${url}/svc-stop`, {
    headers: { cookie: cookieOf(nowSeconds()), connection: 'keep-alive' },
  })
  isJson(answer, { status: 'stopping' })
  assert.equal(answer.headers.connection, 'close')
  assert.equal(await server.ended, 0)
  assert.match(server.stdout(), /\[INFO \] \[server\] stop requested by 127\.0\.0\.1\n/)
})

test('while a stop drains, ready says 503 and everything else is still served', async (t) => {
  const folder = temporaryFolder()
  // Long, since the test does not wait for the end: the process is killed after the last request.
  const config = {
    'server.port': 0,
    app_key: testKey,
    ...credentials,
    'server.drain_delay_s': 60,
    'server.stop_timeout_s': 120,
  }
  writeFiles(folder, { ...greeting, 'svc.json': config })
  const server = launch(t, ['start'], { cwd: folder })
  const url = await server.listening()
  const headers = { cookie: cookieOf(nowSeconds()) }
  isJson(await request(`${url}/svc-ready`), { status: 'ready' })
  isJson(await request(`${url}/svc-stop`, { headers }), { status: 'stopping' })
  const ready = await request(`${url}/svc-ready`)
  assert.deepEqual([ready.status, ready.json()], [503, { status: 'stopping' }])
  assert.equal((await request(`${url}/hello/bob`)).text, 'hello bob')
  assert.equal((await request(`${url}/svc-routes/reload`, { headers })).status, 200)
  isJson(await request(`${url}/svc-stop`, { headers }), { status: 'stopping' })
})
