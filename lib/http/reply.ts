/**
 * A reply is a value: the action and the chain return it, and then `respond.ts` writes it. It has only content. Status,
 * header fields and cookies are in the context, so that middleware can change them while the chain unwinds.
 */
import type { ServerResponse } from 'node:http'

/** A reply of known bytes. */
export class BodyReply {
  /** The Content-Type unless the context has one; '' for none. */
  readonly type: string
  /** Text is sent as UTF-8. */
  readonly body: string | Uint8Array

  constructor(type: string, body: string | Uint8Array) {
    this.type = type
    this.body = body
  }
}

/** A redirect. Any other value that the action returns is dropped. */
export class RedirectReply extends BodyReply {
  readonly status: number

  constructor(status: number) {
    super('', '')
    this.status = status
  }
}

/** A reply that writes its bytes itself after the header section, such as a file. */
export class StreamReply {
  /** The status, 200 to 599. */
  readonly status: number
  /** Name and value in turn. */
  readonly headers: readonly string[]
  /** The body's length in bytes, for the access log; 0 when `send` adds to `sentBytes` itself. */
  readonly length: number
  /** Writes the body and ends the response; called once. It releases its resources however the response ends. */
  readonly send: (response: ServerResponse) => void

  constructor(status: number, headers: readonly string[], length: number, send: (response: ServerResponse) => void) {
    this.status = status
    this.headers = headers
    this.length = length
    this.send = send
  }
}

/** A reply that turns the connection into a WebSocket. */
export class UpgradeReply {
  /** Answers 101 and takes the socket over. Throws HttpError, before anything is written, when it cannot. */
  readonly takeOver: () => void
  /** Closes the WebSocket, since the session that opened it has ended. */
  readonly revoke: () => void

  constructor(takeOver: () => void, revoke: () => void) {
    this.takeOver = takeOver
    this.revoke = revoke
  }
}

/** A reply whose content is not available yet. `ParkedReply` (`parked.ts`) is the only class that extends it. */
export abstract class DeferredReply {
  /** Whether it is of no use to a client that has ended its side of the connection, which counts as left. */
  abstract readonly needsClient: boolean
  /** Ends the wait as its time-out does, since its session has ended. One that is not parked yet will not wait. */
  abstract revoke(): void
}

/** A reply that can be written now. */
export type ReadyReply = BodyReply | StreamReply

/** The result of a chain. */
export type Reply = ReadyReply | DeferredReply | UpgradeReply

/** The type of a reply of HTML. */
export const htmlType = 'text/html; charset=utf-8'
/** The type of a reply of plain text. */
export const textType = 'text/plain; charset=utf-8'
/** The type of a reply of JSON. */
export const jsonType = 'application/json; charset=utf-8'
/** The type of bytes unless the application sets another one. */
export const bytesType = 'application/octet-stream'

/** The reply without a body. Its status is 204 unless one is set. */
export const emptyReply = new BodyReply('', '')

/** Whether a value is a reply. */
export function isReply(value: unknown): value is Reply {
  return (
    value instanceof BodyReply
    || value instanceof StreamReply
    || value instanceof DeferredReply
    || value instanceof UpgradeReply
  )
}

/**
 * Makes a reply of text.
 * @throws TypeError when the text is not a string
 */
export function textReply(type: string, text: unknown): BodyReply {
  if (typeof text !== 'string') throw new TypeError(`A text reply is made of a string: it is a ${typeof text}`)
  return new BodyReply(type, text)
}

/**
 * Makes a JSON reply.
 * @throws TypeError for a value that JSON cannot hold: undefined, a function, a symbol, a bigint, a circular structure
 */
export function jsonReply(value: unknown): BodyReply {
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) {
    throw new TypeError(`A reply cannot be made of a ${typeof value}: return text or a JSON value`)
  }
  return new BodyReply(jsonType, text)
}
