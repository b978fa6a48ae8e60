import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Connection, requestText } from '../support/connection.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('40,000 requests in one write take less than 100 MB, and others are answered meanwhile', async (t) => {
  const server = launch(t, ['start', '--port', '0', '--env', 'dev'], { cwd: temporaryFolder() })
  const url = await server.listening()
  const megabytes = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))?.[1]) / 1024
  for (let count = 0; count < 100; count += 1) await request(`${url}/svc-ping`)
  const before = megabytes()
  const client = new Connection(t, Number(new URL(url).port))
  void client.send(requestText('GET /svc-slow', ['Host: localhost']).replace('Host: h\r\n', '').repeat(40_000))
  for (let count = 0; count < 1000; count += 1) assert.equal((await request(`${url}/svc-ping`)).status, 200)
  assert.ok(megabytes() - before < 100, `${before.toFixed()} MB before, ${megabytes().toFixed()} MB now`)
  // 100 are served at a time, and each takes three seconds: the answers to the others are still to come.
  assert.ok((client.received.match(/^HTTP\/1\.1 200 /gm)?.length ?? 0) < 40_000)
})
