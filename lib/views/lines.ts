/**
 * Counts lines of a view.
 */

/**
 * The line ends from `start` to below `end`. Looks at that part of the text and no further, so that a file of one long
 * line takes no longer than others.
 */
export function countLines(text: string, start: number, end: number): number {
  let lines = 0
  for (let at = start; at < end; at++) if (text.charCodeAt(at) === 0x0a) lines++
  return lines
}
