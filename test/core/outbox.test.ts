// Answers that wait for the requests that arrived with theirs. That they arrive is seen by every test over sockets.
import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { describe, it } from 'node:test'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { Outbox } from '../../lib/core/outbox.ts'

describe('the outbox', () => {
  it('sends what is ready at the end of the turn, in order, and what becomes ready while it sends', async () => {
    const sent: string[] = []
    const outbox = new Outbox<string>((answer) => {
      sent.push(answer)
      if (answer === 'b') outbox.add('c')
    })
    outbox.add('a')
    outbox.add('b')
    await Promise.resolve()
    assert.deepEqual(sent, [])
    await endOfTurn()
    assert.deepEqual(sent, ['a', 'b'])
    await endOfTurn()
    assert.deepEqual(sent, ['a', 'b', 'c'])
    outbox.add('d')
    await endOfTurn()
    assert.deepEqual(sent.at(-1), 'd')
  })

  it('sends what has waited before the next request is handled', async () => {
    const sent: string[] = []
    const outbox = new Outbox<string>((answer) => sent.push(answer))
    outbox.beforeRequest(performance.now())
    outbox.add('a')
    outbox.beforeRequest(performance.now() - 1)
    assert.deepEqual(sent, [], 'it has not waited')
    outbox.beforeRequest(performance.now() + 1)
    assert.deepEqual(sent, ['a'])
    outbox.add('b')
    outbox.sendAll()
    assert.deepEqual(sent, ['a', 'b'])
    await endOfTurn()
    assert.deepEqual(sent, ['a', 'b'])
  })
})
