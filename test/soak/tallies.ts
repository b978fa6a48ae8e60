/** What the clients of a soak saw: answers by kind and status, clients that left, and what should not have been. */

/** The answers of one kind. */
export interface Tally {
  /** Requests that were answered. */
  answered: number
  /** Requests whose client left before the answer was there. */
  left: number
  /** Answers by status. */
  readonly statuses: Map<number, number>
}

/** At most so many complaints are kept; all are counted. */
const keptComplaints = 20

/** Collects what all clients saw. */
export class Tallies {
  readonly kinds = new Map<string, Tally>()
  /** The first of what should not have been. */
  readonly complaints: string[] = []
  complaintCount = 0

  /** Counts an answer; one with a status that is not expected is a complaint. */
  answered(kind: string, status: number, expected: readonly number[]): void {
    const tally = this.#of(kind)
    tally.answered += 1
    tally.statuses.set(status, (tally.statuses.get(status) ?? 0) + 1)
    if (!expected.includes(status)) this.complain(`${kind}: status ${status} instead of ${expected.join(' or ')}`)
  }

  left(kind: string): void {
    this.#of(kind).left += 1
  }

  complain(what: string): void {
    this.complaintCount += 1
    if (this.complaints.length < keptComplaints) this.complaints.push(what)
  }

  /** Answered requests of all kinds. */
  get total(): number {
    return [...this.kinds.values()].reduce((sum, { answered }) => sum + answered, 0)
  }

  #of(kind: string): Tally {
    const known = this.kinds.get(kind)
    if (known !== undefined) return known
    const tally: Tally = { answered: 0, left: 0, statuses: new Map() }
    this.kinds.set(kind, tally)
    return tally
  }
}
