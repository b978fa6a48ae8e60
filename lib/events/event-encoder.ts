/**
 * Encodes the events of a channel: as the response to a poll and as frames of a stream.
 *
 * The last result of each kind is cached, since all clients that wait for the newest event get the same bytes. The
 * first and the last id identify it: no event is ever inserted between two others.
 */
import { Buffer } from 'node:buffer'
import { endWithText } from '../core/header-section.ts'
import { jsonType, StreamReply } from '../http/reply.ts'
import type { ChannelEvent, ChannelRead } from './broker.ts'

/** Longer bodies are kept as bytes. Shorter ones are sent together with the header section, which needs a string. */
const maxTextBytes = 4096

/** The encoder of one channel. */
export class EventEncoder {
  #poll: { firstId: number; lastId: number; gap: boolean; reply: StreamReply } | undefined = undefined
  #message: { id: number; text: string } | undefined = undefined
  #frames: { firstId: number; lastId: number; bytes: Buffer } | undefined = undefined

  /** Returns the response to a poll: `{events: [{id, data}], last_id}`, and with a gap `gap: true`. */
  pollReply({ events, lastId, gap }: ChannelRead): StreamReply {
    const firstId = events[0]?.id ?? Infinity
    const kept = this.#poll
    if (kept !== undefined && kept.firstId === firstId && kept.lastId === lastId && kept.gap === gap) return kept.reply
    const items = events.map((event) => `{"id":${event.id},"data":${event.text}}`).join(',')
    const reply = jsonReply(`{"events":[${items}],"last_id":${lastId}${gap ? ',"gap":true' : ''}}`)
    this.#poll = { firstId, lastId, gap, reply }
    return reply
  }

  /** Returns the frames of one or more events: `id: N`, `data: <json>` (HTML Standard, section 9.2.5). */
  frames(events: readonly ChannelEvent[]): Buffer {
    const firstId = (events[0] as ChannelEvent).id // There is at least one.
    const lastId = (events[events.length - 1] as ChannelEvent).id // As above.
    const kept = this.#frames
    if (kept !== undefined && kept.firstId === firstId && kept.lastId === lastId) return kept.bytes
    const bytes = Buffer.from(events.map((event) => `id: ${event.id}\ndata: ${event.text}\n\n`).join(''))
    this.#frames = { firstId, lastId, bytes }
    return bytes
  }

  /** Returns the text of an event for a WebSocket. */
  message(event: ChannelEvent): string {
    if (this.#message?.id !== event.id) {
      this.#message = { id: event.id, text: `{"event":"message","id":${event.id},"data":${event.text}}` }
    }
    return this.#message.text
  }

  /** Frees the cached results. */
  clear(): void {
    this.#message = undefined
    this.#poll = undefined
    this.#frames = undefined
  }
}

/** Returns a JSON reply with `Cache-Control: no-store`. The same object can answer many requests. */
export function jsonReply(text: string): StreamReply {
  const length = Buffer.byteLength(text)
  const body = length > maxTextBytes ? Buffer.from(text) : text
  const headers = ['Content-Type', jsonType, 'Cache-Control', 'no-store', 'Content-Length', String(length)]
  if (length === text.length) return new StreamReply(200, headers, length, (response) => endWithText(response, text))
  return new StreamReply(200, headers, length, (response) => response.end(body))
}

/** Returns the events with a higher id. The events must be in order. */
export function eventsAfter(events: readonly ChannelEvent[], id: number): readonly ChannelEvent[] {
  const at = events.findIndex((event) => event.id > id)
  return at <= 0 ? (at < 0 ? [] : events) : events.slice(at)
}
