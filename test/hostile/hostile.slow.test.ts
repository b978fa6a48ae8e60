import { it } from 'node:test'
import { checkBrokenRequests, checkLeavers } from './hostile-support.ts'

it('clients that leave at any stage, in any way, leave nothing behind', (t) => checkLeavers(t, 6))

it('malformed requests get a response or a closed connection, and the server keeps running: 960 requests', (t) =>
  checkBrokenRequests(t, 60))
