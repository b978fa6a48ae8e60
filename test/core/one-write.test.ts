import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import { it, type TestContext } from 'node:test'
import { endWithText } from '../../lib/core/header-section.ts'
import { exchange } from '../support/raw.ts'
import { request } from '../support/request.ts'

const texts: Readonly<Record<string, string>> = {
  '/short': 'x',
  '/fields': 'HTTP/1.1 500 No\r\n\r\n',
  '/longest': 'a'.repeat(16 * 1024),
  '/longer': 'a'.repeat(16 * 1024 + 1),
}

async function serve(t: TestContext, end: (response: ServerResponse, text: string) => void): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    const text = texts[url] ?? ''
    response.writeHead(200, { 'Content-Length': text.length })
    end(response, text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : assert.fail('no port')}`
}

it('sends the header section and the text, whatever the length', async (t) => {
  const url = await serve(t, endWithText)
  for (const [path, text] of Object.entries(texts)) {
    const answer = await request(url + path)
    assert.deepEqual([answer.status, answer.text === text], [200, true], path)
  }
})

it('sends no text for HEAD', async (t) => {
  const url = await serve(t, endWithText)
  const received = await exchange(Number(new URL(url).port), 'HEAD /short HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  assert.match(received, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/)
})

it('keeps the order of responses on one connection', async (t) => {
  const url = await serve(t, endWithText)
  const heads = ['/short', '/fields', '/short'].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n`)
  const received = await exchange(Number(new URL(url).port), `${heads.join('\r\n')}Connection: close\r\n\r\n`)
  const bodies = received.split(/HTTP\/1\.1 200 OK\r\n(?:[^\r\n]+\r\n)+\r\n/).slice(1)
  assert.deepEqual(bodies, ['x', texts['/fields'], 'x'])
})

it('sends the text the usual way if Node keeps its header section elsewhere', async (t) => {
  const url = await serve(t, (response, text) => {
    const elsewhere = Object.create(response, { _header: { value: undefined } }) as ServerResponse
    Object.defineProperty(elsewhere, 'end', { value: (chunk?: string) => response.end(chunk) })
    endWithText(elsewhere, text)
  })
  assert.equal((await request(`${url}/short`)).text, 'x')
})
