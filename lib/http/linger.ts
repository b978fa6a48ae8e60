/**
 * Closing a connection whose client is still sending. A socket that is closed with unread bytes in it is reset by the
 * kernel, and the reset can overtake the answer: the client sees a broken connection instead of its 413. So the sending
 * side is closed after the answer, and what still comes is thrown away for a short while (RFC 9112, section 9.6).
 */
import type { Socket } from 'node:net'

/** How long the rest is thrown away before the connection is cut, in milliseconds: some megabytes of a slow upload. */
export const lingerMs = 5000

/** Makes the close that `node:http` does after the last answer on this socket a lingering one. */
export function linger(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end()
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    timer.unref()
    socket.once('close', () => clearTimeout(timer))
  }
}
