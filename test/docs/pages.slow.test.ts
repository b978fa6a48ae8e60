import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { statusesOfConnection } from '../support/errors-page.ts'
import { exchange, parseAnswer } from '../support/raw.ts'

describe('docs/errors.md', () => {
  it('is right about responses on the connection', async (t) => {
    const { port, lines } = await startApplication(t, {}, { 'server.header_timeout_s': 1 })
    const late = exchange(port, 'GET / HTTP/1.1\r\nHost: a\r\n')
    const large = await exchange(port, `GET / HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(17_000)}\r\n\r\n`)
    const answers = [parseAnswer(await late), parseAnswer(large)]
    assert.deepEqual(answers.map(({ status }) => status), Object.values(statusesOfConnection))
    for (const { headers, body } of answers) {
      assert.match(headers['content-type'] ?? '', /^text\/html/)
      assert.match(body, /^<!doctype html>/)
    }
    assert.deepEqual(lines('access.log').map((line) => line.slice(line.indexOf('"'))), ['"- - HTTP/1.1" 431', '"- - HTTP/1.1" 408'])
  })
})
