// Shared by the tests of header sections: a server, and the seeded comparison with Node's own output.
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { HeaderList } from '../../lib/http/header-list.ts'
import { HeaderSections } from '../../lib/core/header-section.ts'
import { htmlType, jsonType, textType } from '../../lib/http/reply.ts'
import { exchange } from '../support/raw.ts'
import { listen } from '../support/listen.ts'
import { Seeded } from '../support/seeded.ts'

export interface Section {
  readonly status: number
  readonly fields: readonly string[]
  readonly plain: boolean
  readonly type: string
  readonly body: string | Uint8Array
}

export const small: Section = { status: 200, fields: [], plain: true, type: jsonType, body: '{}' }

/** Sends the sections that `write` makes, and counts how many Node made. */
export async function serve(t: TestContext, write: (response: ServerResponse, request: IncomingMessage) => Section) {
  const made = { byNode: 0 }
  const server = createServer({ keepAliveTimeout: 7000 }, (request, response) => {
    const { writeHead } = response
    response.writeHead = (...args: unknown[]) => {
      made.byNode += 1
      return Reflect.apply(writeHead, response, args) as ServerResponse
    }
    response.end(write(response, request).body)
  })
  return { made, port: await listen(t, server) }
}

/** Writes a section and returns it, for its body to be sent. */
export function writeWith(sections: HeaderSections, response: ServerResponse, section: Section): Section {
  const { status, fields, plain, type, body } = section
  sections.write(response, status, fields, plain, type, Buffer.byteLength(body))
  return section
}

function writeWithNode(response: ServerResponse, section: Section): Section {
  const { status, fields, type, body } = section
  const length = String(Buffer.byteLength(body))
  response.writeHead(status, [...fields, ...(type === '' ? [] : ['Content-Type', type]), 'Content-Length', length])
  return section
}

const interpretedByNode = [
  ['Connection', 'close'],
  ['Date', 'today'],
  ['Keep-Alive', 'timeout=1'],
  ['Content-Disposition', 'inline'],
] as const

/** Returns fields like an application's, sometimes with a field that Node interprets. */
function fieldsOf(seeded: Seeded): HeaderList {
  const list = new HeaderList()
  const characters = 'abc XYZ09-_;=,"\t\u00e9\u00ff'
  for (let left = seeded.integer(4); left > 0; left -= 1) {
    const value = Array.from({ length: seeded.integer(30) }, () => seeded.pick([...characters])).join('')
    if (seeded.integer(3) === 0) list.append('Set-Cookie', value)
    else list.set(seeded.pick(['X-A', 'x-b', 'ETag', 'Vary', 'Location', 'Cache-Control']), value)
  }
  if (seeded.integer(8) === 0) {
    const [name, value] = seeded.pick(interpretedByNode)
    list.set(name, value)
  }
  return list
}

const withoutDate = (answer: string): string => answer.replaceAll(/\r\nDate: [^\r]+ GMT\r\n/g, '\r\nDate: now\r\n')

/** Checks that sections are byte-identical to Node's, for any status, fields, body and request. */
export async function checkSections(t: TestContext, rounds: number): Promise<void> {
  const sections = new HeaderSections()
  let section = small
  const { port, made } = await serve(t, (response, { url }) =>
    url === '/node' ? writeWithNode(response, section) : writeWith(sections, response, section),
  )
  const seeded = new Seeded(1)
  for (let round = 0; round < rounds; round += 1) {
    const list = fieldsOf(seeded)
    section = {
      status: seeded.pick([200, 200, 201, 205, 299, 302, 400, 404, 500, 599]),
      fields: list.flat,
      plain: list.plain,
      type: seeded.pick([jsonType, htmlType, textType, '', 'image/png']),
      body: seeded.pick(['', 'x', 'caf\u00e9', 'a'.repeat(20_000), Buffer.from([255, 0, 13, 10])]),
    }
    const method = seeded.pick(['GET', 'GET', 'GET', 'HEAD', 'POST'])
    const version = seeded.pick(['1.1', '1.1', '1.0'])
    const asked = seeded.pick(['', '', '', 'Connection: keep-alive\r\n'])
    // The last request on the connection follows, so that the one before may leave it open.
    const last = 'GET /node HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'
    const ask = (path: string): string => `${method} ${path} HTTP/${version}\r\nHost: h\r\n${asked}\r\n`
    const own = await exchange(port, ask('/own') + last)
    const node = await exchange(port, ask('/node') + last)
    assert.equal(withoutDate(own), withoutDate(node), `${section.status} ${JSON.stringify(list)} ${section.type} ${method} ${version} ${asked}`)
  }
  const reused = 4 * rounds - made.byNode
  assert.ok(reused > rounds / 3, `${reused} of ${rounds} sections were not made by Node`)
}
