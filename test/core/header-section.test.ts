import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { HeaderSections } from '../../lib/core/header-section.ts'
import { jsonType } from '../../lib/http/reply.ts'
import { exchange } from '../support/raw.ts'
import { checkSections, serve, small, writeWith } from './header-section-support.ts'

describe('HeaderSections', () => {
  it('is byte-identical to Node, for any status, fields, body and request', (t) => {
    return checkSections(t, 100)
  })

  it('reuses nothing from an outdated date, nor from the last response on a connection', () => {
    for (const section of ['Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nConnection: keep-alive\r\n', 'Connection: keep-alive\r\n']) {
      assert.equal(timesByNode({ section }), 3)
    }
    assert.equal(timesByNode({ shouldKeepAlive: false, section: `Date: ${new Date().toUTCString()}\r\nConnection: close\r\n` }), 3)
  })

  it('leaves every section to Node if Node keeps it elsewhere or builds it differently', () => {
    assert.equal(timesByNode({ section: undefined }), 3)
    const section = `Date: ${new Date().toUTCString()}\r\nConnection: keep-alive\r\n`
    assert.equal(timesByNode({ section }), 1)
    for (const start of [ordinaryStart.replace('OK', 'Ok'), ordinaryStart.replace('Type: ', 'Type:'), 'HTTP/1.1 200 OK\r\nContent-Length: 2']) {
      assert.equal(timesByNode({ start, section }), 3, start)
    }
  })

  it('leaves a response to Node if its fields or reason were set directly', async (t) => {
    const sections = new HeaderSections()
    const { port, made } = await serve(t, (response, { url }) => {
      if (url === '/field') response.setHeader('X-Raw', 'a')
      if (url === '/reason') response.statusMessage = 'Fine'
      return writeWith(sections, response, small)
    })
    const ask = async (path: string): Promise<string> =>
      exchange(port, `GET / HTTP/1.1\r\nHost: h\r\n\r\nGET ${path} HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`)
    assert.equal((await ask('/field')).match(/X-Raw: a\r\n/g)?.length, 1)
    assert.equal((await ask('/reason')).match(/200 Fine\r\n/g)?.length, 1)
    assert.ok(made.byNode >= 4)
  })

  it('accepts nothing that a field may not contain', async (t) => {
    const sections = new HeaderSections()
    const refused: unknown[] = []
    const { port } = await serve(t, (response) => {
      try {
        return writeWith(sections, response, { ...small, type: 'text/plain\r\nX-Forged: 1' })
      } catch (error) {
        refused.push(error)
        return writeWith(sections, response, small)
      }
    })
    const request = 'GET / HTTP/1.1\r\nHost: h\r\n'
    const answers = await exchange(port, `${request}\r\n${request}Connection: close\r\n\r\n`)
    assert.deepEqual([refused.length, refused.every((error) => error instanceof TypeError)], [2, true])
    assert.ok(!answers.includes('Forged'))
  })
})

interface MadeByNode {
  readonly shouldKeepAlive?: boolean
  /** The section up to the length. */
  readonly start?: string
  readonly section: string | undefined
}

const ordinaryStart = `HTTP/1.1 200 OK\r\nContent-Type: ${jsonType}\r\nContent-Length: 2`

/** Counts how many of three sections `writeHead` made, for a response whose section continues so behind the length. */
function timesByNode({ shouldKeepAlive = true, start = ordinaryStart, section }: MadeByNode): number {
  let times = 0
  const sections = new HeaderSections()
  for (let round = 0; round < 3; round += 1) {
    const response = {
      shouldKeepAlive,
      _header: undefined as string | undefined,
      getHeaderNames: () => [],
      writeHead: () => {
        times += 1
        response._header = section === undefined ? undefined : `${start}\r\n${section}\r\n`
      },
    }
    sections.write(response as unknown as ServerResponse, 200, [], true, jsonType, 2)
  }
  return times
}
