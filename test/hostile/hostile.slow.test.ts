import { it } from 'node:test'
import { checkBrokenRequests, checkLeavers } from './hostile-support.ts'

it('clients that leave at any stage, in any way, leave nothing behind', (t) => checkLeavers(t, 6))

it('bytes that nobody should send get an answer or a closed connection, and the server lives on: 960 requests', (t) =>
  checkBrokenRequests(t, 60))
