/**
 * Parked replies that wait for one source, in order of arrival.
 *
 * Surprise: the links are in the replies themselves (`previous`, `next`), so one reply waits in one list at a time, and
 * to wait takes no memory beside it.
 */
import type { ParkedReply } from '../http/parked.ts'

export class WaitList<W extends ParkedReply> {
  #first: W | undefined = undefined
  #last: W | undefined = undefined

  /** Whether nobody waits. */
  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** Appends a reply that waits nowhere. */
  add(reply: W): void {
    if (this.#last === undefined) this.#first = reply
    else {
      this.#last.next = reply
      reply.previous = this.#last
    }
    this.#last = reply
  }

  /** Takes a reply out; one that is not in the list stays as it is. */
  remove(reply: W): void {
    const { previous, next } = reply as { previous: W | undefined; next: W | undefined } // Only `add` links replies.
    if (previous === undefined && this.#first !== reply) return
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    reply.previous = undefined
    reply.next = undefined
  }

  /** The first that the test holds for; undefined when there is none. */
  find(test: (reply: W) => boolean): W | undefined {
    let reply = this.#first
    while (reply !== undefined && !test(reply)) reply = reply.next as W | undefined // As above.
    return reply
  }

  /** All that wait now: what is done with one may change the list. */
  all(): W[] {
    const replies: W[] = []
    for (let reply = this.#first; reply !== undefined; reply = reply.next as W | undefined) replies.push(reply)
    return replies
  }
}
