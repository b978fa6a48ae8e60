/**
 * Finds the name that a misspelled name probably means: `did you mean log.level?` Uses the optimal string alignment
 * distance, in which two swapped adjacent letters are one mistake.
 */

/** Returns the candidate nearest to a word, the first of equals; undefined if none is near enough. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > 100) return undefined
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= least) continue
    const mistakes = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (mistakes < least) {
      least = mistakes
      best = candidate
    }
  }
  return best
}

/**
 * Returns the end of a message about an unknown name: `: did you mean log.level?`; empty if no candidate is near.
 * @param shown formats a name for the message; default: unchanged
 */
export function didYouMean(word: string, candidates: Iterable<string>, shown = (name: string): string => name): string {
  const meant = nearest(word, candidates)
  return meant === undefined ? '' : `: did you mean ${shown(meant)}?`
}

/** Returns how many insertions, deletions, substitutions and swaps of adjacent letters turn one text into the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      let least = Math.min(at(last, column) + 1, at(current, column - 1) + 1, at(last, column - 1) + (same ? 0 : 1))
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (swapped) least = Math.min(least, at(beforeLast, column - 2) + 1)
      current.push(least)
    }
    beforeLast = last
    last = current
  }
  return at(last, to.length)
}

function at(distances: readonly number[], column: number): number {
  return distances[column] as number // The loops stay within the row.
}
