/**
 * Closing a connection whose client is still sending. A socket that is closed with unread bytes in it is reset by the
 * kernel, and the reset can overtake the answer: the client sees a broken connection instead of its 413. So the sending
 * side is closed after the answer, and what still comes is thrown away for a short while (RFC 9112, section 9.6).
 */
import type { Socket } from 'node:net'

/** How long the rest is thrown away before the connection is cut, in milliseconds: some megabytes of a slow upload. */
const lingerMs = 5000

/** A socket on which an answer has said that it is the last. */
type EndingSocket = Socket & { [ending]?: true }

const ending = Symbol('ending')

/** Notes that an answer on this socket says `Connection: close`: nothing behind it may be served (RFC 9112, section 9.6). */
export function markEnding(socket: Socket): void {
  const marked: EndingSocket = socket
  marked[ending] = true
}

/** Whether `markEnding` was called for this socket. */
export function isEnding(socket: Socket): boolean {
  return (socket as EndingSocket)[ending] === true
}

/** Makes the close that `node:http` does after the last answer on this socket a lingering one. */
export function linger(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end()
    // Without the listener of the HTTP parser, which would go on to make requests of what comes.
    socket.removeAllListeners('data').on('data', discard).resume()
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    timer.unref()
    socket.once('close', () => clearTimeout(timer))
  }
}

function discard(): void {}
