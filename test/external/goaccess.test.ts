import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { startApplication } from '../support/application.ts'
import { Connection, requestText } from '../support/connection.ts'
import { optionsOfTarget } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { readWithGoAccess } from '../soak/goaccess.ts'
import { runSoak } from '../soak/run.ts'
import { judge } from '../soak/verdict.ts'

test('a short soak leaks nothing, and GoAccess reads of its access log what the server counted', async (t) => {
  const { rounds, tallies, counted, logged, accessLogs, removeLogs } = await runSoak({
    store: 'file',
    seed: 1,
    warmUpRounds: 3,
    rounds: 4,
    roundMs: 2500,
    keepAccessLogs: true,
    nodeOptions: optionsOfTarget(),
  })
  t.after(removeLogs)
  assert.deepEqual(tallies.complaints, [])
  assert.deepEqual(judge(rounds).filter(({ holds }) => !holds), [])
  assert.ok(tallies.total > 1000 && accessLogs.length > 1, `${tallies.total} answers, ${accessLogs.length} files`)
  assert.deepEqual(logged, counted)
  assert.deepEqual(readWithGoAccess(accessLogs), { ...counted, failed: 0 })
})

test('GoAccess reads whatever a client sends', async (t) => {
  const files = { 'routes/a.json': [{ name: 'a', url: '/*rest', action: 'a.mjs' }], 'a.mjs': 'export default () => "ok"' }
  const { app, folder, port, url } = await startApplication(t, files, { 'access_log.format': 'combined' })
  const fields: readonly Readonly<Record<string, string>>[] = [
    {},
    { 'user-agent': 'a "quoted" one \\', referer: 'https://a.example/?q="x" y' },
    { 'user-agent': '', referer: '' },
    { 'user-agent': '] "GET / HTTP/1.1" 200 1', referer: '" 500 1 "-" "-"' },
    { 'user-agent': '\u00fc\u00ff\t%s%n', referer: '-' },
    { 'user-agent': 'x'.repeat(1500), referer: `https://a.example/${'y'.repeat(1500)}` }, // It reads lines up to 4 KiB.
  ]
  for (const headers of fields) await request(`${url}/a`, { headers })
  const paths = ['/', '/a/%22b%22', "/it's", '/%0a%0d', '/a?b=c', '/x]', '/[x', '/%', `/${'z'.repeat(3000)}`, '/a//b', '/|']
  for (const path of paths) await raw(`GET ${path}`)
  const methods = ['HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND']
  for (const method of methods) await raw(`${method} /a`)
  app.flushLogs()

  async function raw(line: string): Promise<void> {
    const connection = new Connection(t, port)
    await connection.send(requestText(line, ['Connection: close']))
    assert.match(await connection.closed(), /^HTTP\/1\.1 [24]\d\d /, line)
  }

  const { requests, failed } = readWithGoAccess([join(folder, '.logs', 'access.log')])
  assert.deepEqual({ requests, failed }, { requests: fields.length + paths.length + methods.length, failed: 0 })
})
