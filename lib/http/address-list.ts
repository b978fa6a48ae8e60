/** Lists of IP addresses and CIDR blocks (RFC 4632, RFC 4291), as in `server.trusted_proxies` and `admin.allow`. */
import { BlockList, isIP } from 'node:net'
import { isListed, normalizeIp } from './ip-address.ts'

/**
 * Builds a list.
 * @param entries that `checkAddressEntry` accepts
 * @returns whether an address, in the form of `normalizeIp`, is in the list; false for text that is not an address
 */
export function createAddressList(entries: readonly string[]): (ip: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) add(list, entry)
  return (ip) => isListed(list, ip)
}

/**
 * Checks an entry: an address, or a block such as `10.0.0.0/8`.
 * @returns what the entry must be, to follow its name in a message; undefined if it is valid
 */
export function checkAddressEntry(entry: string): string | undefined {
  const { address, prefix } = splitBlock(entry)
  const version = isIP(address)
  if (version === 0 || address.includes('%')) return 'must be an IP address or a block such as 10.0.0.0/8'
  if (prefix === undefined) return undefined
  if (normalizeIp(address)?.includes('.') && version === 6) return 'must be written as an IPv4 block'
  const longest = version === 4 ? 32 : 128
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > longest) return `must have a prefix length of 0 to ${longest}`
  return undefined
}

function add(list: BlockList, entry: string): void {
  const { address, prefix } = splitBlock(entry)
  const ip = normalizeIp(address) ?? address
  const family = isIP(ip) === 4 ? 'ipv4' : 'ipv6'
  if (prefix === undefined) list.addAddress(ip, family)
  else list.addSubnet(ip, Number(prefix), family)
}

function splitBlock(entry: string): { address: string; prefix: string | undefined } {
  const slash = entry.indexOf('/')
  if (slash < 0) return { address: entry, prefix: undefined }
  return { address: entry.slice(0, slash), prefix: entry.slice(slash + 1) }
}
