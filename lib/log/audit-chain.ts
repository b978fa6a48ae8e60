/**
 * The chain of `audit.log`. Each record ends with `mac`, the HMAC-SHA256 of the record without that member and of the
 * `mac` of the record before it. So nobody without `app_key` can change, remove, insert or swap records unnoticed,
 * except the first and the last ones of the files: the last `mac`, the head, says which is the last.
 *
 * Surprise: numbers may have holes. A record that could not be written has a number, but no place in the chain.
 */
import { createSigner, deriveKey } from '../tokens/signature.ts'

/** A place in the chain: the number and the `mac` of a record. */
export interface Link {
  readonly seq: number
  readonly mac: string
}

/** Before the first record. */
export const beforeFirst: Link = { seq: 0, mac: '' }

/** A line, taken apart. */
export interface ChainedLine extends Link {
  /** The record without its `mac`, as it was signed. */
  readonly text: string
}

const chainedLine = /^(\{"seq":([1-9]\d{0,14}),.*),"mac":"([0-9a-f]{64})"\}$/s

/** Takes a line of the file apart, which comes without its line end. Undefined for one that has no place in a chain. */
export function chainedLineOf(line: string): ChainedLine | undefined {
  const [, start, seq, mac] = chainedLine.exec(line) ?? []
  if (start === undefined || seq === undefined || mac === undefined) return undefined
  return { seq: Number(seq), mac, text: `${start}}` }
}

/** The chain for a key. */
export class AuditChain {
  readonly #signer: ReturnType<typeof createSigner>

  /**
   * @param keys `app_key`, which signs, then `app_key_previous`, which only verify
   * @throws RangeError if there is no key, or a key is empty
   */
  constructor(keys: readonly string[]) {
    this.#signer = createSigner(keys, (key) => deriveKey(key, 'log.audit'))
  }

  /**
   * Makes the line of a record.
   * @param record its JSON, an object with at least one member
   * @param seq its number
   * @param before the record before it
   */
  line(record: string, seq: number, before: Link): ChainedLine & { readonly line: string } {
    const text = `{"seq":${seq},${record.slice(1)}`
    const mac = this.#signer.sign(signed(text, before))
    return { seq, mac, text, line: `${text.slice(0, -1)},"mac":"${mac}"}` }
  }

  /** Whether a record follows another. */
  follows({ seq, mac, text }: ChainedLine, before: Link): boolean {
    return seq > before.seq && this.#signer.verify(signed(text, before), mac)
  }
}

function signed(text: string, before: Link): string {
  return `${before.mac}\n${text}`
}
