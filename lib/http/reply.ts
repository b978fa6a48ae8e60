/**
 * A reply is a value. The chain and the action return; only then is anything written, by `respond.ts`.
 *
 * Surprise: a reply holds content alone. Status, header fields and cookies live in the context, so that middleware can
 * still change them while the chain unwinds.
 */
import type { ServerResponse } from 'node:http'
import { ParkedReply } from './parked.ts'

/** A reply whose bytes are known. */
export class BodyReply {
  /** The Content-Type, used unless the context has one; '' for none. */
  readonly type: string
  /** Text is sent as UTF-8. */
  readonly body: string | Uint8Array

  constructor(type: string, body: string | Uint8Array) {
    this.type = type
    this.body = body
  }
}

/** A reply that writes its bytes itself once the header section has been written: a file, say. */
export class StreamReply {
  /** The status, 200 to 599. */
  readonly status: number
  /** Name and value in turn. */
  readonly headers: readonly string[]
  /** The body's length in bytes, for the access log. */
  readonly length: number
  /**
   * Writes the body and ends the response; called once, after the header section. It lets go of what it holds however
   * the response ends.
   */
  readonly send: (response: ServerResponse) => void

  constructor(status: number, headers: readonly string[], length: number, send: (response: ServerResponse) => void) {
    this.status = status
    this.headers = headers
    this.length = length
    this.send = send
  }
}

/** A reply that makes the connection another one, a WebSocket. */
export class UpgradeReply {
  /**
   * Answers 101 and takes the socket over, once the chain has unwound. Throws HttpError, before anything is written,
   * when it cannot be.
   */
  readonly takeOver: () => void

  constructor(takeOver: () => void) {
    this.takeOver = takeOver
  }
}

/** A reply that can be written now. */
export type ReadyReply = BodyReply | StreamReply

/** What a chain comes back with: what to write, what is waited for, or another connection. */
export type Reply = ReadyReply | ParkedReply | UpgradeReply

export const htmlType = 'text/html; charset=utf-8'
export const textType = 'text/plain; charset=utf-8'
export const jsonType = 'application/json; charset=utf-8'

/** The reply without a body. Its status, unless somebody sets one, is 204. */
export const emptyReply = new BodyReply('', '')

/**
 * Makes a reply of what an action returned: a string is HTML, bytes are `application/octet-stream`, an object, an
 * array, null, a number or a boolean is JSON.
 * @throws TypeError for a value that is none of these (a function, a symbol, a bigint)
 */
export function toReply(value: unknown): Reply {
  if (typeof value === 'string') return new BodyReply(htmlType, value)
  if (value instanceof BodyReply || value instanceof StreamReply) return value
  if (value instanceof ParkedReply || value instanceof UpgradeReply) return value
  if (value instanceof Uint8Array) return new BodyReply('application/octet-stream', value)
  return jsonReply(value)
}

/**
 * Makes a reply of text.
 * @throws TypeError for what is no string, which JavaScript lets through
 */
export function textReply(type: string, text: unknown): BodyReply {
  if (typeof text !== 'string') throw new TypeError(`A text reply is made of a string: it is a ${typeof text}`)
  return new BodyReply(type, text)
}

/**
 * Makes a JSON reply.
 * @throws TypeError for what JSON cannot hold: undefined, a function, a symbol, a bigint, a circular structure
 */
export function jsonReply(value: unknown): BodyReply {
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) {
    throw new TypeError(`A reply cannot be made of a ${typeof value}: return text or a JSON value`)
  }
  return new BodyReply(jsonType, text)
}
