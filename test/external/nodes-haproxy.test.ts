import { startHaproxy } from '../support/proxies.ts'
import { testInFront } from './in-front-suite.ts'

testInFront({
  name: 'HAProxy',
  start: (t, ports) => startHaproxy(t, 'svc-nodes.haproxy', ports),
  kind: 'plain',
  drainDelayS: 5,
  rounds: 1,
})
