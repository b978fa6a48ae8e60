// The patterns that `fields.text({ pattern })` takes and refuses, and that it tells the two apart by the time they take.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { problemOfPattern } from '../../lib/kit/fields-pattern.ts'
import { Seeded } from '../support/seeded.ts'

const safe: readonly RegExp[] = [
  /^[a-z]+$/, /^[a-z0-9]+(-[a-z0-9]+)*$/, /^[a-z0-9](?:-?[a-z0-9])*$/, /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}$/i,
  /^\d{4}-\d{2}-\d{2}$/, /^(\d{1,3}\.){3}\d{1,3}$/, /^([0-9A-F]{2}:){5}[0-9A-F]{2}$/, /^(?:[0-9a-f]{2})+$/, /^\+?[0-9 ()-]{5,20}$/,
  /^(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$/, /^(a|b|c)+$/, /^(foo|bar)*$/, /^(ab|ac)*$/, /^"(?:[^"\\]|\\.)*"$/, /^\s+$/, /\bword\b/, /^$/, /(?:)/,
  /^[\p{L} '-]+$/u, /^\u{1F600}+$/u, /^[^\s@]+@[^\s@]+\.[^\s@]+$/, /^(?<year>\d{4})$/, /^a{3}$/, /^(?:a?)*$/, /^(?!-)[a-z-]+(?<!-)$/, /^[[\]]+$/, /^a|b$/, /^(?:\w+,)*\w+$/, /^([^"]|")*$/,
  /^([A-Z]{2}\d{2}( [A-Z\d]{4})+)$/, /^[a-z]+(?:\.[a-z]+)*@(?:[a-z]+\.)+[a-z]{2,}$/,
]
const doubling: readonly RegExp[] = [
  /(a+)+$/, /^(a*)*$/, /^(a|a)*$/, /^(a|\w)*$/, /^(\d|\w)+$/, /^([a-z]+)*$/, /^(\w+\s?)*$/, /^(a|ab|b)*$/, /^(a+b?)+$/, /^(a?b?)*$/, /^(\s*\w+\s*)+$/, /^(?:a{1,30}){1,30}$/,
  /^(ab|aba|ba)*c$/, /^(a?){20}a{20}$/, /^((a+)b?)*$/, /^(.*,)*$/, /^(x+x+)+y$/, /^(?:(?:a|b)+)+$/, /^([a-z]|[A-Z])*$/i, /(?=(a+)+b)/, /^(a{2,})+$/, /^(?:[a-z-]+)*$/,
]

describe('a pattern', () => {
  for (const pattern of safe) it(`that is taken: ${pattern}`, () => assert.equal(problemOfPattern(pattern), undefined))
  for (const pattern of doubling) it(`that is refused: ${pattern}`, () => assert.match(problemOfPattern(pattern) ?? '', /two ways/))

  it('must have no flags that remember a place, and nothing that cannot be checked', () => {
    assert.match(problemOfPattern(/a/g) ?? '', /flags g, y and v/)
    assert.match(problemOfPattern(/a/y) ?? '', /flags g, y and v/)
    assert.match(problemOfPattern(/(a)\1/) ?? '', /no back-reference/)
    assert.match(problemOfPattern(/(?<x>a)\k<x>/) ?? '', /no back-reference/)
    assert.match(problemOfPattern(new RegExp('[ab]'.repeat(101))) ?? '', /must have at most 100/)
    assert.match(problemOfPattern('a') ?? '', /must be a regular expression/)
  })

  it('of many words is checked at once', () => {
    const from = performance.now()
    assert.equal(problemOfPattern(new RegExp(`^(?:${Array.from({ length: 95 }, (_, at) => String.fromCharCode(200 + at)).join('|')})+$`)), undefined)
    assert.match(problemOfPattern(new RegExp(`^(?:${'abcdefghij'.repeat(9).split('').join('|')})+$`)) ?? '', /two ways/)
    problemOfPattern(new RegExp(`${'(a+)+'.repeat(10_000)}`))
    assert.ok(performance.now() - from < 5000)
  })

  it('that is taken takes no time that doubles, whatever it is made of', () => {
    const seeded = new Seeded(7)
    let taken = 0
    for (let round = 0; round < 1500; round += 1) {
      const pattern = new RegExp(`^${randomPattern(seeded, 3)}$`)
      if (problemOfPattern(pattern) !== undefined) continue
      taken += 1
      for (const pump of ['a', 'b', 'ab', 'ba', 'aab', 'abc']) {
        const from = performance.now()
        pattern.test(`${pump.repeat(24)}!`)
        const ms = performance.now() - from
        assert.ok(ms < 500, `${pattern} takes ${ms} ms for ${pump}`)
      }
    }
    assert.ok(taken > 500, `${taken} taken`)
  })
})

function randomPattern(seeded: Seeded, depth: number): string {
  const atom = (): string => {
    if (depth > 0 && seeded.next() < 0.4) return `(?:${randomPattern(seeded, depth - 1)})`
    return seeded.pick(['a', 'b', 'c', '[ab]', '[bc]', '\\w', '[^a]', '.'])
  }
  const piece = (): string => atom() + seeded.pick(['', '', '', '*', '+', '?', '{2}', '{1,3}', '+?'])
  const sequence = (): string => Array.from({ length: 1 + seeded.integer(3) }, piece).join('')
  return seeded.next() < 0.3 ? `${sequence()}|${sequence()}` : sequence()
}
