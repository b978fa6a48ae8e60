/** Checks that pages written by `npm run docs` are current. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

/**
 * Checks a page of `docs/` against the output of `npm run docs`. The message has the first line that differs, and not both
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
