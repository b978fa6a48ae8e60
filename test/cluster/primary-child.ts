/** A primary for the workers of a test, which all run in its parent process. */
import { hostBroker } from '../../lib/cluster/events.ts'
import { Peer, workerPort } from '../../lib/cluster/peer.ts'
import { hostSessions } from '../../lib/cluster/sessions.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { splitPort } from './split-port.ts'

const events = hostBroker(new LocalBroker())
const sessions = hostSessions({ onProblem: console.error })

splitPort(workerPort(), (_name, port) => {
  const peer = new Peer(port)
  events.attach(peer)
  sessions.attach(peer)
})
