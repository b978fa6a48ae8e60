/** How a node, which is one machine of several that share an engine, is named. */
import { hostname } from 'node:os'

/** `HOSTNAME:PORT`; `HOSTNAME` for port 0: there is none, or it is known only later. It is not necessarily unique. */
export function nodeName(port: number): string {
  return port === 0 ? hostname() : `${hostname()}:${port}`
}
