import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { checkBrokenRequests, checkLeavers, hostileServer } from './hostile-support.ts'

describe('clients that leave', () => {
  it('at every stage, each in another way, leave nothing behind', (t) => checkLeavers(t, 1))
})

describe('malformed requests', () => {
  it('get a response or a closed connection, and the server keeps running: 80 requests', (t) => checkBrokenRequests(t, 5))

  it('in a flood of connections do not block other clients', async (t) => {
    const server = await hostileServer(t)
    const clients = Array.from({ length: 200 }, (_, at) => {
      const client = new Connection(t, server.port)
      client.socket.write(at % 2 === 0 ? 'GET /ok HTTP/1.1\r\nHost: h\r\nA: ' : requestText('POST /read', ['Content-Length: 1000'], 'abc'))
      return client
    })
    const answer = await request(`${server.url}/small.txt`)
    assert.equal(answer.text, 'small')
    for (let count = 0; count < 20; count++) assert.equal((await request(`${server.url}/ok`)).status, 200)
    for (const client of clients) client.socket.destroy()
    await server.clean()
  })

  it('do not slip a second request through (request smuggling)', async (t) => {
    const server = await hostileServer(t)
    const inner = requestText('GET /echo/smuggled/x')
    const rows = [
      requestText('POST /read', ['Content-Length: 4', 'Transfer-Encoding: chunked'], `0\r\n\r\n${inner}`),
      requestText('POST /read', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], `0\r\n\r\n${inner}`),
      requestText('POST /read', ['Transfer-Encoding : chunked'], `0\r\n\r\n${inner}`),
      requestText('POST /read', ['Transfer-Encoding:\x0bchunked'], `0\r\n\r\n${inner}`),
      requestText('POST /read', ['Content-Length: 0', 'Content-Length: 44'], inner),
      requestText('POST /read', ['Content-Length: +0'], inner),
      requestText('GET /ok', [`A: b\n\n${inner}`]),
      requestText('POST /read', ['Transfer-Encoding: chunked'], `0x0\r\n\r\n${inner}`),
      requestText('POST /read', ['Transfer-Encoding: chunked'], `0\n\n${inner}`),
    ]
    for (const bytes of rows) {
      const client = new Connection(t, server.port)
      client.socket.end(bytes)
      const statuses = splitAnswers(await client.closed()).map(({ status }) => status)
      assert.equal(statuses.at(-1), 400, JSON.stringify(bytes))
      assert.ok(!client.received.includes('smuggled'), JSON.stringify(bytes))
    }
    await server.clean()
  })
})

describe('uploads', () => {
  it('leave no file behind, whether they succeed or not', async (t) => {
    const server = await hostileServer(t)
    const boundary = { 'content-type': 'multipart/form-data; boundary=B' }
    const head = '--B\r\nContent-Disposition: form-data; name="f"; filename="f.bin"\r\n\r\n'
    const whole = await request(`${server.url}/form`, { headers: boundary, body: `${head}${'z'.repeat(300_000)}\r\n--B--\r\n` })
    assert.deepEqual([whole.status, whole.text], [200, '300000'])
    const unended = await request(`${server.url}/form`, { headers: boundary, body: head + 'z'.repeat(300_000) })
    assert.equal(unended.status, 400)
    const client = new Connection(t, server.port)
    const fields = ['Content-Type: multipart/form-data; boundary=B', 'Transfer-Encoding: chunked']
    const chunk = 'z'.repeat(0x100000)
    await client.send(requestText('POST /form', fields, `${head.length.toString(16)}\r\n${head}\r\n100000\r\n${chunk}\r\n`))
    const [large] = await client.answers(1)
    assert.equal(large?.status, 413)
    assert.ok(readdirSync(join(server.folder, 'public')).length === 2)
    await server.clean()
  })
})
