/**
 * The check of UTF-8 that arrives in pieces (RFC 6455, section 8.1; RFC 3629). A text that can no longer become valid
 * is found with the byte that spoils it, not at the end of its message.
 */
import { isUtf8 } from 'node:buffer'

/**
 * Checks `bytes` from `from`, where a character begins, up to `to`.
 * @returns where to go on when more bytes are there: the start of a character that is not complete, or `to`; -1 when
 *   the bytes are not UTF-8, whatever follows
 */
export function checkUtf8(bytes: Buffer, from: number, to: number): number {
  const end = startOfIncomplete(bytes, from, to)
  return isUtf8(bytes.subarray(from, end)) && isPrefix(bytes, end, to) ? end : -1
}

/** Where a last character begins that needs more bytes than there are; `to` when there is none. */
function startOfIncomplete(bytes: Buffer, from: number, to: number): number {
  for (let at = to - 1; at >= from && at >= to - 3; at -= 1) {
    const byte = bytes[at] as number
    if (byte < 0x80) return to
    if (byte >= 0xc0) return at + lengthBy(byte) > to ? at : to
  }
  return to
}

/** The bytes of a character, by its first; what is no first byte of a longer one is left to `isUtf8`. */
function lengthBy(lead: number): number {
  if (lead < 0xe0) return lead < 0xc2 ? 1 : 2
  if (lead < 0xf0) return 3
  return lead < 0xf5 ? 4 : 1
}

/** Whether an incomplete character, of one to three bytes, or nothing, can be completed: its second byte decides. */
function isPrefix(bytes: Buffer, at: number, to: number): boolean {
  if (to - at < 2) return true
  const lead = bytes[at] as number
  const second = bytes[at + 1] as number
  const least = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
  const most = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
  return second >= least && second <= most
}
