// When requests are handled and answers sent. Every test over sockets checks that they arrive.
import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { describe, it } from 'node:test'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { TurnEnd } from '../../lib/core/turn-end.ts'

describe('the end of a turn', () => {
  it('handles the requests that arrived in it, in order, and the promises of each before the next', async () => {
    const seen: string[] = []
    const turnEnd = new TurnEnd<string>((name) => {
      seen.push(name)
      void (async () => {
        for (let step = 0; step < 5; step += 1) await null
        seen.push(`${name} done`)
      })()
    })
    turnEnd.add('a')
    turnEnd.add('b')
    await Promise.resolve()
    assert.deepEqual(seen, [])
    await endOfTurn()
    assert.deepEqual(seen, ['a', 'a done', 'b', 'b done'])
  })

  it('sends an answer together with that of the request that arrived last', async () => {
    const sent: string[] = []
    const turnEnd = new TurnEnd<string>((name) => {
      void Promise.resolve().then(() => {
        turnEnd.hold(name, () => sent.push(name))
        if (name !== 'c') assert.deepEqual(sent, [])
      })
    })
    for (const name of ['a', 'b', 'c']) turnEnd.add(name)
    await endOfTurn()
    assert.deepEqual(sent, ['a', 'b', 'c'])
  })

  it('sends an answer in the next turn if the last request does not answer, and later answers then', async () => {
    const sent: string[] = []
    const turnEnd = new TurnEnd<string>((name) => {
      if (name !== 'a') return
      turnEnd.hold('a', () => {
        sent.push('a')
        turnEnd.hold('b', () => sent.push('b'))
      })
    })
    turnEnd.add('a')
    turnEnd.add('waits')
    await endOfTurn()
    assert.deepEqual(sent, [])
    await endOfTurn()
    assert.deepEqual(sent, ['a'])
    await endOfTurn()
    assert.deepEqual(sent, ['a', 'b'])
  })

  it('sends waiting answers before the next action', async (t) => {
    let nowMs = 1000
    t.mock.method(performance, 'now', () => nowMs)
    const sent: string[] = []
    const send = (name: string) => (): void => void sent.push(name)
    const turnEnd = new TurnEnd<string>(() => {})
    turnEnd.beforeAction()
    turnEnd.hold('a', send('a'))
    turnEnd.beforeAction()
    assert.deepEqual(sent, [], 'it has not waited')
    nowMs += 1
    turnEnd.beforeAction()
    assert.deepEqual(sent, ['a'])
    turnEnd.hold('b', send('b'))
    turnEnd.sendAll()
    assert.deepEqual(sent, ['a', 'b'])
    await endOfTurn()
    assert.deepEqual(sent, ['a', 'b'])
  })
})
