import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { readObject, refuse } from '../../lib/panel/json-body.ts'
import type { Action } from '../../lib/chain/compose.ts'
import { request, type Answer } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { makePort, serve } from '../access/support.ts'

/** Serves an endpoint that returns the object it read. Returns a function that sends a body to it. */
async function start(
  t: TestContext,
): Promise<(body: string | Uint8Array, headers?: Record<string, string>) => Promise<Answer>> {
  const url = await serve(t, makePort(), [
    {
      method: 'POST',
      url: '/svc-echo',
      action: async (ctx) => {
        const body = await readObject(ctx)
        return 'refusal' in body ? body.refusal : ctx.json({ read: body.value })
      },
    },
  ])
  return (body, headers = {}) => request(`${url}/svc-echo`, { body, headers })
}

test('reads an object in UTF-8, with a byte order mark or not, whatever the content type', async (t) => {
  const post = await start(t)
  for (const type of [
    'text/plain',
    'application/json; charset=utf-16',
    'text/plain; charset=iso-8859-1',
    'multipart/form-data',
    ';;',
  ]) {
    for (const mark of ['', '\ufeff']) {
      const answer = await post(`${mark}{"name": "ä\u2028"}`, { 'content-type': type })
      assert.deepEqual([answer.status, answer.json()], [200, { read: { name: 'ä\u2028' } }], type)
    }
  }
})

test('a key __proto__ changes no prototype', async (t) => {
  const post = await start(t)
  assert.equal((await post('{"__proto__": {"name": "a"}}')).text, '{"read":{"__proto__":{"name":"a"}}}')
})

test('refuses anything but an object, with the reason', async (t) => {
  const post = await start(t)
  const rows: [body: string | Uint8Array, error: string][] = [
    ['', 'Cannot read the body as JSON: it is empty'],
    ['{\n "a" 1}', 'Cannot read the body as JSON: line 2, column 6: '],
    ['[{}]', 'The body must be a JSON object'],
    ['null', 'The body must be a JSON object'],
    [Uint8Array.of(0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d), 'Cannot read the body as JSON: it is not UTF-8'],
    ['['.repeat(100_000), 'Cannot read the body as JSON: '],
  ]
  for (const [body, error] of rows) {
    const answer = await post(body)
    const { ok, error: said, ...rest } = answer.json() as { ok: boolean; error: string }
    assert.deepEqual([answer.status, ok, rest], [400, false, {}])
    assert.ok(said.startsWith(error), said)
  }
})

test('random bytes are refused or read, never an error of the server (seeded)', async (t) => {
  const post = await start(t)
  const random = new Seeded(33)
  for (let round = 0; round < 100; round += 1) {
    const text = Buffer.from('{"name": [1, "\\u00e4", null], "b": {"c": true}}')
    for (let flips = random.integer(4); flips > 0; flips -= 1) text[random.integer(text.length)] = random.integer(256)
    const { status } = await post(text)
    assert.ok(status === 200 || status === 400, `${status}: ${text.toString('hex')}`)
  }
})

test('a refusal has its status, reason and further fields', async (t) => {
  const action: Action = (ctx) => refuse(ctx, 409, 'no', { name: 'a' })
  const answer = await request(
    `${await serve(t, makePort(), [{ method: 'GET', url: '/svc-refuse', action }])}/svc-refuse`,
  )
  assert.deepEqual([answer.status, answer.json()], [409, { ok: false, error: 'no', name: 'a' }])
})
