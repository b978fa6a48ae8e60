/**
 * IP addresses in normal form: IPv4 as dotted quads, IPv6 as in RFC 5952. An IPv4 address on an IPv6 socket
 * (`::ffff:127.0.0.1`) becomes IPv4, so that a client has the same address whatever the socket's family.
 */
import { type BlockList, SocketAddress, isIP, isIPv4 } from 'node:net'

const mappedPrefix = '::ffff:'

/**
 * Returns the normal form of an address, without a zone id.
 * @returns undefined if the text is not an IP address
 */
export function normalizeIp(text: string): string | undefined {
  if (isIPv4(text)) return text
  const zoneAt = text.indexOf('%')
  const address = zoneAt < 0 ? text : text.slice(0, zoneAt)
  if (isIP(address) !== 6) return undefined
  const written = new SocketAddress({ address, family: 'ipv6' }).address
  const mapped = written.startsWith(mappedPrefix) ? written.slice(mappedPrefix.length) : ''
  return isIPv4(mapped) ? mapped : written
}

/**
 * Returns the part of a normalized address that counts as one client: an IPv4 address, or the first 64 bits of an IPv6
 * address, since a client usually has a whole /64. Text that is not an address is returned unchanged.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const [left = [], right = []] = address.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const zeros = new Array<string>(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].slice(0, 4).join(':')
}

/** Whether a normalized address is a loopback address: 127.0.0.0/8 or ::1. */
export function isLoopback(ip: string): boolean {
  return ip === '::1' || (ip.startsWith('127.') && isIPv4(ip))
}

/** Whether a block list contains an address. False for text that is not an address. */
export function isListed(list: BlockList, ip: string): boolean {
  const version = isIP(ip)
  return version !== 0 && list.check(ip, version === 4 ? 'ipv4' : 'ipv6')
}
