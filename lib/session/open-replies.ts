/**
 * The replies that stay open after their request, by the session that opened them: streams, polls and WebSockets. When
 * the session ends, or gets another id, they end too, or somebody who has signed out would go on listening.
 *
 * Sessions are named by a hash of their ids here, since other processes are told of their ends, and an id is a secret.
 */
import { createHash } from 'node:crypto'
import type { CoreContext } from '../http/context.ts'

/** A reply that stays open. */
interface OpenReply {
  /** Ends it. */
  revoke(): void
}

/** So many ended sessions are remembered, since a request that began before may open its reply after the end. */
const mostEnded = 1000

/** The open replies of one process. */
export class OpenReplies {
  /** Tells other processes that a session has ended; does nothing until it is set. */
  tellOthers: (session: string) => void = () => {}
  readonly #bySession = new Map<string, Set<OpenReply>>()
  /** The sessions that ended last, oldest first. */
  readonly #ended = new Set<string>()

  /** Adds a reply until it has ended. */
  add(id: string, ctx: CoreContext, reply: OpenReply): void {
    const stays = ctx.upgrading?.socket ?? ctx.response
    if (ctx.closed || stays.destroyed) return
    const session = hashOf(id)
    if (this.#ended.has(session)) return reply.revoke()
    const replies = this.#bySession.get(session) ?? new Set()
    this.#bySession.set(session, replies.add(reply))
    stays.once('close', () => {
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

  /** Ends the replies of a session in this process. `session`: what `tellOthers` was given */
  endHere(session: string): void {
    this.#ended.add(session)
    const [oldest] = this.#ended
    if (this.#ended.size > mostEnded && oldest !== undefined) this.#ended.delete(oldest)
    const replies = this.#bySession.get(session)
    this.#bySession.delete(session)
    for (const reply of replies ?? []) reply.revoke()
  }
}

/** Whether a value has the form of what `tellOthers` is given. Anything else on its channel is not from this server. */
export function isSessionHash(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]{43}$/.test(value)
}

function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}
