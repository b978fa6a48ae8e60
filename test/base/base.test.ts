// Basics that every room uses.
import assert from 'node:assert/strict'
import { renameSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { endsWithin } from '../../lib/base/deadline.ts'
import { isUnchanged } from '../../lib/files/file-version.ts'
import { isObject } from '../../lib/base/object.ts'
import { RateLimited } from '../../lib/base/rate-limited.ts'
import { reasonOf } from '../../lib/base/reason.ts'
import { SerialQueue } from '../../lib/base/serial-queue.ts'
import { isToken } from '../../lib/base/token.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

describe('a token', () => {
  const rows: readonly (readonly [text: string, is: boolean])[] = [
    ['GET', true], ["!#$%&'*+-.^_`|~09AZaz", true], ['', false], ['a b', false], ['a\n', false],
    ...[...'()<>@,;:\\"/[]?={} \t\x7f\u00e9'].map((character): [string, boolean] => [`a${character}`, false]),
  ]
  for (const [text, is] of rows) it(`${is ? 'is' : 'is not'} ${JSON.stringify(text)}`, () => assert.equal(isToken(text), is))
})

describe('an object', () => {
  it('has named members: not null, not an array, not a function', () => {
    assert.deepEqual([{}, Object.create(null), new Map(), null, [], () => {}, 'text', 1, undefined].map(isObject), [
      true, true, true, false, false, false, false, false, false,
    ])
  })
})

describe('a reason', () => {
  it('is the message of an error, else the value as text', () => {
    assert.deepEqual([new TypeError('no'), 'text', null, undefined, 7].map(reasonOf), ['no', 'text', 'null', 'undefined', '7'])
  })
})

describe('a serial queue', () => {
  it('runs tasks one at a time, in order', async () => {
    const queue = new SerialQueue()
    const seen: string[] = []
    const task = (name: string) => async () => {
      seen.push(`${name} begins`)
      await new Promise(setImmediate)
      seen.push(`${name} ends`)
      return name
    }
    assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((name) => queue.run(task(name)))), ['a', 'b', 'c'])
    assert.deepEqual(seen, ['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]))
  })

  it('continues after a task that rejects or throws, whose caller gets the error', async () => {
    const queue = new SerialQueue()
    const outcomes = await Promise.allSettled([
      queue.run(() => Promise.reject(new Error('rejects'))),
      queue.run(() => {
        throw new Error('throws')
      }),
      queue.run(() => 'runs'),
    ])
    assert.deepEqual(outcomes.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason))), [
      'Error: rejects', 'Error: throws', 'runs',
    ])
  })

  it('has ended when all tasks so far have ended, successfully or not', async () => {
    const queue = new SerialQueue()
    let ended = 0
    const count = async (): Promise<void> => {
      await new Promise(setImmediate)
      ended += 1
      throw new Error('no matter')
    }
    for (const task of [count, count]) queue.run(task).catch(() => {})
    await queue.ended()
    assert.equal(ended, 2)
  })
})

describe('a deadline', () => {
  it('is met by a promise that settles before it', async () => assert.equal(await endsWithin(60_000, Promise.resolve('value')), true))

  it('is missed by a promise that never settles', async () => assert.equal(await endsWithin(5, new Promise(() => {})), false))

  it('that has passed accepts only a promise that has settled', async () => {
    assert.deepEqual([await endsWithin(-1, Promise.resolve()), await endsWithin(-1, new Promise(() => {}))], [true, false])
  })

  it('reports a rejection in time, and ignores a late one', async () => {
    await assert.rejects(endsWithin(60_000, Promise.reject(new Error('soon'))), /soon/)
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 20))
    assert.equal(await endsWithin(1, late), false)
    await assert.rejects(late, /late/)
  })
})

describe('a file', () => {
  it('counts as unchanged until it is written to, truncated, touched or renamed over', () => {
    const path = join(temporaryFolder(), 'a')
    writeFileSync(path, 'one')
    const changes: readonly (() => void)[] = [
      () => writeFileSync(path, 'four'),
      () => truncateSync(path, 1),
      () => utimesSync(path, 1, 1),
      () => {
        writeFileSync(`${path}.new`, 'o')
        utimesSync(`${path}.new`, 1, 1)
        renameSync(`${path}.new`, path)
      },
    ]
    for (const change of changes) {
      const seen = statSync(path)
      assert.equal(isUnchanged(seen, statSync(path)), true)
      change()
      assert.equal(isUnchanged(seen, statSync(path)), false, change.toString())
    }
  })
})

describe('lines that are limited by cause', () => {
  it('are counted for a known cause even while the maximum of causes is known', () => {
    const logged: string[] = []
    const lines = new RateLimited((message) => logged.push(message), 3_600_000)
    for (let cause = 0; cause < 1000; cause += 1) lines.say('first', `${cause}`)
    for (let cause = 0; cause < 1000; cause += 1) lines.say('second', `${cause}`)
    assert.deepEqual(logged, new Array(1000).fill('first'))
    lines.say('third', 'new')
    assert.equal(logged.at(-1), 'third')
  })
})
