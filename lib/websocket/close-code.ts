/** Close codes, the payload of a Close frame (RFC 6455, sections 5.5.1, 7.4), and the error that fails a connection. */
import { isUtf8 } from 'node:buffer'

/** The codes that the server itself sends or reports (RFC 6455, section 7.4.1). */
export const closeCodes = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  /** Never sent: the Close frame had no code. */
  none: 1005,
  /** Never sent: the connection ended without a Close frame. */
  abnormal: 1006,
  invalidData: 1007,
  policy: 1008,
  tooLarge: 1009,
  internalError: 1011,
} as const

/** The maximum bytes of a reason: a control frame has 125, the code takes 2. */
const maxReasonBytes = 123

/** The peer broke the protocol; the connection is closed with `code`: 1002, 1007 or 1009. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code: number

  /** @param message at most 123 bytes: it is the reason of the Close frame */
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Whether a Close frame may have this code: 1000 to 1003 and 1007 to 1014 (RFC 6455 and the IANA registry), 3000 to
 * 4999 (libraries and applications).
 */
export function isWireCode(code: number): boolean {
  if (!Number.isInteger(code)) return false
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999)
}

/**
 * Returns the payload of a Close frame.
 * @throws RangeError for a code that must not be sent and for a reason of more than 123 bytes
 */
export function closePayload(code: number, reason: string): Buffer {
  if (!isWireCode(code)) {
    throw new RangeError(`Cannot close: the code must be 1000 to 1003, 1007 to 1014 or 3000 to 4999: it is ${code}`)
  }
  const length = Buffer.byteLength(reason)
  if (length > maxReasonBytes) {
    throw new RangeError(`Cannot close: the reason must have at most ${maxReasonBytes} bytes: it has ${length}`)
  }
  const payload = Buffer.allocUnsafe(2 + length)
  payload.writeUInt16BE(code)
  payload.write(reason, 2)
  return payload
}

/**
 * Parses the unmasked payload of a Close frame. Without a code, the code is 1005.
 * @throws ProtocolError 1002 for a single byte or a code that must not be sent, 1007 for a reason that is not UTF-8
 */
export function readClosePayload(payload: Buffer): { readonly code: number; readonly reason: string } {
  if (payload.length === 0) return { code: closeCodes.none, reason: '' }
  if (payload.length === 1) throw new ProtocolError(closeCodes.protocolError, 'A close code has two bytes')
  const code = payload.readUInt16BE()
  if (!isWireCode(code)) throw new ProtocolError(closeCodes.protocolError, `Close code ${code} must not be sent`)
  const reason = payload.subarray(2)
  if (!isUtf8(reason)) throw new ProtocolError(closeCodes.invalidData, 'The close reason is not UTF-8')
  return { code, reason: reason.toString() }
}
