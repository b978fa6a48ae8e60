// Clients that end their side of the connection after their requests, such as `nc`, `socat` and HTTP/1.0 programs.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { connectTls, startSecure } from './listener-support.ts'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { readAll } from '../support/raw.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

const actions = {
  '/now': "() => 'now'",
  '/late': "(ctx) => new Promise((resolve) => setTimeout(resolve, 20, 'late'))",
  '/stream': `() => (async function* () {
    for (let count = 0; count < 3; count += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      yield 'piece ' + count + '\\n'
    }
  })()`,
  'POST /read': `async (ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 5))
    const text = await ctx.readText()
    ctx.log('read ' + text.length)
    return text
  }`,
  'POST /form': `async (ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 5))
    const form = await ctx.readForm()
    ctx.log('form ' + form.get('a') + ' ' + form.files.map((file) => file.size).join())
    return 'form'
  }`,
  '/poll': '(ctx) => ctx.longPoll(ctx.channel("c"), { timeout_s: 600 })',
  '/watch': `(ctx) => new Promise((resolve) => {
    ctx.signal.addEventListener('abort', () => { ctx.log('aborted'); resolve('gone') })
  })`,
  '/watch-late': `async (ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return new Promise((resolve) => {
      ctx.signal.addEventListener('abort', () => { ctx.log('aborted late'); resolve('gone') })
    })
  }`,
}
const files = { 'public/small.txt': 'small', 'public/large.bin': 'l'.repeat(3_000_000) }

/** Sends bytes, ends the sending side with them, and resolves with everything received. */
async function requestAndEnd(port: number, bytes: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(Buffer.from(bytes, 'latin1'))
  return readAll(socket)
}

const start = (t: TestContext) => serve(t, actions, { 'paths.public': 'public' }, files)

describe('a client that ends its side after its request', () => {
  const rows: readonly (readonly [what: string, bytes: string, end: RegExp])[] = [
    ['for an action', requestText('GET /now'), /\r\n\r\nnow$/],
    ['of HTTP/1.0', 'GET /late HTTP/1.0\r\n\r\n', /\r\n\r\nlate$/],
    ['for a waiting action', requestText('GET /late'), /\r\n\r\nlate$/],
    ['for a small file', requestText('GET /small.txt'), /\r\n\r\nsmall$/],
    ['for a large file', requestText('GET /large.bin'), /\r\n\r\nl{3000000}$/],
    ['for a stream', requestText('GET /stream'), /piece 2\n\r\n0\r\n\r\n$/],
    ['with a body', requestText('POST /read', ['Content-Length: 4'], 'body'), /\r\n\r\nbody$/],
    ['with a body in chunks', requestText('POST /read', ['Transfer-Encoding: chunked'], '4\r\nbody\r\n0\r\n\r\n'), /\r\n\r\nbody$/],
    ['with three requests', requestText('GET /late') + requestText('POST /read', ['Content-Length: 4'], 'body') + requestText('GET /now'), /late[^]*body[^]*now$/],
    // If the end is seen only after the response, the start is refused, too.
    ['with the start of another request', `${requestText('GET /late')}GET /no`, /\r\n\r\nlate(?:HTTP\/1\.1 400 |$)/],
  ]
  for (const [what, bytes, end] of rows) {
    it(`${what} always gets its response`, async (t) => {
      const { port } = await start(t)
      for (let round = 0; round < 10; round += 1) assert.match(await requestAndEnd(port, bytes), end)
    })
  }

  it('gets its response over TLS too', async (t) => {
    const { port } = await startSecure(t)
    const socket = await connectTls(t, port)
    let text = ''
    socket.on('data', (piece: Buffer) => (text += piece))
    socket.end(requestText('POST /', ['Content-Length: 3'], 'abc'))
    await once(socket, 'close')
    assert.match(text, /^HTTP\/1\.1 200 OK/)
  })

  it('counts as disconnected if it waits for an event, or if its action watches for that', async (t) => {
    const { port, lines } = await start(t)
    const paths = ['/poll', '/watch', '/watch-late']
    for (const path of paths) assert.equal(await requestAndEnd(port, requestText(`GET ${path}`)), '')
    await until(() => lines('access.log').length === paths.length)
    assert.deepEqual(lines('access.log').map((line) => line.slice(-3)), ['499', '499', '499'])
    for (const end of ['aborted', 'aborted late']) await until(() => lines().some((line) => line.endsWith(end)))
  })
})

describe('a body that has fully arrived', () => {
  it('can be read although its client has disconnected, in whatever way', async (t) => {
    const { port, lines } = await start(t)
    const boundary = '--B\r\nContent-Disposition: form-data; name='
    const multipart = `${boundary}"a"\r\n\r\n1\r\n${boundary}"f"; filename="f"\r\n\r\n${'x'.repeat(9000)}\r\n--B--\r\n`
    const multipartFields = ['Content-Type: multipart/form-data; boundary=B', `Content-Length: ${multipart.length}`]
    const requests = [
      requestText('POST /read', ['Content-Length: 4'], 'body'),
      requestText('POST /form', multipartFields, multipart),
      requestText('POST /form', ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 3'], 'a=1'),
    ]
    const rounds = 20
    for (let round = 0; round < rounds; round += 1) {
      for (const bytes of requests) {
        for (const leave of ['destroy', 'reset'] as const) {
          const client = new Connection(t, port)
          await client.send(bytes)
          if (leave === 'destroy') client.socket.destroy()
          else await client.reset()
        }
      }
    }
    const count = (end: string): number => lines().filter((line) => line.endsWith(end)).length
    // A reset overtakes input that the server has not read yet, so not every request arrives.
    await until(() => count('read 4') >= rounds && count('form 1 9000') >= rounds && count('form 1 ') >= rounds)
    assert.deepEqual(lines().filter((line) => /\[(ERROR|FATAL)/.test(line)), [])
  })

  it('is a client error, as before, if the rest is missing', async (t) => {
    const { port, lines } = await start(t)
    const text = await requestAndEnd(port, requestText('POST /read', ['Content-Length: 9'], 'body'))
    assert.deepEqual(splitAnswers(text).map(({ status }) => status), [400])
    assert.ok(!lines().some((line) => line.includes('read 4')))
  })
})
