import assert from 'node:assert/strict'
import { test } from 'node:test'
import { editDistance, nearest } from '../../lib/base/nearest.ts'

const distances: readonly [from: string, to: string, distance: number][] = [
  ['', '', 0],
  ['', 'abc', 3],
  ['abc', '', 3],
  ['abc', 'abc', 0],
  ['abc', 'abd', 1],
  ['abc', 'acb', 1],
  ['level', 'levle', 1],
  ['kitten', 'sitting', 3],
  ['ca', 'abc', 3],
]

const meanings: readonly [word: string, meant: string | undefined][] = [
  ['strat', 'start'],
  ['chekc', 'check'],
  ['START', 'start'],
  ['chcek', 'check'],
  ['stop', undefined],
  ['x', undefined],
  ['', undefined],
  ['s'.repeat(101), undefined],
]

test('counts letters added, removed, replaced and swapped', () => {
  for (const [from, to, distance] of distances) {
    assert.equal(editDistance(from, to), distance, `${from} ${to}`)
    assert.equal(editDistance(to, from), distance, `${to} ${from}`)
  }
})

test('finds only candidates that are close enough', () => {
  for (const [word, meant] of meanings) assert.equal(nearest(word, ['start', 'check', 'routes', 'init']), meant, word)
})

test('takes the first of equals', () => {
  assert.equal(nearest('lag', ['log', 'leg']), 'log')
})
