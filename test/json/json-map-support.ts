// The seeded check of JSON texts, for any number of them.
import assert from 'node:assert/strict'
import { JsonError, readJson } from '../../lib/json/json-map.ts'
import { Seeded } from '../support/seeded.ts'

/** Checks that the same texts are accepted and refused as by JSON.parse, except for duplicate names. */
export function checkJson(rounds: number): void {
  const random = new Seeded(20_26)
  const punctuation = ['{', '}', '[', ']', ',', ':', '"', '\\', ' ', '\n', '\u0001']
  const parts = [...punctuation, '"a"', '"b"', '0', '-', '1.5', 'e9', 'true', 'null']
  let taken = 0
  for (let round = 0; round < rounds; round++) {
    const jumble = Array.from({ length: random.integer(8) }, () => random.pick(parts)).join('')
    const text = round % 2 === 0 ? document(random, 0) : jumble
    const damaged = round % 4 === 0 ? damage(random, text, parts) : text
    const expected = attempt(() => JSON.parse(damaged))
    const actual = attempt(() => readJson(damaged).value)
    if (actual instanceof JsonError && actual.message.includes('appears twice')) continue
    assert.equal(actual instanceof Error, expected instanceof Error, damaged)
    if (expected instanceof Error) continue
    assert.deepEqual(actual, expected)
    taken++
  }
  assert.ok(taken > rounds / 6, String(taken))
}

function document(random: Seeded, depth: number): string {
  const space = random.pick(['', ' ', '\n  ', '\t'])
  switch (random.integer(depth > 3 ? 4 : 6)) {
    case 0:
      return space + random.pick(['0', '-1', '2.50', '1e3', '-0.1E-2'])
    case 1:
      return random.pick(['true', 'false', 'null'])
    case 2:
      return `${space}${JSON.stringify(String.fromCharCode(...random.bytes(random.integer(4))))}`
    case 3:
      return `"${random.pick(['', '\\n', '\\u00e9', 'é', '\\"', '\u2028'])}"${space}`
    case 4:
      return `[${Array.from({ length: random.integer(4) }, () => document(random, depth + 1)).join(`${space},`)}]`
    default: {
      const member = (index: number): string => `${space}"${index}"${space}:${document(random, depth + 1)}`
      const members = Array.from({ length: random.integer(4) }, (_, index) => member(index))
      return `{${members.join(',')}${members.length > 0 ? space : ''}}`
    }
  }
}

function damage(random: Seeded, text: string, parts: readonly string[]): string {
  const at = random.integer(text.length + 1)
  return text.slice(0, at) + random.pick(parts) + text.slice(at + random.integer(2))
}

function attempt(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}
