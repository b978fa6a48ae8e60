import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { Deadlines, entriesPerTurn, type Clock, type Timed } from '../../lib/core/deadlines.ts'
import { Seeded } from '../support/seeded.ts'

interface Entry extends Timed {
  readonly id: number
}

const entry = (id: number, deadlineAt: number): Entry => ({ id, deadlineAt, heapIndex: -1 })

/** A clock that stands still until the test moves it, and counts the timers that were set. */
class HeldClock implements Clock {
  ms = 0
  timers = 0
  #due: { at: number; run: () => void } | undefined

  now(): number {
    return this.ms
  }

  after(delayMs: number, run: () => void): () => void {
    assert.equal(this.#due, undefined, 'there is one timer')
    assert.ok(delayMs >= 0 && delayMs < 2 ** 31, `${delayMs} ms`)
    const due = { at: this.ms + delayMs, run }
    this.#due = due
    this.timers += 1
    return () => {
      if (this.#due === due) this.#due = undefined
    }
  }

  get set(): boolean {
    return this.#due !== undefined
  }

  /** Lets time pass; the timer fires where it is due. */
  pass(ms: number): void {
    const end = this.ms + ms
    while (this.#due !== undefined && this.#due.at <= end) this.fire()
    this.ms = end
  }

  /** Lets the timer fire once. */
  fire(): void {
    const { at, run } = this.#due as { at: number; run: () => void } // Called where one is set.
    this.#due = undefined
    this.ms = Math.max(this.ms, at)
    run()
  }
}

function make() {
  const clock = new HeldClock()
  const ranOut: number[] = []
  const deadlines = new Deadlines<Entry>(({ id }) => ranOut.push(id), clock)
  return { clock, ranOut, deadlines }
}

describe('deadlines', () => {
  it('run out in order, each once', () => {
    const { clock, ranOut, deadlines } = make()
    for (const at of [30, 10, 20, 40]) deadlines.add(entry(at, at))
    clock.pass(9)
    assert.deepEqual([ranOut, deadlines.size], [[], 4])
    clock.pass(11)
    assert.deepEqual(ranOut, [10, 20])
    clock.pass(1000)
    assert.deepEqual([ranOut, deadlines.size, clock.set], [[10, 20, 30, 40], 0, false])
  })

  it('of removed entries do not come', () => {
    const { clock, ranOut, deadlines } = make()
    const entries = [1, 2, 3, 4, 5, 6].map((at) => entry(at, at))
    for (const each of entries) deadlines.add(each)
    for (const each of [entries[0], entries[3], entries[5]] as Entry[]) assert.equal(deadlines.remove(each), true)
    assert.equal(deadlines.remove(entries[0] as Entry), false)
    clock.pass(10)
    assert.deepEqual(ranOut, [2, 3, 5])
  })

  it('agree with a sorted list, whatever is added and removed', () => {
    const seeded = new Seeded(5)
    const { clock, ranOut, deadlines } = make()
    const present = new Map<number, Entry>()
    const expected: number[] = []
    for (let id = 0; id < 20_000; id += 1) {
      const choice = seeded.next()
      if (choice < 0.6) {
        const added = entry(id, choice < 0.05 ? Infinity : clock.ms + seeded.integer(500) + id / 1e6)
        present.set(id, added)
        deadlines.add(added)
      } else if (choice < 0.8 && present.size > 0) {
        const removed = seeded.pick([...present.values()])
        present.delete(removed.id)
        assert.equal(deadlines.remove(removed), true)
      } else {
        clock.pass(seeded.integer(20))
        const due = [...present.values()].filter((each) => each.deadlineAt <= clock.ms)
        for (const each of due.sort((a, b) => a.deadlineAt - b.deadlineAt)) {
          expected.push(each.id)
          present.delete(each.id)
        }
        assert.equal(deadlines.size, present.size)
      }
    }
    assert.ok(expected.length > 1000, `${expected.length} ran out`)
    assert.deepEqual(ranOut, expected)
  })

  it('need one timer, and mostly none of their own', () => {
    const { clock, deadlines } = make()
    const entries = Array.from({ length: 1000 }, (_, id) => entry(id, 1000 + id))
    for (const each of entries) deadlines.add(each)
    assert.equal(clock.timers, 1)
    for (const each of entries.slice(0, 999)) deadlines.remove(each)
    assert.equal(clock.timers, 1)
    deadlines.remove(entries[999] as Entry)
    assert.deepEqual([clock.timers, clock.set], [1, false])
  })

  it('that never come need no timer', () => {
    const { clock, deadlines } = make()
    const [never, soon] = [entry(1, Infinity), entry(2, 5)]
    deadlines.add(never)
    assert.equal(clock.set, false)
    deadlines.add(soon)
    clock.pass(5)
    assert.deepEqual([deadlines.size, clock.set], [1, false])
    assert.equal(deadlines.remove(never), true)
  })

  it('may lie further away than the longest timer', () => {
    const { clock, ranOut, deadlines } = make()
    deadlines.add(entry(1, 2 ** 32))
    clock.pass(2 ** 32 - 1)
    assert.deepEqual(ranOut, [])
    clock.pass(1)
    assert.deepEqual(ranOut, [1])
  })

  it('of very many that come together leave turns to others', () => {
    const { clock, ranOut, deadlines } = make()
    const count = entriesPerTurn * 2 + 1
    for (let id = 0; id < count; id += 1) deadlines.add(entry(id, 7))
    clock.fire()
    assert.equal(ranOut.length, entriesPerTurn)
    clock.fire()
    clock.fire()
    assert.deepEqual([ranOut.length, clock.set, new Set(ranOut).size], [count, false, count])
  })

  it('all come when they are told to, those added later as well', () => {
    const { clock, ranOut, deadlines } = make()
    deadlines.runOutAll()
    assert.equal(clock.set, false)
    deadlines.add(entry(1, Infinity))
    clock.fire()
    deadlines.add(entry(2, 50))
    deadlines.add(entry(3, 20))
    clock.fire()
    assert.deepEqual([ranOut, clock.ms], [[1, 3, 2], 0])
  })

  it('that are there come when all are told to', () => {
    const { clock, ranOut, deadlines } = make()
    for (const at of [Infinity, 30, 10]) deadlines.add(entry(at, at))
    deadlines.runOutAll()
    clock.fire()
    assert.deepEqual([ranOut, clock.ms], [[10, 30, Infinity], 0])
  })

  it('may be added and removed while others run out', () => {
    const clock = new HeldClock()
    const ranOut: number[] = []
    const other = entry(2, 10)
    const deadlines: Deadlines<Entry> = new Deadlines<Entry>((each) => {
      ranOut.push(each.id)
      if (each.id !== 1) return
      deadlines.remove(other)
      deadlines.add(entry(3, 10))
      deadlines.add(entry(4, 20))
    }, clock)
    deadlines.add(entry(1, 9))
    deadlines.add(other)
    clock.pass(30)
    assert.deepEqual([ranOut, clock.set], [[1, 3, 4], false])
  })

  it('come by the time of the machine unless a clock is given', async () => {
    const events = new EventTarget()
    const deadlines = new Deadlines<Entry>(() => events.dispatchEvent(new Event('over')))
    const over = once(events, 'over')
    const before = deadlines.now()
    deadlines.add(entry(1, before + 20))
    await over
    assert.ok(deadlines.now() >= before + 20)
    const removed = entry(2, before + 1e9)
    deadlines.add(removed)
    deadlines.remove(removed)
  })
})
