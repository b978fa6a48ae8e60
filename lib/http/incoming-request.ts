/**
 * The request as `node:http` makes it, without the end of a stream that nobody reads.
 *
 * Surprise: when an answer has been sent, Node reads what is left of the request's body and throws it away, and for that
 * sets the whole machinery of a stream going, up to its events `end` and `close`. Where the request came whole and
 * nothing of it lies unread, which is so for nearly all that have no body, there is nothing to throw away. That saves
 * a fifteenth of what a plain request costs. Node's own option for it, `optimizeEmptyRequests`, is not in version 20 and
 * makes a request look destroyed before its body has been asked for.
 */
import type { IncomingMessage as Incoming } from 'node:http'
import { IncomingMessage } from './node-http.ts'

/** Node calls `_dump` to throw away what is left of a body; it is not documented. A version without it loses nothing. */
interface DumpingMessage extends Incoming {
  _dump(): void
}

/** A request. Its events `end` and `close` come only where its body is read. */
export class IncomingRequest extends IncomingMessage {
  _dump(): void {
    if (!this.complete || this.readableLength > 0) dump.call(this)
  }
}

const dump = (IncomingMessage.prototype as DumpingMessage)._dump
