/**
 * Checks at start that a version of Node does what `node-internals.ts` expects, as far as that can be seen without a
 * connection: where nobody has run the tests of this release on its major version. It takes 3 ms at most.
 */
import { Socket } from 'node:net'
import { IncomingMessage, ServerResponse } from '../http/node-http.ts'
import { leaveSectionsToNode, sendsSections } from './node-internals.ts'

/** The major versions that the tests of this release run on. */
const testedMajors: readonly number[] = [20, 22, 24, 26]

/**
 * Checks a version of Node, unless it is tested. Where it does not send header sections that were set, they are left to
 * Node from then on, in all servers of this process.
 * @param version such as `24.21.0`
 * @returns a warning for each difference
 */
export function checkNode(version: string = process.versions.node): readonly string[] {
  if (testedMajors.includes(Number.parseInt(version))) return []
  const warnings: string[] = []
  const request = new IncomingMessage(undefined as unknown as Socket) // Nothing is read from it.
  request.httpVersionMajor = 1
  request.httpVersionMinor = 1
  if (!sendsSections(new ServerResponse(request))) {
    leaveSectionsToNode()
    warnings.push('it makes header sections in a new way: they are left to it, which takes longer')
  }
  if (!('destroySoon' in Socket.prototype)) {
    warnings.push('it closes connections in a new way: clients that are refused while they send may miss the answer')
  }
  if (!('assignSocket' in ServerResponse.prototype)) {
    warnings.push('it answers handshakes in a new way: WebSockets cannot be opened')
  }
  return warnings.map((warning) => `Node ${version} is not known to this version of svc: ${warning}`)
}
