/**
 * Checks at start that this version of Node does what `node-internals.ts` expects, as far as that can be seen without a
 * connection. It takes 3 ms at most, most of which the first request would take otherwise.
 *
 * Surprise: its requests and responses are of the classes of real ones and have no socket. With a stream in place of a
 * socket V8 would see two kinds of objects in the code of every request, which then takes 4 % longer.
 */
import type { ServerResponse as Response } from 'node:http'
import { Socket } from 'node:net'
import { ServerResponse } from '../http/node-http.ts'
import { jsonType } from '../http/reply.ts'
import { endWithText, HeaderSections } from './header-section.ts'
import { IncomingRequest } from './incoming-request.ts'
import { leaveSectionsToNode, pendingOutput } from './node-internals.ts'

const fields: readonly string[] = ['X-Request-Id', 'check', 'Vary', 'Accept']
const body = '{"a":1}'

/**
 * Checks this version of Node. Where answers made with `HeaderSections` differ from Node's own, header sections are
 * left to Node from then on, in all servers of this process.
 * @returns a warning for each difference; none on the versions that this server was tested with
 */
export function checkNode(): readonly string[] {
  const warnings: string[] = []
  const sections = new HeaderSections()
  const areSame = makesSameAnswers((response) => {
    sections.write(response, 200, fields, true, jsonType, body.length)
    endWithText(response, body)
  })
  if (!areSame) {
    leaveSectionsToNode()
    warnings.push('it makes header sections in a new way: they are left to it, which takes longer')
  }
  if (!('destroySoon' in Socket.prototype)) {
    warnings.push('it closes connections in a new way: clients that are refused while they send may miss the answer')
  }
  if (!('assignSocket' in ServerResponse.prototype)) {
    warnings.push('it answers handshakes in a new way: WebSockets cannot be opened')
  }
  return warnings.map((warning) => `Node ${process.versions.node} is not known to this version of svc: ${warning}`)
}

/**
 * Whether two answers, the one from which `HeaderSections` learns and the one that reuses what it has learned, are the
 * bytes that Node itself sends, but for the date.
 * @param answer answers as the server does; tests have others
 */
export function makesSameAnswers(answer: (response: Response) => void): boolean {
  const all = ['Content-Type', jsonType, 'Content-Length', String(body.length)]
  const expected = sentBy((response) => void response.writeHead(200, [...fields, ...all]).end(body))
  return expected !== '' && sentBy(answer) === expected && sentBy(answer) === expected
}

/** The bytes of an answer, in Latin-1 and without the date; '' when it throws. */
function sentBy(answer: (response: Response) => void): string {
  const request = new IncomingRequest(undefined as unknown as Socket) // Nothing is read from it.
  request.method = 'GET'
  request.httpVersionMajor = 1
  request.httpVersionMinor = 1
  const response = new ServerResponse(request)
  try {
    answer(response)
  } catch {
    return ''
  }
  return pendingOutput(response).replace(/\r\nDate: [^\r]+\r\n/, '\r\n')
}
