import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { fieldOf, fieldsOf } from '../../lib/http/request-fields.ts'
import { requestText } from '../support/connection.ts'
import { listen } from '../support/listen.ts'
import { exchange } from '../support/raw.ts'
import { Seeded } from '../support/seeded.ts'

/** Sends requests with these fields to a plain server, and calls `look` with each of them. */
async function receive(t: TestContext, requests: readonly (readonly string[])[], look: (request: IncomingMessage, at: number) => void) {
  let at = 0
  const failures: unknown[] = []
  const server = createServer((request, response) => {
    try {
      look(request, at)
    } catch (error) {
      failures.push(error)
    }
    at += 1
    response.end()
  })
  const port = await listen(t, server)
  const texts = requests.map((fields, index) => requestText('GET /', index === requests.length - 1 ? [...fields, 'Connection: close'] : fields))
  await exchange(port, texts.join(''))
  if (failures.length > 0) throw failures[0]
  assert.equal(at, requests.length)
}

describe('the fields of a request', () => {
  it("are the same as Node's, ignoring case, whatever their order and number", async (t) => {
    const seeded = new Seeded(1)
    const names = ['Cookie', 'X-A', 'x-a', 'X-B', 'Accept', 'ACCEPT', 'User-Agent', 'Authorization', 'Referer', 'If-Match', 'age', 'Via', '0']
    const requests = Array.from({ length: 400 }, () =>
      Array.from({ length: seeded.integer(6) }, () => `${seeded.pick(names)}: ${seeded.pick(['', 'a', 'a=b; c', '1, 2', '\u00e9'])}`),
    )
    await receive(t, requests, (request, at) => {
      const { headers } = request
      const own = fieldsOf(headers)
      assert.equal(Object.getPrototypeOf(own), null)
      for (const name of names) assert.equal(fieldOf(request, name.toLowerCase()), headers[name.toLowerCase()], `${name} of ${requests[at]}`)
      assert.deepEqual({ ...own }, { ...headers })
    })
  })

  it('are found whatever names came before, many and long ones', async (t) => {
    const requests = Array.from({ length: 400 }, (_, at) => [`X-${at}: a`, `X-${'B'.repeat(at % 100)}-${at}: b`, 'X-Last: c'])
    await receive(t, requests, ({ headers }) => assert.deepEqual({ ...fieldsOf(headers) }, { ...headers }))
  })

  it('are strings, even Set-Cookie, whatever else was sent', async (t) => {
    const doubled = ['X-A: 1', 'X-A: 2']
    await receive(t, [['Set-Cookie: a'], ['Set-Cookie: a', ...doubled], [...doubled, 'Set-Cookie: a', 'set-cookie: b']], (request, at) => {
      const expected = at < 2 ? 'a' : 'a, b'
      assert.deepEqual([fieldOf(request, 'set-cookie'), fieldsOf(request.headers)['set-cookie']], [expected, expected])
    })
    await receive(t, [['__proto__: a'], ['__proto__: a', '__proto__: b', ...doubled]], (request, at) => {
      assert.equal(fieldOf(request, '__proto__'), at === 0 ? 'a' : undefined)
      assert.equal(fieldsOf(request.headers)['__proto__'], undefined, 'Node keeps none of that name')
    })
  })

  it('are own keys: none is inherited', async (t) => {
    await receive(t, [['X-A: 1'], ['Constructor: b', 'toString: c', 'Set-Cookie: d=e']], (request, at) => {
      const fields = fieldsOf(request.headers)
      const own = ['constructor', 'tostring', 'set-cookie'].map((name) => [fieldOf(request, name), fields[name]])
      const sent = at === 0 ? [undefined, undefined, undefined] : ['b', 'c', 'd=e']
      assert.deepEqual(own, sent.map((value) => [value, value]))
      assert.equal(fieldOf(request, 'hasOwnProperty'), undefined)
    })
  })
})
