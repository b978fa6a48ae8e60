/**
 * How the events of a channel are sent: the answer to a poll, and the frames of a stream.
 *
 * Surprise: each form is kept until the next one is made, since those who wait at the newest event all get the same: it
 * is made once, and all share its bytes. No event comes between two others later, so the first and the last tell what
 * it is.
 */
import { Buffer } from 'node:buffer'
import { endWithText } from '../core/header-section.ts'
import { jsonType, StreamReply } from '../http/reply.ts'
import type { ChannelEvent, ChannelRead } from './broker.ts'

/** A longer body is kept as bytes; a shorter one leaves in one piece with the header section, which only text does. */
const longestText = 4096

export class EventForms {
  #poll: { firstId: number; lastId: number; gap: boolean; reply: StreamReply } | undefined = undefined
  #frames: { firstId: number; lastId: number; bytes: Buffer } | undefined = undefined

  /** The answer to a poll: `{events: [{id, data}], last_id}`, with a gap also `gap: true`. */
  poll({ events, lastId, gap }: ChannelRead): StreamReply {
    const firstId = events[0]?.id ?? Infinity
    const kept = this.#poll
    if (kept !== undefined && kept.firstId === firstId && kept.lastId === lastId && kept.gap === gap) return kept.reply
    const items = events.map((event) => `{"id":${event.id},"data":${event.text}}`).join(',')
    const reply = jsonAnswer(`{"events":[${items}],"last_id":${lastId}${gap ? ',"gap":true' : ''}}`)
    this.#poll = { firstId, lastId, gap, reply }
    return reply
  }

  /** The frames of a stream, for one event and more: `id: N`, `data: <json>` (HTML Standard, section 9.2.5). */
  frames(events: readonly ChannelEvent[]): Buffer {
    const firstId = (events[0] as ChannelEvent).id // There is one.
    const lastId = (events[events.length - 1] as ChannelEvent).id // As above.
    const kept = this.#frames
    if (kept !== undefined && kept.firstId === firstId && kept.lastId === lastId) return kept.bytes
    const bytes = Buffer.from(events.map((event) => `id: ${event.id}\ndata: ${event.text}\n\n`).join(''))
    this.#frames = { firstId, lastId, bytes }
    return bytes
  }

  /** Lets go of what is kept. */
  clear(): void {
    this.#poll = undefined
    this.#frames = undefined
  }
}

/** A JSON answer that no cache keeps. One object serves every request that gets the same. */
export function jsonAnswer(text: string): StreamReply {
  const length = Buffer.byteLength(text)
  const body = length > longestText ? Buffer.from(text) : text
  const headers = ['Content-Type', jsonType, 'Cache-Control', 'no-store', 'Content-Length', String(length)]
  if (length === text.length) return new StreamReply(200, headers, length, (response) => endWithText(response, text))
  return new StreamReply(200, headers, length, (response) => response.end(body))
}

/** Those events, which are in order, that come after an id. */
export function eventsAfter(events: readonly ChannelEvent[], id: number): readonly ChannelEvent[] {
  const at = events.findIndex((event) => event.id > id)
  return at <= 0 ? (at < 0 ? [] : events) : events.slice(at)
}
