import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { EndedRequest } from '../../lib/base/ports.ts'
import { createRequestLines } from '../../lib/dev/request-lines.ts'
import { until } from '../support/until.ts'

const ended = { method: 'GET', path: '/notes/1', sentStatus: 200, durationMs: 1.26, routeName: 'notes.one' } as EndedRequest

/** The request lines, as printed. */
async function printed(requests: readonly Partial<EndedRequest>[], colours = false): Promise<string> {
  let text = ''
  const port = { out: (more: string) => void (text += more), error: () => {}, waitingBytes: 0 }
  const logged: EndedRequest[] = []
  const lines = createRequestLines({ write: (request) => void logged.push(request) }, port, colours)
  for (const request of requests) lines.write({ ...ended, ...request }, 0)
  assert.equal(logged.length, requests.length)
  await until(() => text !== '')
  return text
}

describe('the console in dev', () => {
  test('has a line for each request with method, path, status, time and route', async () => {
    const others = [{ sentStatus: 404, durationMs: 12.6, routeName: '' }, { method: 'POST' }]
    assert.equal(
      await printed([{}, ...others]),
      'GET /notes/1 200 1.3 ms notes.one\nGET /notes/1 404 13 ms\nPOST /notes/1 200 1.3 ms notes.one\n',
    )
  })

  test('has no line for the panel', async () => {
    assert.equal(await printed([{ routeName: 'svc.status' }, { path: '/a' }]), 'GET /a 200 1.3 ms notes.one\n')
  })

  test('masks control characters', async () => {
    const path = '/a\x1b[31m\r\n\x7f\x9b\u2028'
    assert.equal(await printed([{ path, routeName: 'a\nb' }]), 'GET /a\\x1b[31m\\x0d\\x0a\\x7f\\x9b\\u2028 200 1.3 ms a\\x0ab\n')
  })

  test('has colours by status', async () => {
    for (const [sentStatus, colour] of [[101, 0], [204, 32], [302, 36], [499, 33], [500, 31]] as const) {
      const text = await printed([{ sentStatus }], true)
      assert.equal(text, `GET /notes/1 \x1b[${colour}m${sentStatus}\x1b[0m \x1b[2m1.3 ms notes.one\x1b[0m\n`)
    }
  })
})
