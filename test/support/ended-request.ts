/** A request that has ended, as passed to the metrics and the access log. */
import type { EndedRequest } from '../../lib/base/ports.ts'

/** A plain request, with changes. */
export function endedRequest(changes: Partial<EndedRequest> = {}): EndedRequest {
  return {
    ...{ ip: '127.0.0.1', method: 'GET', path: '/a', httpVersion: '1.1', givenId: undefined, idToSend: undefined, header: () => undefined },
    ...{ sentStatus: 200, sentBytes: 10, receivedBytes: 0, durationMs: 2, leftWait: false, routeName: 'area.a' },
    ...changes,
  }
}
