/**
 * The replies that stay open after their request, by session: streams, polls and WebSockets. When the session ends, or
 * gets a new id, they end too: otherwise a client would keep listening after the sign-out.
 *
 * Sessions are identified by a hash of their ids, since other processes are notified of their ends, and an id is a
 * secret.
 */
import { createHash } from 'node:crypto'
import type { CoreContext } from '../http/context.ts'

/** A reply that stays open. */
interface OpenReply {
  /** Ends it. */
  revoke(): void
}

/** The number of ended sessions to remember, since a request that began before the end may open its reply after it. */
const maxEnded = 1000

/** The open replies of one process. */
export class OpenReplies {
  /** Notifies other processes that a session has ended; does nothing until it is set. */
  tellOthers: (session: string) => void = () => {}
  readonly #bySession = new Map<string, Set<OpenReply>>()
  /** The most recently ended sessions, oldest first. */
  readonly #ended = new Set<string>()

  /** Tracks a reply until it ends. */
  add(id: string, ctx: CoreContext, reply: OpenReply): void {
    const stream = ctx.upgrading?.socket ?? ctx.response
    if (ctx.closed || stream.destroyed) return
    const session = hashOf(id)
    if (this.#ended.has(session)) return reply.revoke()
    const replies = this.#bySession.get(session) ?? new Set()
    this.#bySession.set(session, replies.add(reply))
    stream.once('close', () => {
      replies.delete(reply)
      if (replies.size === 0 && this.#bySession.get(session) === replies) this.#bySession.delete(session)
    })
  }

  /** Ends the replies of a session, here and in other processes. */
  end(id: string): void {
    const session = hashOf(id)
    this.endHere(session)
    this.tellOthers(session)
  }

  /** Ends the replies of a session in this process. `session`: the hash passed to `tellOthers` */
  endHere(session: string): void {
    this.#ended.add(session)
    const [oldest] = this.#ended
    if (this.#ended.size > maxEnded && oldest !== undefined) this.#ended.delete(oldest)
    const replies = this.#bySession.get(session)
    this.#bySession.delete(session)
    for (const reply of replies ?? []) reply.revoke()
  }
}

/** Whether a value has the form of a session hash. Anything else on its channel is not from this server. */
export function isSessionHash(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]{43}$/.test(value)
}

function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}
