import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { LoadError, startInTurns } from '../bench/http/wrk.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const connections = 4

test('the load of a benchmark goes on and waits, ends long before its time, and counts what was answered', async (t) => {
  let answered = 0
  const server = createServer((_request, response) => {
    answered += 1
    response.end('ok')
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const request = { url: `http://127.0.0.1:${port}/`, method: 'GET', headers: {}, body: '' } as const
  const options = { core: 0, connections, seconds: 3000, scriptFile: join(temporaryFolder(), 'request.lua') }
  const load = startInTurns({ ...request, status: 200 }, options)
  for (let turn = 1; turn <= 3; turn += 1) {
    const before = answered
    load.go()
    await until(() => answered > before + 100)
    load.wait()
  }
  const counted = await load.end()
  assert.ok(counted > 300 && counted <= answered && counted >= answered - connections, `${counted} of ${answered}`)

  const wrong = startInTurns({ ...request, status: 404 }, options)
  wrong.go()
  await until(() => answered > counted + 100)
  await assert.rejects(wrong.end(), LoadError)
})
