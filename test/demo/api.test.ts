import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jwtKey as key, startBoard, tokenOf } from '../support/board.ts'
import { request, type Answer } from '../support/request.ts'
import { shownOf, signedUp } from '../support/visitor.ts'

function send(url: string, token: string, body: string): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return request(`${url}/api/notices`, { headers, body })
}

test('a program with a token posts a notice under the name of its claim sub', async (t) => {
  const { url } = await startBoard(t)
  const answer = await send(url, tokenOf({ sub: 'Robot', exp: Date.now() / 1000 + 60 }), '{"text":" Beep "}')
  assert.deepEqual([answer.status, answer.headers.location], [201, '/notices/1'])
  const { written_at: time, ...notice } = answer.json() as Record<string, unknown>
  assert.deepEqual(notice, { id: 1, author: 'Robot', text: 'Beep' })
  assert.equal(new Date(String(time)).toISOString(), time)
  assert.match((await request(`${url}/notices/1`)).text, /Beep[^]*Robot/)
})

test('a notice of a program belongs to no user, not even one with the same name, and to no visitor', async (t) => {
  const { url } = await startBoard(t)
  await send(url, tokenOf({ sub: 'Robot' }), '{"text":"Beep"}')
  const robot = await signedUp(url, 'Robot')
  assert.equal((await robot.get('/notices/1/edit')).status, 403)
  for (const page of [await robot.get('/'), await request(url)]) assert.doesNotMatch(shownOf(page), /Edit/)
})

test('an invalid notice is 422 with the reason, in JSON', async (t) => {
  const { url } = await startBoard(t)
  for (const [body, text] of [
    ['{}', 'The text must be a string.'],
    ['null', 'The text must be a string.'],
    ['["text"]', 'The text must be a string.'],
    ['{"text":5}', 'The text must be a string.'],
    ['{"text":" "}', 'The notice is empty.'],
    [JSON.stringify({ text: 'x'.repeat(1001) }), 'The notice may have at most 1000 characters: it has 1001.'],
  ] as const) {
    const answer = await send(url, tokenOf({ sub: 'Robot' }), body)
    assert.equal(answer.status, 422, body)
    assert.deepEqual(answer.json(), { error: 'invalid_notice', errors: { text } })
  }
  assert.equal((await send(url, tokenOf({ sub: 'Robot' }), '{')).status, 400)
  assert.deepEqual((await request(`${url}/api/notices`)).json(), [])
})

test('requires a token with the right key, valid now, with a name', async (t) => {
  const { url } = await startBoard(t)
  const body = '{"text":"Beep"}'
  const none = await request(`${url}/api/notices`, { body })
  assert.deepEqual([none.status, (none.json() as { error: string }).error], [401, 'unauthorized'])
  for (const token of ['', 'a.b.c', tokenOf({ sub: 'Robot' }, `${key} `), tokenOf({ sub: 'Robot', exp: 1 })]) {
    const answer = await send(url, token, body)
    assert.deepEqual([answer.status, (answer.json() as { error: string }).error], [401, 'invalid_token'], token)
  }
  for (const claims of [{}, { sub: 5 }, { sub: '' }, { sub: 'x'.repeat(41) }]) {
    const answer = await send(url, tokenOf(claims), body)
    assert.deepEqual([answer.status, (answer.json() as { error: string }).error], [403, 'no_author'])
  }
  assert.deepEqual((await request(`${url}/api/notices`)).json(), [])
})
