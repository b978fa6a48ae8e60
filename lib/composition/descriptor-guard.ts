/**
 * Keeps file descriptors free: from four fifths of the limit on, the connections that have gone longest without
 * progress are closed. A client that keeps up is never closed, nor one that waits for the server or for an event.
 *
 * Descriptors are counted as the system has them, since a connection may use several: a download holds its file, and
 * modules, logs and the application have some too. Without room the system resets new connections in silence.
 */
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { LogPort } from '../base/ports.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { connectionOf } from '../core/connection.ts'
import type { DescriptorGuard } from '../core/listener.ts'
import type { DescriptorCounts } from './file-descriptors.ts'

/** The share of the limit from which connections are closed. */
const threshold = 0.8
/** Up to this share of the limit, a connection is given time to send its request, in milliseconds. */
const lastThreshold = 0.9
const freshMs = 1000
/** How often descriptors are counted while few are open, in calls of `check`. */
const checksBetweenCounts = 10
/** For how long a warning stays after the last connection was closed, in milliseconds. */
const warnForMs = 10_000

/**
 * Makes the guard of a server.
 * @param sockets its open connections
 * @param log gets a WARN, at most one a second, when descriptors are short
 */
export function guardDescriptors(
  { limit, count }: DescriptorCounts,
  sockets: ReadonlySet<Socket>,
  log: LogPort,
): DescriptorGuard {
  const most = Math.floor(limit * threshold)
  const mostFresh = Math.floor(limit * lastThreshold)
  const short = new RateLimited(log.warn, 1000)
  /** Those counted last, with what was opened and closed since. */
  let open = 0
  let countedAtMs = -Infinity
  let checks = 0
  let closed = 0
  let closedAtMs = -Infinity
  /** Whether connections were closed whose descriptors the system still has. */
  let isSettling = false
  /** Connections, the one without progress for longest first. */
  let stalled: (readonly [socket: Socket, sinceMs: number])[] = []

  /** To count takes the system a microsecond for each: it is done for a twentieth of the time at most. */
  function recount(nowMs: number): void {
    if (isSettling || nowMs - countedAtMs < open / 50) return
    countedAtMs = nowMs
    open = count() ?? sockets.size
  }

  function relieve(): void {
    const nowMs = performance.now()
    recount(nowMs)
    if (open < most) return
    const before = open
    while (open >= most && closeOne(open < mostFresh ? nowMs - freshMs : nowMs)) open -= 1
    const closesNone = before === open
    const name = closesNone ? 'none of which can be closed' : `closed ${before - open} that made no progress`
    const state = `${before} of ${limit} file descriptors are open, with ${sockets.size} connections`
    short.say(`${state}, ${name}${advice}`, String(closesNone))
    if (closesNone) return
    closedAtMs = nowMs
    isSettling = true
    setImmediate(() => setImmediate(() => (isSettling = false)))
  }

  /** Closes the connection without progress for longest, if that is since `latestMs` or longer. */
  function closeOne(latestMs: number): boolean {
    for (let isFresh = false; ; isFresh = true) {
      for (let first = stalled[0]; first !== undefined; first = stalled[0]) {
        const [socket, sinceMs] = first
        if (sinceMs > latestMs) return false
        stalled.shift()
        if (socket.destroyed || connectionOf(socket).stalledSinceMs !== sinceMs) continue
        socket.destroy()
        closed += 1
        return true
      }
      if (isFresh) return false
      stalled = [...sockets]
        .map((socket) => [socket, connectionOf(socket).stalledSinceMs ?? Infinity] as const)
        .filter(([, sinceMs]) => sinceMs < Infinity)
        .sort(([, one], [, other]) => one - other)
    }
  }

  return {
    accepted() {
      open += 1
      if (open >= most) relieve()
    },

    check() {
      checks += 1
      if (open < limit / 2 && checks % checksBetweenCounts !== 0) return
      recount(performance.now())
      if (open >= most) relieve()
    },

    get closed() {
      return closed
    },

    warnings() {
      if (open < most && performance.now() - closedAtMs > warnForMs) return []
      return [descriptorsShort(open, limit)]
    },
  }
}

/** The warning while descriptors are short. */
export function descriptorsShort(open: number, limit: number): string {
  return `${open} of ${limit} file descriptors are open: connections without progress are closed${advice}`
}

const advice = '; raise the limit (LimitNOFILE=), or look for files that the application leaves open'
