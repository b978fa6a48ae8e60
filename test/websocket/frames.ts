/** Frames as a client writes and reads them: an independent implementation to test against. */

export interface FrameFields {
  readonly opcode: number
  readonly payload?: Uint8Array | string
  readonly final?: boolean
  /** The three reserved bits, 0 to 7. */
  readonly reserved?: number
  /** Four bytes; undefined: not masked. */
  readonly mask?: readonly number[] | undefined
  /** The extra bytes of the length: 0, 2 or 8; by default the shortest. */
  readonly lengthBytes?: 0 | 2 | 8
  /** The length in the header; by default the payload's. */
  readonly length?: bigint | number
}

export interface ReceivedFrame {
  readonly final: boolean
  readonly opcode: number
  readonly payload: Buffer
}

export const someMask: readonly number[] = [0x37, 0xfa, 0x21, 0x3d]

/** The bytes of a client's frame. */
export function clientFrame(fields: FrameFields): Buffer {
  const { opcode, final = true, reserved = 0 } = fields
  const mask = 'mask' in fields ? fields.mask : someMask
  const payload = Buffer.from(fields.payload ?? '')
  const length = BigInt(fields.length ?? payload.length)
  const lengthBytes = fields.lengthBytes ?? (length < 126n ? 0 : length < 65536n ? 2 : 8)
  const header = [(final ? 0x80 : 0) | (reserved << 4) | opcode]
  header.push((mask ? 0x80 : 0) | (lengthBytes === 0 ? Number(length) : lengthBytes === 2 ? 126 : 127))
  for (let at = lengthBytes - 1; at >= 0; at -= 1) header.push(Number((length >> BigInt(8 * at)) & 0xffn))
  if (mask === undefined) return Buffer.concat([Buffer.from(header), payload])
  return Buffer.concat([Buffer.from([...header, ...mask]), payload.map((byte, at) => byte ^ (mask[at % 4] as number))])
}

/** The payload of a Close frame. */
export function closing(code: number, reason: string | Uint8Array = ''): Buffer {
  return Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)])
}

/** Reads the first frame of a server in `bytes`. Returns it with the rest; undefined when it is incomplete. */
export function takeFrame(bytes: Buffer): { readonly frame: ReceivedFrame; readonly rest: Buffer } | undefined {
  if (bytes.length < 2) return undefined
  const [first = 0, second = 0] = bytes
  if (second >= 0x80) throw new Error('A server must not mask')
  const start = second < 126 ? 2 : second === 126 ? 4 : 10
  if (bytes.length < start) return undefined
  const length = second < 126 ? second : second === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  if (bytes.length < start + length) return undefined
  const payload = bytes.subarray(start, start + length)
  return { frame: { final: first >= 0x80, opcode: first & 0x7f, payload }, rest: bytes.subarray(start + length) }
}
