/**
 * The parked replies that wait for one source, in order of arrival: a linked list.
 *
 * The links are in the replies themselves (`previous`, `next`), so waiting takes no more memory, and a reply can be in
 * one list only.
 */
import type { ParkedReply } from '../http/parked.ts'

export class WaitList<W extends ParkedReply> {
  #first: W | undefined = undefined
  #last: W | undefined = undefined

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** Appends a reply that is in no list. */
  add(reply: W): void {
    if (this.#last === undefined) this.#first = reply
    else {
      this.#last.next = reply
      reply.previous = this.#last
    }
    this.#last = reply
  }

  /** Removes a reply; does nothing when it is not in the list. */
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

  /** Returns the first reply that passes the test; undefined when none does. */
  find(test: (reply: W) => boolean): W | undefined {
    let reply = this.#first
    while (reply !== undefined && !test(reply)) reply = reply.next as W | undefined // As above.
    return reply
  }

  /** Returns a copy of the list, so that the list may change while the caller goes through it. */
  all(): W[] {
    const replies: W[] = []
    for (let reply = this.#first; reply !== undefined; reply = reply.next as W | undefined) replies.push(reply)
    return replies
  }
}
