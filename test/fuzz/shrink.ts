/** Makes a failing input smaller as long as it fails. */
import type { Input } from './target.ts'

/**
 * Takes out whole texts, then pieces of each, halves first, single characters last.
 * @param fails whether an input still fails
 * @param mostTries the most inputs that are tried, so that a slow target does not shrink for ever
 * @returns the smallest input that was found to fail; the given one when none smaller does
 */
export async function shrink(
  input: Input,
  fails: (input: Input) => boolean | Promise<boolean>,
  mostTries = 3000,
): Promise<Input> {
  let best = input
  let tries = 0
  const attempt = async (candidate: Input): Promise<boolean> => {
    tries += 1
    if (tries > mostTries || !(await fails(candidate))) return false
    best = candidate
    return true
  }
  for (let before = -1; before !== size(best) && tries < mostTries; ) {
    before = size(best)
    await withoutParts(() => best, (list) => attempt(list))
    for (let at = 0; at < best.length; at += 1) {
      const current = (): string[] => [...(best[at] as string)]
      await withoutParts(current, (characters) => attempt(best.with(at, characters.join(''))))
    }
  }
  return best
}

function size(input: Input): number {
  return input.length + input.reduce((sum, text) => sum + text.length, 0)
}

async function withoutParts(
  current: () => readonly string[],
  attempt: (list: readonly string[]) => Promise<boolean>,
): Promise<void> {
  for (let length = Math.ceil(current().length / 2); length > 0; length = length === 1 ? 0 : Math.ceil(length / 2)) {
    for (let from = 0; from < current().length; ) {
      const list = current()
      const taken = await attempt([...list.slice(0, from), ...list.slice(from + length)])
      if (!taken) from += length
    }
  }
}
