/** Reads bytes as a connection does and returns the results. */
import { closeCodes, ProtocolError, readClosePayload } from '../../lib/websocket/close-code.ts'
import { opcodes } from '../../lib/websocket/frame.ts'
import { ControlFrame, MessageReader } from '../../lib/websocket/message-reader.ts'

/** Messages and control frames as text, such as `text hello`, `binary 00ff`, `9 aa`, and at the end `failed 1002`. */
export function read(
  pieces: Iterable<Buffer>,
  maxMessageBytes: number,
  watch?: (reader: MessageReader) => void,
): string[] {
  const reader = new MessageReader(maxMessageBytes)
  const events: string[] = []
  try {
    for (const piece of pieces) {
      reader.push(Buffer.from(piece)) // Reading changes it.
      for (let received = reader.next(); received !== undefined; received = reader.next()) {
        events.push(nameOf(received))
        if (!(received instanceof ControlFrame) || received.opcode !== opcodes.close) continue
        events.push(`closed ${readClosePayload(received.payload).code}`)
        return events
      }
      watch?.(reader)
    }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    const known: readonly number[] = [closeCodes.protocolError, closeCodes.invalidData, closeCodes.tooLarge]
    if (!known.includes(error.code)) throw error
    events.push(`failed ${error.code}`)
  }
  return events
}

/** `bytes` cut at these offsets. */
export function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  return [...places, bytes.length].map((end, at) => bytes.subarray(places[at - 1] ?? 0, end))
}

function nameOf(received: string | Buffer | ControlFrame): string {
  if (typeof received === 'string') return `text ${received}`
  if (received instanceof ControlFrame) return `${received.opcode} ${received.payload.toString('hex')}`
  return `binary ${received.toString('hex')}`
}
