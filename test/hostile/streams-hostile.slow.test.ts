import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Connection, requestText } from '../support/connection.ts'
import { parseAnswer } from '../support/raw.ts'
import { serveStreams } from './streams-hostile-support.ts'

it('a body on a poll that never ends ends the wait with 408', async (t) => {
  const chunked = 'Transfer-Encoding: chunked'
  const server = await serveStreams(t, { 'server.request_timeout_s': 1, 'server.header_timeout_s': 1 })
  const endless = ['/poll', '/hold', '/read'].map(async (path) => {
    const client = new Connection(t, server.port)
    await client.send(requestText(`POST ${path}`, [chunked], '3\r\nabc\r\n'))
    return parseAnswer(await client.closed()).status
  })
  assert.deepEqual(await Promise.all(endless), [408, 408, 408])
  const stream = new Connection(t, server.port)
  await stream.send(requestText('POST /sse', [chunked], '3\r\nabc\r\n'))
  assert.match(await stream.closed(), /^HTTP\/1\.1 200 /)
  await server.waits(0)
  await server.clean()
})
