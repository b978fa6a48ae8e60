import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HeaderSections } from '../../lib/core/header-section.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { serve, small, writeWith } from './header-section-support.ts'

describe('HeaderSections', () => {
  it('sends the current second', async (t) => {
    const sections = new HeaderSections()
    const { port } = await serve(t, (response) => writeWith(sections, response, small))
    const request = 'GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'
    const seen = new Set<string>()
    await until(async () => {
      const before = Date.now()
      const { date = '' } = parseAnswer(await exchange(port, request)).headers
      // Node caches the text of a second by a timer, which a busy loop delays; so does the section.
      assert.ok(Date.parse(date) > before - 2000 && Date.parse(date) <= Date.now(), `${date} at ${new Date(before).toISOString()}`)
      seen.add(date)
      return seen.size === 3
    })
  })
})
