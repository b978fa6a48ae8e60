/** Clients that keep a stream or a WebSocket open over TLS, and open it again whenever it has ended. */
import { request } from 'node:https'
import type { Duplex } from 'node:stream'
import { clientFrame } from '../websocket/frames.ts'
import { handshakeFields } from './websocket.ts'

export interface StreamClients {
  /** How often each has been opened. */
  readonly opened: readonly number[]
  /** Failures: responses or errors instead of a stream. */
  readonly failed: readonly string[]
  /** Closes all and opens no more. */
  stop(): void
}

/** Opens streams of server-sent events; each lasts until it ends by itself. */
export function openStreams(url: string, count: number): StreamClients {
  return keepOpen(count, (onOpen, onEnd) => {
    const sent = request(url, { agent: false, rejectUnauthorized: false }, (response) => {
      if (response.statusCode !== 200) onEnd(`status ${response.statusCode}`)
      response.once('data', onOpen)
      response.on('error', () => {}).on('close', () => onEnd())
    })
    sent.on('error', (error) => onEnd(error.message))
    sent.end()
    return () => sent.destroy()
  })
}

/** Opens WebSockets; each lasts until the server closes it. */
export function openSockets(url: string, count: number): StreamClients {
  const headers = Object.fromEntries(handshakeFields.map((field) => field.split(': ')))
  return keepOpen(count, (onOpen, onEnd) => {
    const sent = request(url, { agent: false, rejectUnauthorized: false, headers })
    sent.on('response', ({ statusCode }) => onEnd(`status ${statusCode}`))
    sent.on('upgrade', (_response, socket: Duplex) => {
      onOpen()
      // All that it sends by itself in this time is the Close frame.
      socket.on('data', () => socket.end(clientFrame({ opcode: 8, payload: Buffer.from([0x03, 0xe9]) })))
      socket.on('error', () => {}).on('close', () => onEnd())
    })
    sent.on('error', (error) => onEnd(error.message))
    sent.end()
    return () => sent.destroy()
  })
}

/** Opens one. Calls `onOpen` when it is there, `onEnd` when it has ended, with what kept it from being opened. Returns what cuts it. */
type Open = (onOpen: () => void, onEnd: (problem?: string) => void) => () => void

function keepOpen(count: number, open: Open): StreamClients {
  const opened = Array.from({ length: count }, () => 0)
  const failed: string[] = []
  const cuts: (() => void)[] = []
  let stopped = false
  const begin = (at: number): void => {
    let ended = false
    let isOpen = false
    cuts[at] = open(
      () => {
        isOpen = true
        opened[at] = (opened[at] ?? 0) + 1
      },
      (problem) => {
        if (ended || stopped) return
        ended = true
        if (!isOpen) failed.push(problem ?? 'ended before it was open')
        setImmediate(() => {
          if (!stopped) begin(at)
        })
      },
    )
  }
  for (let at = 0; at < count; at += 1) begin(at)
  return {
    opened,
    failed,
    stop: () => {
      stopped = true
      for (const cut of cuts) cut()
    },
  }
}
