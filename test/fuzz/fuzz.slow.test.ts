import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fuzzParsers, type Result } from './parsers.ts'
import { fuzzRequests } from './requests.ts'
import { targets } from './targets.ts'

const seed = 20_261

describe('a hundred thousand hostile inputs', () => {
  it('80,000 to parsers: nothing is thrown, taken or found but what should be', async () => {
    const total = targets.reduce((sum, { share }) => sum + share, 0)
    const shares = targets.map(({ name, share }) => ({ name, from: 0, count: Math.ceil((80_000 * share) / total) }))
    const results: Result[] = []
    await fuzzParsers({ seed, shares }, (result) => results.push(result))
    assert.deepEqual(results.map(({ name }) => name), targets.map(({ name }) => name))
  })

  it('20,000 requests over sockets: each has one answer and one line, and nothing is left', async () => {
    const { requests, connections, answers } = await fuzzRequests(seed, 20_000)
    assert.ok(requests >= 20_000 && connections > 1000 && answers > requests / 2, `${requests} ${connections} ${answers}`)
  })
})

describe('the fuzzer', () => {
  it('tells which input fails, the smallest one, and how to see it again', async () => {
    await assert.rejects(fuzzParsers({ seed: 1, shares: [{ name: 'no such target', from: 0, count: 1 }] }, () => {}), /ended with 1/)
  })
})
