/**
 * Keys of one use each, derived from `app_key` (HKDF, RFC 5869): what one signs counts nowhere else.
 */
import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** The key of a use. Keys of two uses tell nothing of each other. */
export function deriveKey(key: string, use: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', key, '', use, 32)))
}
