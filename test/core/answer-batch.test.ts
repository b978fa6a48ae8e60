// Answers that wait for the requests that arrived with theirs. That they arrive is seen by every test over sockets.
import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { describe, it } from 'node:test'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { AnswerBatch } from '../../lib/core/answer-batch.ts'

describe('the batch of answers', () => {
  it('sends what is ready at the end of the turn, in order, and what becomes ready while it sends', async () => {
    const sent: string[] = []
    const batch = new AnswerBatch<string>((answer) => {
      sent.push(answer)
      if (answer === 'b') batch.add('c')
    })
    batch.add('a')
    batch.add('b')
    await Promise.resolve()
    assert.deepEqual(sent, [])
    await endOfTurn()
    assert.deepEqual(sent, ['a', 'b'])
    await endOfTurn()
    assert.deepEqual(sent, ['a', 'b', 'c'])
    batch.add('d')
    await endOfTurn()
    assert.deepEqual(sent.at(-1), 'd')
  })

  it('sends what has waited before the next action', async (t) => {
    let nowMs = 1000
    t.mock.method(performance, 'now', () => nowMs)
    const sent: string[] = []
    const batch = new AnswerBatch<string>((answer) => sent.push(answer))
    batch.beforeAction()
    batch.add('a')
    batch.beforeAction()
    assert.deepEqual(sent, [], 'it has not waited')
    nowMs += 1
    batch.beforeAction()
    assert.deepEqual(sent, ['a'])
    batch.add('b')
    batch.sendAll()
    assert.deepEqual(sent, ['a', 'b'])
    await endOfTurn()
    assert.deepEqual(sent, ['a', 'b'])
  })
})
