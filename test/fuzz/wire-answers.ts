/** Reads what came back on a connection, byte by byte, and is strict about it. */
import { takeFrame } from '../websocket/frames.ts'

/** An answer whose framing was right. */
export interface WireAnswer {
  readonly status: number
  /** Whether it said that the connection ends. */
  readonly isLast: boolean
  readonly type: string
}

export interface WireAnswers {
  /** The final ones, in order. */
  readonly answers: readonly WireAnswer[]
  /** Whether the last of them, or what is behind them, is not whole. */
  readonly isCut: boolean
}

const statusLine = /^HTTP\/1\.1 ([1-5]\d\d) [A-Za-z '-]+$/
const field = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ([\x20-\x7e\x80-\xff]*)$/
/** Fields that must not be there twice. */
const single = ['content-length', 'transfer-encoding', 'content-type', 'connection', 'location', 'date']

/**
 * Takes answers apart.
 * @param isHead whether the request of the answer with that number was a HEAD
 * @throws Error for anything that is no answer
 */
export function readAnswers(text: string, isHead: (index: number) => boolean): WireAnswers {
  const answers: WireAnswer[] = []
  let at = 0
  while (at < text.length) {
    const end = text.indexOf('\r\n\r\n', at)
    if (end < 0) return cutAt(text, at, answers)
    const [line = '', ...rest] = text.slice(at, end).split('\r\n')
    const status = Number(statusLine.exec(line)?.[1])
    if (Number.isNaN(status)) throw new Error(`No status line: ${JSON.stringify(line.slice(0, 200))}`)
    const fields = readFields(rest)
    at = end + 4
    if (status === 100) continue
    answers.push({ status, isLast: /\bclose\b/i.test(fields.get('connection') ?? ''), type: fields.get('content-type') ?? '' })
    if (status === 101) return { answers, isCut: readFrames(text.slice(at)) }
    const next = endOfBody(text, at, status, fields, isHead(answers.length - 1))
    if (next === undefined) return { answers, isCut: true }
    at = next
  }
  return { answers, isCut: false }
}

function cutAt(text: string, at: number, answers: readonly WireAnswer[]): WireAnswers {
  const begun = text.slice(at, at + 9)
  if (!'HTTP/1.1 '.startsWith(begun)) throw new Error(`No answer: ${JSON.stringify(text.slice(at, at + 200))}`)
  return { answers, isCut: true }
}

function readFields(lines: readonly string[]): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  for (const line of lines) {
    const [, name, value] = field.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`No header field: ${JSON.stringify(line)}`)
    const key = name.toLowerCase()
    if (single.includes(key) && fields.has(key)) throw new Error(`Twice in one answer: ${key}`)
    fields.set(key, value)
  }
  if (fields.has('content-length') && fields.has('transfer-encoding')) throw new Error('Two kinds of framing in one answer')
  return fields
}

/** Where the next answer begins; undefined when the body is not there in whole. */
function endOfBody(text: string, from: number, status: number, fields: ReadonlyMap<string, string>, isHead: boolean): number | undefined {
  if (isHead || status === 204 || status === 304) return from
  const length = fields.get('content-length')
  if (length !== undefined) {
    if (!/^\d+$/.test(length)) throw new Error(`No Content-Length: ${length}`)
    return from + Number(length) <= text.length ? from + Number(length) : undefined
  }
  if (fields.get('transfer-encoding') !== 'chunked') return undefined // The connection's end is the body's.
  for (let at = from; ; ) {
    const end = text.indexOf('\r\n', at)
    if (end < 0) return undefined
    const digits = text.slice(at, end)
    if (!/^[0-9a-f]+$/.test(digits)) throw new Error(`No chunk: ${JSON.stringify(digits.slice(0, 40))}`)
    const next = end + 2 + parseInt(digits, 16) + 2
    if (next > text.length) return undefined
    if (text.slice(next - 2, next) !== '\r\n') throw new Error('A chunk has no end')
    if (digits === '0') return next
    at = next
  }
}

/** Returns whether the last frame is not whole. */
function readFrames(text: string): boolean {
  let rest: Buffer = Buffer.from(text, 'latin1')
  for (;;) {
    const taken = takeFrame(rest)
    if (taken === undefined) return rest.length > 0
    if (![1, 2, 8, 9, 10].includes(taken.frame.opcode) || !taken.frame.final) throw new Error(`No frame of a server: opcode ${taken.frame.opcode}`)
    rest = taken.rest
  }
}
