/**
 * Patterns of file names: `*` is any text without `/`, `?` one character without `/`, and a segment `**` any folders,
 * or none. Everything else is itself. A pattern is compared with the whole path below a folder.
 */

/** Returns a function that tests a path, which begins with '/', for a match with any of the patterns. */
export function matcherOf(patterns: readonly string[]): (path: string) => boolean {
  const all = patterns.map((pattern) => pattern.replace(/^\//, '').split('/'))
  return (path) => {
    const names = path.slice(1).split('/')
    return all.some((segments) => matches(segments, names, '**', matchesName))
  }
}

function matchesName(pattern: string, name: string): boolean {
  return matches([...pattern], [...name], '*', (character, other) => character === '?' || character === other)
}

/**
 * Whether items match a pattern, in which `any` is any number of items. The time grows with the product of the lengths:
 * only the last `any` is ever tried again.
 */
function matches(
  pattern: readonly string[],
  items: readonly string[],
  any: string,
  fits: (part: string, item: string) => boolean,
): boolean {
  let at = 0
  let item = 0
  let anyAt = -1
  let anyItem = 0
  while (item < items.length) {
    if (pattern[at] === any) {
      anyAt = at
      anyItem = item
      at += 1
    } else if (at < pattern.length && fits(pattern[at] as string, items[item] as string)) {
      at += 1
      item += 1
    } else if (anyAt >= 0) {
      anyItem += 1
      at = anyAt + 1
      item = anyItem
    } else return false
  }
  while (pattern[at] === any) at += 1
  return at === pattern.length
}
