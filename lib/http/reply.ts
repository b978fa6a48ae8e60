/**
 * A reply is a value: the action and the chain return it, then `respond.ts` writes it. It has only content. Status,
 * header fields and cookies are in the context, so that middleware can change them while the chain unwinds.
 */
import type { ServerResponse } from 'node:http'

/** A reply with a known body. */
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
  /** The body's length in bytes, for the access log; 0 if `send` adds to `sentBytes` itself. */
  readonly length: number
  /** Writes the body and ends the response; called once. Must release its resources however the response ends. */
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
  /** Answers 101 and takes over the socket. If it cannot, throws HttpError before anything is written. */
  readonly takeOver: () => void
  /** Closes the WebSocket because its session has ended. */
  readonly revoke: () => void

  constructor(takeOver: () => void, revoke: () => void) {
    this.takeOver = takeOver
    this.revoke = revoke
  }
}

/** A reply whose content is not available yet. `ParkedReply` (`parked.ts`) is the only class that extends it. */
export abstract class DeferredReply {
  /** Whether the reply is pointless, as after a disconnect, once the client has ended its side of the connection. */
  abstract readonly needsClient: boolean
  /** Ends the wait, as its time-out does, because its session has ended. A reply not yet parked will not wait. */
  abstract revoke(): void
}

/** A reply that can be written now. */
export type ReadyReply = BodyReply | StreamReply

/** The result of a chain. */
export type Reply = ReadyReply | DeferredReply | UpgradeReply

/** The Content-Type of HTML. */
export const htmlType = 'text/html; charset=utf-8'
/** The Content-Type of plain text. */
export const textType = 'text/plain; charset=utf-8'
/** The Content-Type of JSON. */
export const jsonType = 'application/json; charset=utf-8'
/** The default Content-Type of bytes. */
export const bytesType = 'application/octet-stream'

/** The reply without a body. Its default status is 204. */
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
 * Makes a text reply.
 * @throws TypeError if the text is not a string
 */
export function textReply(type: string, text: unknown): BodyReply {
  if (typeof text !== 'string') throw new TypeError(`A text reply must be a string: it is a ${typeof text}`)
  return new BodyReply(type, text)
}

/**
 * Makes a JSON reply.
 * @throws TypeError for a value without JSON form: undefined, a function, a symbol, a bigint, a circular structure
 */
export function jsonReply(value: unknown): BodyReply {
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) {
    throw new TypeError(`Cannot reply with a value of type ${typeof value}: return text or a JSON value`)
  }
  return new BodyReply(jsonType, text)
}
