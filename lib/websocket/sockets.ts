/**
 * The WebSockets of one server: accepts handshakes, limits the number of connections and closes them at a stop.
 *
 * A handshake is handled like any other request until its chain has unwound: middleware has run, the session is saved.
 * Then the 101 response is sent with the header fields of the context, and the handlers get the connection.
 */
import { ReplySender } from '../events/reply-sender.ts'
import type { CoreContext as Context } from '../http/context.ts'
import { HttpError, unserved } from '../http/errors.ts'
import { createOriginCheck } from '../http/origin.ts'
import { UpgradeReply } from '../http/reply.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { Heartbeat } from '../base/heartbeat.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { emitClose, releaseSocket } from '../core/node-internals.ts'
import { Pool, type PoolCounts } from '../core/pool.ts'
import { closeCodes } from './close-code.ts'
import { beatMs, WebSocketConnection, type WebSocketHandlers, type WebSocketServices } from './connection.ts'
import { checkHandshake, chooseProtocol } from './handshake.ts'

/** The WebSockets of one server. */
export interface WebSockets {
  /**
   * Accepts a handshake for a module that exports `websocket`.
   * @throws HttpError 400 or 426 for an invalid handshake, 403 for one from a page of another site
   */
  accept(ctx: Context, handlers: WebSocketHandlers<Context>): UpgradeReply
  /**
   * Closes every connection with 1001 and cuts it half a second later. Later handshakes are accepted and closed in the
   * same way: a client that reconnects after 1001 may give up permanently when it is refused.
   */
  stop(): void
  /** Resolves when no connection is left. */
  gone(): Promise<void>
  readonly pool: PoolCounts
  /** The number of connections that were cut because their peers did not read, since the start. */
  readonly slow: number
}

/** Bytes that may be buffered for a peer that does not read, in addition to one message of the maximum size. */
const bufferedBytes = 2 ** 20
/** Milliseconds for peers to answer the Close frame at a stop. */
const stopMs = 500
const stopReason = 'The server is being stopped'

/** Makes the WebSockets of a server. */
export function createWebSockets(options: {
  /** The maximum of concurrent connections, from 1. */
  readonly workers: number
  /** The maximum bytes of one message. */
  readonly maxMessageBytes: number
  /** `server.trusted_origins`. */
  readonly trustedOrigins: readonly string[]
  /** Returns the log of a module. */
  readonly log: (module: string) => ModuleLogger
}): WebSockets {
  const { workers, maxMessageBytes, trustedOrigins, log } = options
  const isFrom = createOriginCheck(trustedOrigins)
  const socketLog = log('worker_ws')
  const errorLog = log('error')
  const refusals = new RateLimited(log('pool').warn, 1000)
  const heartbeat = new Heartbeat(beatMs)
  const open = new Map<WebSocketConnection<Context>, ReplySender>()
  const pool = new Pool<Context>({ workers, queueSize: 0, start: () => {} })
  const whenGone: (() => void)[] = []
  let slow = 0
  let stopping = false

  const services: WebSocketServices<Context> = {
    heartbeat,
    maxMessageBytes,
    maxBufferedBytes: maxMessageBytes + bufferedBytes,
    onError: (thrown, ctx) => errorLog.error(`${nameOf(ctx)}: a WebSocket handler failed`, { thrown, request: ctx }),
    onProtocolError: ({ code, message }, ctx) =>
      socketLog.info(`${nameOf(ctx)}: closed with ${code}: ${message}`, { request: ctx }),
    onSlow: (ctx) => {
      slow += 1
      socketLog.warn(`${nameOf(ctx)}: cut, since the client does not read what is sent`, { request: ctx })
    },
    onClosed: (ws, code, ctx) => {
      if (socketLog.debugEnabled) socketLog.debug(`${nameOf(ctx)}: closed with ${code}`, { request: ctx })
      ctx.abort()
      open.get(ws)?.close()
      if (!ctx.closed) emitClose(ctx.response) // The 101 response could not be written; nothing else emits this.
      open.delete(ws)
      pool.leave()
      if (open.size === 0) for (const resolve of whenGone.splice(0)) resolve()
    },
  }

  function nameOf(ctx: Context): string {
    return `WebSocket ${ctx.path} (${ctx.routeName}) of ${ctx.ip}`
  }

  /** Returns undefined when the client has disconnected. */
  function takeOver(
    ctx: Context,
    accept: string,
    handlers: WebSocketHandlers<Context>,
  ): WebSocketConnection<Context> | undefined {
    const { upgrading } = ctx
    if (upgrading === undefined) throw new Error('This request is not a WebSocket handshake')
    if (ctx.gone) return undefined
    if (pool.enter(ctx) === 'refused') {
      const state = `${pool.busy} connections are open`
      refusals.say(`refused WebSocket ${ctx.path} (${ctx.routeName}): ${state}`, '', { request: ctx })
      throw unserved('All WebSocket connections are in use')
    }
    ctx.outgoing.set('Upgrade', 'websocket')
    ctx.outgoing.set('Connection', 'Upgrade')
    ctx.outgoing.set('Sec-WebSocket-Accept', accept)
    const protocol = chooseProtocol(ctx.header('sec-websocket-protocol'), handlers.protocols)
    if (protocol !== undefined) ctx.outgoing.set('Sec-WebSocket-Protocol', protocol)
    if (ctx.idToSend !== undefined) ctx.outgoing.set('X-Request-Id', ctx.idToSend)
    ctx.response.writeHead(101, ctx.outgoing.flat.slice()).end()
    releaseSocket(ctx.response, upgrading.socket)
    const ws = new WebSocketConnection<Context>(upgrading.socket, services, handlers, ctx, protocol)
    open.set(ws, new ReplySender(ctx, (event, json) => void ws.send(`{"event":"${event}","data":${json}}`)))
    if (socketLog.debugEnabled) socketLog.debug(`${nameOf(ctx)}: open`)
    ws.start(upgrading.head)
    if (stopping) {
      ws.close(closeCodes.goingAway, stopReason)
      cutLate([ws])
    }
    return ws
  }

  function cutLate(connections: readonly WebSocketConnection<Context>[]): void {
    setTimeout(() => connections.forEach((ws) => ws.terminate()), stopMs).unref()
  }

  return {
    accept(ctx, handlers) {
      const accept = checkHandshake(ctx)
      const from = isFrom(ctx)
      if (from === 'cross' || (from === 'unknown' && ctx.header('origin') !== undefined)) {
        throw new HttpError(403, 'forbidden', 'A page of another site requests this WebSocket')
      }
      let ws: WebSocketConnection<Context> | undefined
      let isRevoked = false
      const revoke = (): void => {
        isRevoked = true
        ws?.close(closeCodes.policy, 'The session has ended')
      }
      return new UpgradeReply(() => {
        ws = takeOver(ctx, accept, handlers)
        if (isRevoked) revoke()
      }, revoke)
    },
    stop() {
      stopping = true
      for (const ws of open.keys()) ws.close(closeCodes.goingAway, stopReason)
      cutLate([...open.keys()])
    },
    gone: () => (open.size === 0 ? Promise.resolve() : new Promise((resolve) => whenGone.push(resolve))),
    pool,
    get slow() {
      return slow
    },
  }
}
