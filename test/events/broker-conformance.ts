import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Broker, ChannelEvent, ChannelGap } from '../../lib/events/broker.ts'
import { until } from '../support/until.ts'

/** The clocks of a broker under test, in milliseconds. */
export interface BrokerClocks {
  readonly now: () => number
  readonly wallNow: () => number
}

const limits = { maxEvents: 3, maxAgeMs: 1000 }
const nothing = { events: [], gap: false }

/** The text of an event that a listener received, `gap` for a gap. */
export const textOf = (heard: ChannelEvent | ChannelGap): string => ('gap' in heard ? 'gap' : heard.text)

/** Tests the contract of every broker. `make` returns an empty one. */
export function describeBroker(name: string, make: (clocks: BrokerClocks) => Broker | Promise<Broker>): void {
  async function begin() {
    const clock = { time: 5000 }
    const broker = await make({ now: () => clock.time, wallNow: () => 1_700_000_000_000 + clock.time })
    const publish = (text: string, channel = 'c') => broker.publish(channel, text, limits)
    const push = (text: string, queue = 'q') => broker.push(queue, text, limits)
    const textsSince = async (since: number | undefined, channel = 'c') =>
      (await broker.read(channel, since)).events.map((event) => event.text)
    const take = async (queue = 'q') => (await broker.take(queue))?.text
    return { broker, clock, publish, push, textsSince, take }
  }

  describe(`${name}: channels`, () => {
    it('assign growing safe integers as ids, and keep the events in order', async () => {
      const { broker, publish, textsSince } = await begin()
      const before = await broker.read('c', undefined)
      assert.deepEqual([before.events, before.gap], [[], false])
      const ids = [await publish('1'), await publish('2'), await publish('3')]
      assert.deepEqual(ids, [...ids].sort((a, b) => a - b))
      assert.ok(ids.every((id) => Number.isSafeInteger(id) && id > before.lastId))
      assert.equal(new Set(ids).size, 3)
      const { lastId, gap } = await broker.read('c', before.lastId)
      assert.deepEqual({ lastId, gap }, { lastId: ids[2], gap: false })
      assert.deepEqual(await textsSince(before.lastId), ['1', '2', '3'])
      assert.deepEqual(await textsSince(ids[0]), ['2', '3'])
      assert.deepEqual(await broker.read('c', ids[2]), { ...nothing, lastId: ids[2] })
      assert.deepEqual(await broker.read('c', undefined), { ...nothing, lastId: ids[2] })
    })

    it('are distinguished by name', async () => {
      const { broker, publish, textsSince, take } = await begin()
      const a = await publish('"a"', 'a')
      assert.deepEqual(await textsSince(a - 1, 'a'), ['"a"'])
      assert.deepEqual((await broker.read('b', undefined)).events, [])
      assert.equal(await take('a'), undefined, 'a queue of the same name is another source')
    })

    it('report a gap if an id is older than the kept events, or ahead of them, and return no event twice', async () => {
      const { broker, publish } = await begin()
      const first = await publish('1')
      let last = first
      for (const text of ['2', '3', '4']) last = await publish(text)
      const gapAfter = async (since: number) => {
        const { events, gap } = await broker.read('c', since)
        return [gap, events.map((event) => event.text).join('')]
      }
      assert.deepEqual(await gapAfter(first), [false, '234'])
      assert.deepEqual(await gapAfter(first - 1), [true, '234'])
      assert.deepEqual(await gapAfter(0), [true, '234'])
      // Such a client may have all of them.
      assert.deepEqual(await gapAfter(last + 1), [true, ''])
      assert.deepEqual(await gapAfter(2 ** 60), [true, ''])
      assert.deepEqual(await gapAfter(Infinity), [true, ''])
    })

    it('drop expired events', async () => {
      const { broker, clock, publish, textsSince } = await begin()
      const first = await publish('1')
      clock.time += 600
      const second = await publish('2')
      clock.time += 399
      assert.deepEqual(await textsSince(first - 1), ['1', '2'])
      clock.time += 1
      assert.deepEqual(await textsSince(first), ['2'])
      assert.equal((await broker.read('c', first - 1)).gap, true)
      clock.time += 10_000
      await broker.sweep()
      assert.deepEqual(await broker.read('c', second), { ...nothing, lastId: second })
      assert.deepEqual(await broker.read('c', first), { events: [], lastId: second, gap: true })
    })

    it('keep a cursor from before the first event', async () => {
      const { broker, clock, publish } = await begin()
      const { lastId } = await broker.read('c', undefined)
      clock.time += 5000
      assert.deepEqual(await broker.read('c', lastId), { ...nothing, lastId })
      const id = await publish('1')
      const after = await broker.read('c', lastId)
      assert.deepEqual([after.events.map((event) => event.id), after.lastId, after.gap], [[id], id, false])
      const other = await broker.read('other', 1)
      assert.deepEqual([other.events, other.gap], [[], true])
      assert.deepEqual(await broker.read('other', other.lastId), { ...nothing, lastId: other.lastId })
    })

    it('apply the limits of the last publisher, forever without an age', async () => {
      const { broker, clock, textsSince } = await begin()
      const publish = (text: string, maxEvents: number) => broker.publish('c', text, { maxEvents, maxAgeMs: Infinity })
      const first = await publish('1', 10)
      for (const text of ['2', '3', '4', '5']) await publish(text, 10)
      clock.time += 1e10
      assert.deepEqual(await textsSince(first - 1), ['1', '2', '3', '4', '5'])
      await publish('6', 2)
      assert.deepEqual(await textsSince(first - 1), ['5', '6'])
      assert.equal((await broker.read('c', first)).gap, true)
      assert.equal((await broker.read('c', first + 3)).gap, false)
    })

    it('can have any name and accept any JSON on one line', async () => {
      const { broker } = await begin()
      const many = { maxEvents: 1000, maxAgeMs: 1000 }
      for (const name of ['a b', ':', 'a\0\r\n', 'ä😀', '\ud800', '\udc00\ud800', '\uffff', '\uffff"a"', '{a}', '*']) {
        const heard: string[] = []
        const end = await broker.subscribe(name, (one) => heard.push(textOf(one)))
        let available = 0
        const endAvailable = await broker.onAvailable(name, () => (available += 1))
        const { lastId } = await broker.read(name, undefined)
        assert.deepEqual(await broker.read(name, 0), { events: [], lastId, gap: true }, name)
        for (const text of ['1', '"ä 😀"', '"\ud800"', '"\uffff"', ' 2 ', '  "a b" ']) {
          await broker.publish(name, text, many)
          await broker.push(name, text, many)
          assert.equal((await broker.take(name))?.text, text)
        }
        const texts = (await broker.read(name, lastId)).events.map(({ text }) => text)
        assert.deepEqual(texts, ['1', '"ä 😀"', '"\ud800"', '"\uffff"', ' 2 ', '  "a b" '])
        await until(() => heard.length === 6 && available > 0)
        assert.deepEqual(heard, texts)
        end()
        endAvailable()
      }
    })

    it('call a listener with each event from then on, once and in order, until it unsubscribes', async () => {
      const { broker, publish } = await begin()
      await publish('0')
      const heard: string[] = []
      const heardByOther: number[] = []
      const unsubscribe = await broker.subscribe('c', (one) => heard.push(textOf(one)))
      await broker.subscribe('c', (event) => heardByOther.push(event.id))
      await broker.subscribe('other', () => heard.push('other'))
      const ids = [await publish('1'), await publish('2')]
      await until(() => heard.length >= 2 && heardByOther.length >= 2)
      unsubscribe()
      unsubscribe()
      ids.push(await publish('3'))
      await until(() => heardByOther.length >= 3)
      assert.deepEqual(heard, ['1', '2'])
      assert.deepEqual(heardByOther, ids)
    })

    it('call listeners that come and go at once with later events, and never after they have gone', async () => {
      const { broker, publish } = await begin()
      const visit = async (turn: number): Promise<void> => {
        const heard: number[] = []
        const unsubscribe = await broker.subscribe('c', (event) => heard.push(event.id))
        const id = await publish(String(turn))
        await until(() => heard.includes(id))
        assert.equal(new Set(heard).size, heard.length, 'once')
        assert.deepEqual(heard, heard.toSorted((one, other) => one - other), 'in order')
        unsubscribe()
        const { length } = heard
        await publish('more')
        assert.equal(heard.length, length)
      }
      for (let turn = 0; turn < 10; turn++) await Promise.all([visit(turn), visit(turn), visit(turn)])
    })
  })

  describe(`${name}: queues`, () => {
    it('return each event once, oldest first', async () => {
      const { push, take } = await begin()
      assert.equal(await take(), undefined)
      for (const text of ['1', '2']) await push(text)
      await push('"x"', 'other')
      assert.deepEqual([await take(), await take(), await take()], ['1', '2', undefined])
      assert.equal(await take('other'), '"x"')
    })

    it('report how many are left, whoever takes', async () => {
      const { broker, push } = await begin()
      for (const text of ['1', '2', '3']) await push(text)
      const taken = [await broker.take('q'), await broker.take('q'), await broker.take('q')]
      assert.deepEqual(taken.map((event) => event?.left), [2, 1, 0])
    })

    it('do not return delivered events again, and keep the rest', async () => {
      const { broker, push, take } = await begin()
      for (const text of ['1', '2', '3']) await push(text)
      const [first, second] = [await broker.take('q'), await broker.take('q')]
      assert.ok(first !== undefined && second !== undefined)
      broker.handedOut('q', first)
      assert.equal(await take(), '3')
      await broker.putBack('q', second)
      assert.deepEqual([await take(), await take()], ['2', undefined])
      assert.equal(broker.dropped, 0)
    })

    it('return events that were put back, before the others', async () => {
      const { broker, push, take } = await begin()
      for (const text of ['1', '2', '3']) await push(text)
      const first = await broker.take('q')
      const second = await broker.take('q')
      assert.ok(first !== undefined && second !== undefined)
      await broker.putBack('q', second)
      await broker.putBack('q', first)
      assert.deepEqual([await take(), await take(), await take(), await take()], ['1', '2', '3', undefined])
      assert.equal(broker.dropped, 0)
    })

    it('drop the oldest when there are too many, and count it', async () => {
      const { broker, push, take } = await begin()
      for (const text of ['1', '2', '3', '4', '5']) await push(text)
      assert.equal(broker.dropped, 2)
      assert.deepEqual([await take(), await take(), await take(), await take()], ['3', '4', '5', undefined])
    })

    it('drop expired events, put back or not, and count them', async () => {
      const { broker, clock, push, take } = await begin()
      await push('1')
      const event = await broker.take('q')
      assert.ok(event !== undefined)
      clock.time += 500
      await push('2')
      clock.time += 500
      await broker.putBack('q', event)
      assert.equal(await take(), '2')
      assert.equal(broker.dropped, 1)
      await push('3')
      clock.time += 1000
      await broker.sweep()
      assert.equal(broker.dropped, 2)
      assert.equal(await take(), undefined)
    })

    it('notify listeners that there may be an event', async () => {
      const { broker, push } = await begin()
      let calls = 0
      const unsubscribe = await broker.onAvailable('q', () => (calls += 1))
      await push('1')
      await until(() => calls > 0)
      const event = await broker.take('q')
      assert.ok(event !== undefined)
      calls = 0
      await broker.putBack('q', event)
      await until(() => calls > 0)
      unsubscribe()
      unsubscribe()
      calls = 0
      let others = 0
      await broker.onAvailable('q', () => (others += 1))
      await push('2')
      await until(() => others > 0)
      assert.equal(calls, 0)
    })

    it('return no event twice to concurrent takers', async () => {
      const { broker } = await begin()
      const many = { maxEvents: 1000, maxAgeMs: 1000 }
      for (let count = 0; count < 200; count++) await broker.push('q', String(count), many)
      const taken = await Promise.all(Array.from({ length: 250 }, () => broker.take('q')))
      const texts = taken.flatMap((event) => (event === undefined ? [] : [event.text]))
      assert.equal(texts.length, 200)
      assert.equal(new Set(texts).size, 200)
    })
  })

  describe(`${name}: leases`, () => {
    const keep = { maxEvents: 10, maxAgeMs: 60_000 }

    async function beginLeases() {
      const begun = await begin()
      const { broker, clock } = begun
      const push = (text: string) => broker.push('q', text, keep)
      const leased = async (leaseMs = 60_000, queue = 'q') => {
        const event = await broker.take(queue, leaseMs)
        if (event !== undefined) broker.handedOut(queue, event)
        return { text: event?.text, lease: event?.lease ?? '' }
      }
      /** Returns the event that is taken when the time of a lease of 100 ms is over. */
      const takeLater = async () => {
        clock.time += 100
        let text: string | undefined
        await until(async () => (text = await begun.take()) !== undefined)
        return text
      }
      return { ...begun, push, leased, takeLater }
    }

    it('keep an event from others until it is done', async () => {
      const { broker, push, leased, take } = await beginLeases()
      await push('1')
      const { text, lease } = await leased()
      assert.equal(text, '1')
      assert.match(lease, /^[\w-]{22}$/)
      assert.equal(await take(), undefined)
      assert.equal(await broker.endLease('q', lease, 'done'), true)
      assert.equal(await broker.endLease('q', lease, 'done'), false, 'it is known no more')
      assert.equal(await broker.endLease('q', lease, 'back'), false)
      assert.equal(await take(), undefined)
      assert.equal(broker.dropped, 0)
    })

    it('that are given back make the event the next', async () => {
      const { broker, push, leased, take } = await beginLeases()
      for (const text of ['1', '2', '3']) await push(text)
      const [first, second] = [await leased(), await leased()]
      assert.notEqual(first.lease, second.lease)
      assert.equal(await broker.endLease('q', first.lease, 'back'), true)
      assert.equal(await broker.endLease('q', first.lease, 'done'), false)
      assert.deepEqual([await take(), await take(), await take()], ['1', '3', undefined])
    })

    it('that are over make the event available, and end no more', async () => {
      const { broker, push, leased, take, takeLater } = await beginLeases()
      await push('1')
      const { lease } = await leased(100)
      assert.equal(await takeLater(), '1')
      assert.equal(await broker.endLease('q', lease, 'done'), false)
      assert.equal(await broker.endLease('q', lease, 'back'), false)
      assert.equal(await take(), undefined)
    })

    it('that are over call the listeners of the queue', async () => {
      const { broker, clock, push, leased, take } = await beginLeases()
      await push('1')
      await leased(100)
      let calls = 0
      await broker.onAvailable('q', () => (calls += 1))
      assert.equal(await take(), undefined)
      calls = 0
      clock.time += 100
      await until(() => calls > 0)
      assert.equal(await take(), '1')
      await push('2')
      const { lease } = await leased()
      calls = 0
      await broker.endLease('q', lease, 'back')
      await until(() => calls > 0)
    })

    it('end with putBack', async () => {
      const { broker, clock, push, take } = await beginLeases()
      await push('1')
      const event = await broker.take('q', 100)
      assert.ok(event?.lease !== undefined)
      await broker.putBack('q', event)
      assert.equal(await broker.endLease('q', event.lease, 'done'), false)
      assert.equal(await take(), '1')
      await push('2')
      await broker.take('q', 100) // Its lease ends after that of the first would have ended.
      clock.time += 100
      await until(async () => (await take()) === '2')
      assert.equal(await take(), undefined)
    })

    it('are of one queue, and unknown ones end nothing', async () => {
      const { broker, push, leased, take } = await beginLeases()
      await push('1')
      const { lease } = await leased()
      for (const wrong of ['', 'x', `${lease}x`, '\ud800', '__proto__']) {
        assert.equal(await broker.endLease('q', wrong, 'done'), false, wrong)
      }
      assert.equal(await broker.endLease('other', lease, 'done'), false)
      assert.equal(await broker.endLease('q', lease, 'back'), true)
      assert.equal(await take(), '1')
    })

    it('end once, whoever asks', async () => {
      const { broker, push, leased, take } = await beginLeases()
      await push('1')
      const { lease } = await leased()
      const ends = await Promise.all(Array.from({ length: 20 }, (_, at) => broker.endLease('q', lease, at % 2 ? 'done' : 'back')))
      assert.equal(ends.filter((isEnded) => isEnded).length, 1)
      assert.equal(await take(), ends.indexOf(true) % 2 === 0 ? '1' : undefined)
    })

    it('take no part in the limits, and the age of an event that comes back counts', async () => {
      const { broker, clock, leased, take } = await beginLeases()
      const two = { maxEvents: 2, maxAgeMs: 1000 }
      for (const text of ['1', '2']) await broker.push('q', text, two)
      const { lease } = await leased()
      await broker.push('q', '3', two)
      assert.equal(broker.dropped, 0)
      await broker.endLease('q', lease, 'back')
      assert.equal(broker.dropped, 1)
      assert.equal(await take(), '2')
      const last = await leased()
      clock.time += 1000
      await broker.endLease('q', last.lease, 'back')
      assert.equal(await take(), undefined)
      assert.equal(broker.dropped, 2)
    })
  })

  describe(`${name}: its end`, () => {
    it('keeps names in use and drops those unused for long', async () => {
      const { broker, clock, publish, push, take } = await begin()
      const heard: string[] = []
      await broker.subscribe('heard', (one) => heard.push(textOf(one)))
      await publish('1')
      await push('1')
      clock.time += 7_200_000
      await broker.sweep()
      await publish('2', 'heard')
      await until(() => heard.length === 1)
      assert.equal(await take(), undefined)
      await broker.close()
    })
  })
}
