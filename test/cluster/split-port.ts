import type { PeerPort } from '../../lib/cluster/peer.ts'

/**
 * Splits a port, of which a process has one, into any number of ports by name. Both sides split theirs.
 * @param onNew called with the port of a name that the other side has used first
 */
export function splitPort(
  port: PeerPort,
  onNew: (name: string, port: PeerPort) => void = () => {},
): (name: string) => PeerPort {
  const listeners = new Map<string, (message: unknown) => void>()
  const closeListeners: (() => void)[] = []
  port.onClose(() => {
    for (const listener of closeListeners) listener()
  })
  port.onMessage((wrapped) => {
    const { name, message } = wrapped as { name: string; message: unknown }
    if (!listeners.has(name)) onNew(name, open(name))
    listeners.get(name)?.(message)
  })

  function open(name: string): PeerPort {
    return {
      send: (message, written) => port.send({ name, message }, written),
      onMessage: (listener) => void listeners.set(name, listener),
      onClose: (listener) => void closeListeners.push(listener),
      ready: port.ready,
    }
  }
  return open
}
