import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EventList } from '../../lib/events/event-list.ts'
import { Seeded } from '../support/seeded.ts'

describe('an event list', () => {
  it('is empty at first, and again when all are removed', () => {
    const list = new EventList<number>()
    assert.deepEqual([list.length, list.shift(), list.slice()], [0, undefined, []])
    list.push(1)
    assert.deepEqual([list.length, list.at(0), list.shift(), list.shift(), list.length], [1, 1, 1, undefined, 0])
  })

  it('behaves like an array for any operations', () => {
    const seeded = new Seeded(36)
    for (let round = 0; round < 20; round += 1) {
      const list = new EventList<number>()
      const model: number[] = []
      const most = seeded.pick([5, 500, 5000])
      for (let step = 0; step < 5000; step += 1) {
        const kind = seeded.integer(10)
        if (kind < 5 && model.length < most) {
          list.push(step)
          model.push(step)
        } else if (kind === 5) {
          list.unshift(step)
          model.unshift(step)
        } else if (kind < 8) {
          assert.equal(list.shift(), model.shift())
        } else if (step % 7 === 0) {
          const count = seeded.integer(most)
          list.dropFirst(count)
          model.splice(0, count)
        }
        assert.equal(list.length, model.length)
        if (model.length > 0) assert.equal(list.at(model.length - 1), model.at(-1))
      }
      assert.deepEqual(list.slice(), model)
      assert.deepEqual(list.slice(model.length >> 1), model.slice(model.length >> 1))
    }
  })
})
