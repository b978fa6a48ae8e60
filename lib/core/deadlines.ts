/**
 * Time-outs for clients: to send a request, send the rest of a body, or read the response. A silent client times out,
 * and so does a body that arrives too slowly; a client that keeps up is never cut. Time that the server itself takes
 * does not count.
 */
import type { Connection, Wait } from './connection.ts'

/** The time-outs, in milliseconds. */
export interface Deadlines {
  /** For a header section, from its first byte or the turn of its request. */
  readonly headerTimeoutMs: number
  /** For a header section and its body together. */
  readonly requestTimeoutMs: number
  /** For an idle connection. */
  readonly keepAliveTimeoutMs: number
  /** The longest silence of a client that has to send a body. */
  readonly bodyIdleTimeoutMs: number
  /** The longest time in which a client reads nothing of its response. */
  readonly sendIdleTimeoutMs: number
}

/** Why a connection is ended. */
export interface Overdue {
  /** 408, or undefined to cut the connection without a response. */
  readonly status: 408 | undefined
  /** Completes the log line `408 for ADDRESS: `; '' logs nothing. */
  readonly reason: string
}

/** A body must make this progress, in bytes, in each period, in milliseconds. */
const leastBodyBytes = 1024
const leastBodyEveryMs = 60_000

/**
 * How much longer than announced an idle connection stays open, in milliseconds, so that a request sent at the last
 * moment still gets its response.
 */
const keepAliveMarginMs = 250

const cut: Overdue = { status: undefined, reason: '' }

/**
 * Returns why the client is overdue, if it is. Call it at regular intervals: it sees progress only between two calls.
 * @param nowMs `performance.now()`
 */
export function overdueOf(connection: Connection, nowMs: number, deadlines: Deadlines): Overdue | undefined {
  const wait = connection.watch(nowMs)
  if (wait === undefined) return undefined
  const stillForMs = nowMs - wait.movedAtMs
  switch (wait.awaited) {
    case 'reading': {
      const { sendIdleTimeoutMs } = deadlines
      if (stillForMs < sendIdleTimeoutMs) return undefined
      return { status: undefined, reason: `it read nothing of its response for ${sendIdleTimeoutMs / 1000} s` }
    }
    case 'request': {
      // The bytes are empty lines, or the start of a request: grant the header time-out.
      if (wait.moved > wait.markMoved) wait.markMs ??= nowMs
      const { keepAliveTimeoutMs, headerTimeoutMs } = deadlines
      const idleForMs = nowMs - wait.sinceMs
      if (connection.isHeaderLate && idleForMs >= headerTimeoutMs) return late('its header section arrived too slowly')
      if (wait.markMs !== undefined && nowMs - wait.markMs < headerTimeoutMs) return undefined
      return idleForMs < keepAliveTimeoutMs + keepAliveMarginMs ? undefined : cut
    }
    default: {
      const reason = reasonOfBody(connection, wait, nowMs, deadlines)
      if (reason === undefined) return undefined
      return connection.isServing ? late(reason) : cut
    }
  }
}

function reasonOfBody(
  { beganAtMs, current }: Connection,
  wait: Wait,
  nowMs: number,
  { bodyIdleTimeoutMs, requestTimeoutMs: usualMs }: Deadlines,
): string | undefined {
  if (nowMs - wait.movedAtMs >= bodyIdleTimeoutMs) {
    return `no more of the request body arrived for ${bodyIdleTimeoutMs / 1000} s`
  }
  const requestTimeoutMs = current?.requestTimeoutMs ?? usualMs
  if (current !== undefined && nowMs - beganAtMs >= requestTimeoutMs) {
    return `the request took longer than ${requestTimeoutMs / 1000} s to arrive`
  }
  wait.markMs ??= wait.sinceMs
  if (nowMs - wait.markMs < leastBodyEveryMs) return undefined
  if (wait.moved - wait.markMoved < leastBodyBytes) return 'less than 1 KiB of the request body arrived in 60 s'
  wait.markMs = nowMs
  wait.markMoved = wait.moved
  return undefined
}

function late(reason: string): Overdue {
  return { status: 408, reason }
}
