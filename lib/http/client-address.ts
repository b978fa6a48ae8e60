/**
 * The client's address, scheme and host behind trusted proxies (`server.trusted_proxies`).
 *
 * `X-Forwarded-For` is read from the right, where the nearest proxy appended: the client is the first address that is
 * not a trusted proxy. Everything to its left may be forged. `X-Forwarded-Proto` and `-Host` are read at the same depth
 * from the right, so that a list that proxies append to is no easier to forge than the address.
 */
import { createAddressList } from './address-list.ts'
import { hostName } from './host.ts'
import { normalizeIp } from './ip-address.ts'

/** The client of a request. */
export interface ClientInfo {
  /** The client's address as `normalizeIp` returns it; the socket's text if that is not an address. */
  readonly ip: string
  /** The scheme as forwarded by a trusted proxy. */
  readonly proto: 'http' | 'https' | undefined
  /** The host as forwarded by a trusted proxy, perhaps with a port; well-formed. */
  readonly host: string | undefined
}

/** Looks up the client of a request. */
export interface ClientAddress {
  /**
   * @param socketAddress the remote address of the connection
   * @param header returns a header field by its lower-case name; not called when the peer is not trusted
   */
  resolve(socketAddress: string, header: (name: string) => string | undefined): ClientInfo
  /** Whether the remote address of a connection is a trusted proxy. */
  trusts(socketAddress: string): boolean
}

/** The size of the peer cache, which is emptied when it is full. */
const maxCachedPeers = 1000

const addressWithPort = /^(?:\[([^\]]*)\](?::\d{1,5})?|(\d+\.\d+\.\d+\.\d+):\d{1,5})$/

/**
 * Builds the lookup.
 * @param trusted addresses and CIDR blocks that `checkAddressEntry` accepts; empty: no header is read
 */
export function createClientAddress(trusted: readonly string[]): ClientAddress {
  const isProxy = createAddressList(trusted)
  const direct = createPeerCache()
  if (trusted.length === 0) return { resolve: direct, trusts: () => false }

  return {
    trusts: (socketAddress) => isProxy(direct(socketAddress).ip),
    resolve(socketAddress, header) {
      const peer = direct(socketAddress)
      if (!isProxy(peer.ip)) return peer
      const { ip, depth } = walk(isProxy, peer.ip, header('x-forwarded-for'))
      const proto = fromTheRight(header('x-forwarded-proto'), depth)?.toLowerCase()
      const host = fromTheRight(header('x-forwarded-host'), depth)
      return {
        ip,
        proto: proto === 'http' || proto === 'https' ? proto : undefined,
        host: host === undefined || hostName(host) === undefined ? undefined : host,
      }
    },
  }
}

/** Normalizes the addresses of peers, and caches the results, since every request needs one. */
function createPeerCache(): (socketAddress: string) => ClientInfo {
  const known = new Map<string, ClientInfo>()
  return (socketAddress) => {
    const found = known.get(socketAddress)
    if (found !== undefined) return found
    const made = { ip: normalizeIp(socketAddress) ?? socketAddress, proto: undefined, host: undefined }
    if (known.size === maxCachedPeers) known.clear()
    known.set(socketAddress, made)
    return made
  }
}

/** Walks `X-Forwarded-For` from the right. The depth is the number of entries to the right of the client's entry. */
function walk(
  isProxy: (ip: string) => boolean,
  peer: string,
  forwardedFor: string | undefined,
): { ip: string; depth: number } {
  let client = peer
  let depth = 0
  const entries = forwardedFor === undefined ? [] : forwardedFor.split(',')
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const ip = forwardedIp((entries[index] as string).trim())
    if (ip === undefined) break
    client = ip
    depth = entries.length - 1 - index
    if (!isProxy(ip)) break
  }
  return { ip: client, depth }
}

function forwardedIp(entry: string): string | undefined {
  const match = addressWithPort.exec(entry)
  return normalizeIp(match === null ? entry : (match[1] ?? match[2] ?? ''))
}

/** Returns the list element at a depth from the right; the first element if the list is shorter. */
function fromTheRight(value: string | undefined, depth: number): string | undefined {
  if (value === undefined) return undefined
  const elements = value.split(',')
  return elements[Math.max(0, elements.length - 1 - depth)]?.trim()
}
