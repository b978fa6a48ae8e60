import assert from 'node:assert/strict'
import { it } from 'node:test'
import { exchange } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { eventServer } from './event-server.ts'

it('a delayed response has each header field once, with its own values where required', async (t) => {
  const { url } = await eventServer(t, {
    '/poll': (ctx) => {
      ctx.setHeader('Cache-Control', 'private')
      ctx.setHeader('content-type', 'text/x-other')
      ctx.setHeader('X-Own', 'kept')
      ctx.setCookie('a', '1')
      ctx.setCookie('b', '2')
      return ctx.longPoll(ctx.channel('c'), { timeout_s: 0 })
    },
  })
  const { headers } = await request(`${url}/poll`)
  const head = await exchange(Number(new URL(url).port), 'GET /poll HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  const names = head.split('\r\n').map((line) => line.split(':')[0]?.toLowerCase())
  assert.deepEqual([headers['content-type'], headers['cache-control']], ['application/json; charset=utf-8', 'no-store'])
  assert.deepEqual([headers['x-own'], headers['set-cookie']?.length], ['kept', 2])
  for (const name of ['content-type', 'cache-control', 'content-length']) {
    assert.equal(names.filter((one) => one === name).length, 1, name)
  }
})
