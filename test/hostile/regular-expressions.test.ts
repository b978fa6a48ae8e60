/**
 * The regular expressions of `lib/`. JavaScript's engine goes back and tries again, so a pattern of the wrong shape takes
 * time that grows with the square of a text, or doubles with each character (ReDoS). So:
 *
 * - no text from outside becomes a pattern: every one is a constant of its file, but in the check of the patterns that an
 *   application defines;
 * - no pattern repeats a repetition, but for those of a list with the reason why each is safe;
 * - every pattern is done with 100,000 characters that it may like, and that do not match in the end, within a second.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkTimes, patternsOf, sources } from './regular-expressions-support.ts'

/** Patterns that repeat a repetition, and why there is only one way to match a text. */
const safeNesting: ReadonlyMap<string, string> = new Map([
  ['^[A-Za-z0-9_-]+(?:\\.[A-Za-z0-9_-]+)*$', 'a dot, which no label holds, begins each repetition'],
  ['^(?:\\/(?!\\.{1,2}(?:\\/|$))[A-Za-z0-9._~-]+)+$', 'a slash, which no segment holds, begins each repetition'],
  ['^\\.?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$', 'the same'],
  ['^(?:\\[([0-9A-Fa-f:.]+)\\]|([A-Za-z0-9_-]+(?:\\.[A-Za-z0-9_-]+)*)\\.?)(?::(\\d{0,5}))?$', 'the same'],
  ['\\b(?:from|import|require)(?:[\\s(]|\\/\\*(?:[^*]|\\*(?!\\/))*\\*\\/|\\/\\/.*\\n)*(["\'`])((?:(?!\\1).)+)\\1', 'a slash begins a comment and nothing else, and it has one end'],
  ['\\((?:\\s|\\/\\*(?:[^*]|\\*(?!\\/))*\\*\\/|\\/\\/.*\\n)*(["\'`])((?:(?!\\1).)+)\\1', 'the same'],
  ['^(?:\\s|\\/\\*(?:[^*]|\\*(?!\\/))*\\*\\/|\\/\\/.*[\\n\\r\\u2028\\u2029])*$', 'the same'],
])

/** Whether an unbounded repetition is in a group that is repeated without bound. */
function nests(pattern: string): boolean {
  /** For each open group, whether it holds such a repetition. */
  const groups = [false]
  const bare = pattern.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x')
  for (let at = 0; at < bare.length; at += 1) {
    const character = bare[at]
    if (character === '(') {
      groups.push(false)
      continue
    }
    const repeats = /^(?:[*+]|\{\d+,\})/.test(bare.slice(at + (character === ')' ? 1 : 0)))
    if (character === ')') {
      const inner = groups.pop() === true
      if (inner && repeats) return true
      if (inner || repeats) groups[groups.length - 1] = true
    } else if (repeats) {
      groups[groups.length - 1] = true
    }
  }
  return false
}

describe('regular expressions', () => {
  it('are constants of their file: no text from outside becomes one', () => {
    let made = 0
    for (const [file, source] of sources) {
      for (const [call, name] of source.matchAll(/\bRegExp\(([^)]*)\)/g)) {
        made += 1
        const constant = /^(\w+), '[a-z]+'$/.exec(name as string)?.[1]
        assert.ok(constant !== undefined, `${file}: ${call}`)
        assert.match(source, new RegExp(`^const ${constant} = ['\`/]`, 'm'), `${file}: ${call}`)
      }
      // These make a pattern of a text without a word.
      for (const [call, given] of source.matchAll(/(?<!port)\.(?:match|matchAll|search)\(([^)]*)/g)) {
        const isConstant = (given as string).startsWith('/') || new RegExp(`^const ${given} = /`, 'm').test(source)
        assert.ok(isConstant, `${file}: ${call}`)
      }
    }
    assert.ok(made >= 3, `${made} are made of constants`)
  })

  it('with a repeated repetition are detected by the check below', () => {
    const rows: readonly (readonly [pattern: string, isNested: boolean])[] = [
      ['a+', false], ['(a+)+', true], ['(?:a*)*$', true], ['(?:a|b+)*', true], ['(a{2,})+', true], ['((a+))*', true], ['(a+)?', false], ['(a?)+', false],
      ['[(a+)+]*', false], ['\\(a+\\)+', false], ['(?:ab)+c*', false], ['(?:a(?:b+c)?d)*', true],
    ]
    for (const [pattern, isNested] of rows) assert.equal(nests(pattern), isNested, pattern)
  })

  it('repeat no repetition, except those listed with a reason', () => {
    const found = sources.flatMap(([file, source]) => patternsOf(file, source))
    assert.ok(found.length > 100, `${found.length} patterns`)
    const nested = found.filter(({ pattern }) => nests(pattern.source))
    for (const { file, pattern } of nested) assert.ok(safeNesting.has(pattern.source), `${file}: ${pattern}`)
    for (const source of safeNesting.keys()) assert.ok(nested.some(({ pattern }) => pattern.source === source), source)
  })

  it('process 28 characters, and 3000, within a second', () => checkTimes([28, 3000]))
})
