/** Pages that `npm run docs` writes: whether they are what it would write. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

/**
 * Holds a page of `docs/` to what `npm run docs` would write. The message has the first line that differs, and not both
 * pages.
 */
export function assertCurrent(name: string, rendered: string): void {
  const there = readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8').split('\n')
  const wanted = rendered.split('\n')
  const at = Array.from({ length: Math.max(there.length, wanted.length) }).findIndex((_, line) => there[line] !== wanted[line])
  if (at < 0) return
  const [has, needs] = [there[at], wanted[at]].map((line) => line ?? '(the end of the page)')
  assert.fail(`docs/${name}, line ${at + 1} is not current: run npm run docs\n  it is:     ${has}\n  should be: ${needs}`)
}
