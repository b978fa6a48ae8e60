/**
 * Keeps file descriptors free: from four fifths of the limit, closes the connections that have been longest without
 * progress. It never closes a client that keeps up, or one that waits for the server or for an event.
 *
 * The descriptors are counted by the system, since a connection may use several: a download holds its file, and
 * modules, logs and the application use some too. When none are free, the system resets new connections silently.
 */
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { LogPort } from '../base/ports.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { connectionOf } from '../core/connection.ts'
import type { DescriptorGuard } from '../core/listener.ts'
import { maxConnections, type DescriptorCounts } from './file-descriptors.ts'

/** The share of the limit from which connections are closed. */
const threshold = 0.8
/** Below this share of the limit, a new connection gets time to send its request, in milliseconds. */
const lastThreshold = 0.9
const freshMs = 1000
/**
 * The share of the limit from which each new connection may be followed by a count: a download opens a file besides, so
 * the descriptors grow faster than the connections.
 */
const countThreshold = 0.25
/** How often to count descriptors while fewer are open, in calls of `check`. */
const checksBetweenCounts = 10
/** How long a warning stays after the last connection was closed, in milliseconds. */
const warnForMs = 10_000

/**
 * Creates the guard of a server.
 * @param sockets its open connections
 * @param log receives a WARN, at most one a second, when descriptors run short
 */
export function guardDescriptors(
  { limit, count }: DescriptorCounts,
  sockets: ReadonlySet<Socket>,
  log: LogPort,
): DescriptorGuard {
  // Beyond its maximum of connections, Node resets each new one, which may be a client that keeps up.
  const mostConnections = maxConnections({ limit })
  const maxOpen = Math.min(Math.floor(limit * threshold), mostConnections)
  const maxOpenFresh = Math.min(Math.floor(limit * lastThreshold), mostConnections)
  const short = new RateLimited(log.warn, 1000)
  /** The last count, adjusted by what was opened and closed since. */
  let open = 0
  let countedAtMs = -Infinity
  let checks = 0
  let closed = 0
  let closedAtMs = -Infinity
  /** Whether the log has a line that none can be closed, since descriptors run short. */
  let isReported = false
  /** Whether the system has yet to free the descriptors of closed connections. */
  let isSettling = false
  /** Connections, those longest without progress first. */
  let stalled: (readonly [socket: Socket, sinceMs: number])[] = []

  /** Counts the descriptors. That takes a microsecond for each, so it is limited to a twentieth of the time. */
  function recount(nowMs: number): void {
    if (isSettling || nowMs - countedAtMs < open / 50) return
    countedAtMs = nowMs
    open = count() ?? sockets.size
  }

  function relieve(): void {
    const nowMs = performance.now()
    recount(nowMs)
    if (open < maxOpen) {
      isReported = false
      return
    }
    const before = open
    while (open >= maxOpen && closeOne(open < maxOpenFresh ? nowMs - freshMs : nowMs)) open -= 1
    const closesNone = before === open
    const outcome = closesNone ? 'none of which can be closed' : `closed ${before - open} that made no progress`
    const state = `${before} of ${limit} file descriptors are open, with ${sockets.size} connections`
    if (!closesNone || !isReported) short.say(`${state}, ${outcome}${advice}`, String(closesNone))
    isReported = closesNone
    if (closesNone) return
    closedAtMs = nowMs
    isSettling = true
    setImmediate(() => setImmediate(() => (isSettling = false)))
  }

  /** Closes the connection longest without progress, if it has made none since `latestMs`. */
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
      if (open >= limit * countThreshold) relieve()
    },

    check() {
      checks += 1
      if (open >= limit * countThreshold || checks % checksBetweenCounts === 0) relieve()
    },

    get closed() {
      return closed
    },

    warnings() {
      if (open < maxOpen && performance.now() - closedAtMs > warnForMs) return []
      return [descriptorsShort(open, limit)]
    },
  }
}

/** Returns the warning while descriptors are short. */
export function descriptorsShort(open: number, limit: number): string {
  return `${open} of ${limit} file descriptors are open: connections without progress are closed${advice}`
}

const advice = '; raise the limit (LimitNOFILE=), or look for files that the application leaves open'
