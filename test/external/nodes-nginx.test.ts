import { startNginx } from '../support/proxies.ts'
import { testInFront } from './in-front-suite.ts'

testInFront({
  name: 'nginx',
  start: (t, ports) => startNginx(t, 'svc-nodes.nginx', ports),
  kind: 'kept', // It does not ask whether a node is ready, so the socket must be there all the time.
  drainDelayS: 0,
  rounds: 2,
})
