/**
 * Closing a connection whose client is still sending. A socket that is closed with unread bytes in it is reset by the
 * kernel, and the reset can overtake the answer: the client sees a broken connection instead of its 413. So the sending
 * side is closed after the answer, and what still comes is thrown away for a short while (RFC 9112, section 9.6).
 */
import type { Socket } from 'node:net'

/** How long the rest is thrown away before the connection is cut, in milliseconds: some megabytes of a slow upload. */
const lingerMs = 5000

/** So many requests behind the last answer are passed over; then the connection is cut, so that a flood takes no memory. */
const mostPassedOver = 100

/** A socket on which an answer has said that it is the last, with the number of requests that came nevertheless. */
type EndingSocket = Socket & { [passedOver]?: number }

const passedOver = Symbol('passedOver')

/** Notes that an answer on this socket says `Connection: close`: nothing behind it may be served (RFC 9112, section 9.6). */
export function markEnding(socket: Socket): void {
  const marked: EndingSocket = socket
  marked[passedOver] ??= 0
}

/** Whether a request that has come on this socket must be passed over, since `markEnding` was called for it. */
export function isBehindEnd(socket: Socket): boolean {
  const marked: EndingSocket = socket
  if (marked[passedOver] === undefined) return false
  marked[passedOver] += 1
  if (marked[passedOver] > mostPassedOver) socket.destroy()
  return true
}

/** Throws away what still comes on a socket that Node has let go of, and that is closing. */
export function passOver(socket: Socket): void {
  socket.on('error', () => socket.destroy()).resume()
}

/** Makes the close that `node:http` does after the last answer on this socket a lingering one. */
export function linger(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end()
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    timer.unref()
    socket.once('close', () => clearTimeout(timer))
  }
}
